// SPDX-License-Identifier: MIT
#include "runtime/boot/start.h"

#include <asm/errno.h>
#include <linux/fcntl.h>

#include "runtime/boot/stack.h"
#include "runtime/linux/exec.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"

static int64_t execute(const char *path, char *const *argv, char *const *envp)
{
	struct exec exec = {.dirfd = AT_FDCWD};
	int64_t error;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(exec.path, path, strlen(path) + 1);
	error = exec_find(&exec);
	return error ? error : exec_go(NULL, &exec, (uint64_t)argv, (uint64_t)envp);
}

/* As execvp(3): a file that no program format fits is a script of the shell. */
static int64_t execute_by_shell(const struct stack *stack, const char *path)
{
	char **argv = stack->argv - 1;

	/* The word before argv is argc, which nobody needs any more. */
	argv[0] = "sh";
	argv[1] = (char *)path;
	return execute("/bin/sh", argv, stack->envp);
}

_Noreturn void start(const struct stack *stack, const char *path)
{
	int64_t error = execute(path, stack->argv, stack->envp);

	if (error == -ENOEXEC)
		error = execute_by_shell(stack, path);
	/* The file itself was found by who started us. */
	say("cannot execute '%s': %s", path,
	    error == -ENOENT ? "its interpreter does not exist" : error_text(error));
	for (;;)
		sys(__NR_exit_group, error == -ENOENT ? 127 : 126);
}
