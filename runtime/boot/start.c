// SPDX-License-Identifier: MIT
#include "runtime/boot/start.h"

#include <asm/errno.h>
#include <linux/fcntl.h>
#include <stdbool.h>

#include "runtime/boot/stack.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/exec.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* What the kernel has made of the arguments is what the program is to get. */
static bool loadable(const struct exec *exec)
{
	return !exec->native && exec->nr_words == 1;
}

/* Returns 0 if the program is to be loaded here, else a negative errno value. */
static int64_t execute(const char *path, char *const *argv, char *const *envp, bool here)
{
	struct exec exec = {.dirfd = AT_FDCWD};
	int64_t error;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(exec.path, path, strlen(path) + 1);
	error = exec_find(&exec);
	if (error)
		return error;
	if (!here || !loadable(&exec))
		return exec_go(NULL, &exec, (uint64_t)argv, (uint64_t)envp);
	descriptors.program = descriptors_raise(exec.program, true);
	return descriptors.program < 0 ? descriptors.program : 0;
}

/* As execvp(3): a file that no program format fits is a script of the shell. */
static int64_t execute_by_shell(const struct stack *stack, const char *path)
{
	char **argv = stack->argv - 1;

	/* The word before argv is argc, which nobody needs any more. */
	argv[0] = "sh";
	argv[1] = (char *)path;
	return execute("/bin/sh", argv, stack->envp, false);
}

void start(const struct stack *stack, const char *path)
{
	int64_t error = execute(path, stack->argv, stack->envp, true);

	if (error == -ENOEXEC)
		error = execute_by_shell(stack, path);
	if (!error)
		return;
	/* The file itself was found by who started us. */
	say("cannot execute '%s': %s", path,
	    error == -ENOENT ? "its interpreter does not exist" : error_text(error));
	for (;;)
		sys(__NR_exit_group, error == -ENOENT ? 127 : 126);
}
