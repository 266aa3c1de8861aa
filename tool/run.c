// SPDX-License-Identifier: MIT
/* `tally run`: a command under the translator. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/monitor.h"
#include "tool/command.h"
#include "tool/commands.h"

static const struct tool_option option_table[] = {{0}};

/* The folder of this very program, without a slash at its end. */
static bool own_folder(char folder[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	char *slash;

	if (n <= 0)
		return false;
	folder[n] = '\0';
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return slash;
}

/* Beside the tool where it was built, in libexec where it was installed or moved to. */
static bool find_runtime(char path[PATH_MAX])
{
	static const char *const places[] = {"/tally-rt", "/../libexec/tally/tally-rt"};
	char folder[PATH_MAX];

	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && own_folder(folder); i++)
		if (snprintf(path, PATH_MAX, "%s%s", folder, places[i]) < PATH_MAX &&
		    !access(path, X_OK))
			return true;
	strcpy(path, TALLY_LIBEXEC "/tally-rt");
	return !access(path, X_OK);
}

/* Ends as the command did: whoever waits for us sees what it would have seen. */
static int end_like(int status)
{
	const struct rlimit no_core = {0, 0};
	sigset_t signals;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	/* A core file would be of this process, and in the way of the command's. */
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int run(const struct tool_command *command, int argc, char **argv)
{
	struct tool_parse parse = {.command = command, .argc = argc, .argv = argv};
	struct tally_error err;
	char runtime[PATH_MAX];
	int key = tool_next_option(&parse), status;

	if (key)
		return key == -2 ? TOOL_OK : TOOL_USAGE;
	if (parse.index >= argc)
		return tool_usage(command, "no command to run");
	if (!find_runtime(runtime))
		return tool_fail(
			"cannot find tally-rt, which belongs to tally: install tally anew");
	if (monitor_run(runtime, argv + parse.index, &status, &err)) {
		tool_error(&err);
		return err.code == -ENOENT ? TOOL_NOENT : TOOL_NOEXEC;
	}
	return end_like(status);
}

const struct tool_command run_command = {
	.name = "run",
	.summary = "run a command under the translator",
	.usage = "[--] COMMAND [ARG...]",
	.options = option_table,
	.run = run,
};
