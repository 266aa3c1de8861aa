// SPDX-License-Identifier: MIT
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/arena.h"
#include "abi/handover.h"

extern char **environ;

__attribute__((format(printf, 4, 5))) static int fail(struct tally_error *err, int code,
						      const char *remedy, const char *what, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->offset = TALLY_NO_OFFSET;
	snprintf(err->remedy, sizeof(err->remedy), "%s", remedy);
	va_start(ap, what);
	vsnprintf(err->what, sizeof(err->what), what, ap);
	va_end(ap);
	return code;
}

/* Out of the command's way, as high as the limit on open files allows. */
static int raise_descriptor(int fd)
{
	struct rlimit limit;
	int raised = fcntl(fd, F_DUPFD, HANDOVER_DESCRIPTORS);

	if (raised < 0 && !getrlimit(RLIMIT_NOFILE, &limit))
		for (int from = (int)limit.rlim_cur - 1; raised < 0 && from > fd; from--)
			raised = fcntl(fd, F_DUPFD, from);
	return raised;
}

/* The environment with the handover behind it. */
static char **hand_over(const char *path, int arena, int runtime)
{
	size_t nr = 0;
	char **envp, *text;

	while (environ && environ[nr])
		nr++;
	envp = calloc(nr + 2, sizeof(*envp));
	if (!envp || asprintf(&text, HANDOVER_NAME "%d,%d,%d,-1,%s", HANDOVER_VERSION, arena,
			      runtime, path) < 0)
		return NULL;
	if (nr)
		memcpy(envp, environ, nr * sizeof(*envp));
	envp[nr] = text;
	return envp;
}

/* Nothing but memory to share depends on it: without it the run goes on. */
static int make_arena(void)
{
	int fd = memfd_create("tally", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, ARENA_SIZE) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Exit status of a child that could not be turned into tally-rt. */
#define NOT_STARTED 125

static _Noreturn void cannot_start(const char *runtime)
{
	fprintf(stderr, "tally: cannot start '%s': %s\n", runtime, strerror(errno));
	_exit(NOT_STARTED);
}

static _Noreturn void run_child(const char *runtime, const char *path, char *const argv[],
				const sigset_t *mask)
{
	int arena = raise_descriptor(make_arena());
	int self = open(runtime, O_RDONLY | O_CLOEXEC);
	char **envp;

	if (self >= 0)
		self = raise_descriptor(self);
	if (self < 0)
		cannot_start(runtime);
	envp = hand_over(path, arena, self);
	if (!envp)
		cannot_start(runtime);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execve(runtime, argv, envp);
	cannot_start(runtime);
}

/*
 * One signal to us. What a process sent, it meant for the command; the kernel's own come from the
 * terminal, which tells the command too, or are about us alone.
 */
static void pass_on(pid_t child, const siginfo_t *info)
{
	if (info->si_code <= 0 && info->si_pid != child)
		kill(child, info->si_signo);
}

/* True when the child has ended. A stop of it is one of ours: whoever waits for us sees it. */
static bool look_after(pid_t child, int *status)
{
	while (waitpid(child, status, WNOHANG | WUNTRACED) == child) {
		if (!WIFSTOPPED(*status))
			return true;
		raise(SIGSTOP);
		kill(child, SIGCONT);
	}
	return false;
}

static void wait_for(pid_t child, const sigset_t *signals, int *status)
{
	siginfo_t info;

	while (!look_after(child, status))
		if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD)
			pass_on(child, &info);
}

/* All that can be waited for: not what faults of our own raise. */
static void signals_of_others(sigset_t *signals)
{
	const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGTTIN, SIGTTOU};

	sigfillset(signals);
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		sigdelset(signals, ours[i]);
}

int monitor_run(const char *runtime, char *const argv[], int *status, struct tally_error *err)
{
	char path[PATH_MAX];
	sigset_t signals, before;
	int code = monitor_find_command(argv[0], path);
	pid_t child;

	if (code == -ENOENT && !strchr(argv[0], '/'))
		return fail(err, code,
			    "no folder of PATH has it: check the spelling, or give its path",
			    "cannot execute '%s': %s", argv[0], strerror(-code));
	if (code)
		return fail(err, code, code == -EACCES ? "make it executable with chmod +x" : "",
			    "cannot execute '%s': %s", argv[0], strerror(-code));
	signals_of_others(&signals);
	sigprocmask(SIG_BLOCK, &signals, &before);
	child = fork();
	if (!child)
		run_child(runtime, path, argv, &before);
	if (child < 0) {
		code = -errno;
		fail(err, code, code == -EAGAIN ? "raise the process limit: ulimit -u" : "",
		     "cannot start a process for '%s': %s", argv[0], strerror(-code));
	} else {
		wait_for(child, &signals, status);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}
