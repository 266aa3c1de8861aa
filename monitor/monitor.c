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
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/handover.h"
#include "abi/limits.h"
#include "monitor/limits.h"

extern char **environ;

/* Beside the numbers that events_ready() knows. */
#define SIGNALS_READY UINT64_MAX

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

/*
 * Out of the command's way, as high as the limit on open files allows; closes @fd. Where nothing
 * above is free it stays what it is, if that is none of the standard descriptors. -1 with errno.
 */
static int raise_descriptor(int fd)
{
	struct rlimit limit;
	int raised;

	if (fd < 0)
		return -1;
	raised = fcntl(fd, F_DUPFD, HANDOVER_DESCRIPTORS);
	if (raised < 0 && !getrlimit(RLIMIT_NOFILE, &limit))
		for (int from = (int)limit.rlim_cur - 1; raised < 0 && from > fd; from--)
			raised = fcntl(fd, F_DUPFD, from);
	if (raised < 0 && fd > STDERR_FILENO) {
		fcntl(fd, F_SETFD, 0);
		return fd;
	}
	close(fd);
	if (raised < 0)
		errno = EMFILE;
	return raised;
}

/* The environment with @handover behind it: the list is new, the strings are not. */
static char **environment_with(char *handover)
{
	size_t nr = 0;
	char **envp;

	while (environ && environ[nr])
		nr++;
	envp = calloc(nr + 2, sizeof(*envp));
	if (!envp)
		return NULL;
	if (nr)
		memcpy(envp, environ, nr * sizeof(*envp));
	envp[nr] = handover;
	return envp;
}

/* Everything that the child needs, so that it does nothing but execute. */
struct child {
	const char *runtime;
	char *const *argv;
	int arena, events, self, program;
	bool fixed; /* its addresses */
	char *handover, **envp;
	sigset_t mask;		/* to start with, */
	struct sigaction ended; /* and what it makes of SIGCHLD */
	int error;		/* of its exec; in memory that it shares with us until then */
};

/*
 * Where our file has capabilities, a run executes it natively, as any such program, and who
 * measures would be out of the run that was made for it. It needs no more rights there than its
 * command has: already opened, it is loaded without them. -1: the runtime is to look at what the
 * program is.
 */
static int open_ourselves(const char *path)
{
	struct stat program, ours;

	if (!getauxval(AT_SECURE) || stat(path, &program) || stat("/proc/self/exe", &ours) ||
	    program.st_dev != ours.st_dev || program.st_ino != ours.st_ino)
		return -1;
	return raise_descriptor(open(path, O_RDONLY | O_CLOEXEC));
}

static int prepare(struct child *child, const char *path)
{
	child->self = raise_descriptor(open(child->runtime, O_RDONLY | O_CLOEXEC));
	if (child->self < 0)
		return -errno;
	child->program = open_ourselves(path);
	if (asprintf(&child->handover, HANDOVER_NAME "%d,%d,%d,%d,%d,%lu,0,%d,%s", HANDOVER_VERSION,
		     child->arena, child->events, child->self, child->program, HANDOVER_PAGES,
		     child->fixed, path) < 0) {
		child->handover = NULL;
		return -ENOMEM;
	}
	child->envp = environment_with(child->handover);
	return child->envp ? 0 : -ENOMEM;
}

/* The command alone keeps the descriptors, but for the arena: with that a lock of ours would go. */
static void forget(struct child *child)
{
	if (child->arena >= 0)
		fcntl(child->arena, F_SETFD, FD_CLOEXEC);
	if (child->events >= 0)
		close(child->events);
	if (child->self >= 0)
		close(child->self);
	if (child->program >= 0)
		close(child->program);
	free(child->envp);
	free(child->handover);
}

/* Returns its pid or a negative errno value. */
static pid_t start(struct child *child)
{
	/* Copying our address space would be much of the time that a short command takes. */
	pid_t pid = vfork();

	if (!pid) {
		sigaction(SIGCHLD, &child->ended, NULL);
		sigprocmask(SIG_SETMASK, &child->mask, NULL);
		arena_set_command(getpid());
		if (monitor_raise_limits())
			execve(child->runtime, child->argv, child->envp);
		else
			errno = ENOMEM;
		child->error = errno;
		_exit(127);
	}
	if (pid < 0)
		return -errno;
	if (!child->error)
		return pid;
	waitpid(pid, NULL, 0);
	return -child->error;
}

/*
 * Whether it was sent to our process group, as kill(1), timeout(1) and job runners do, and so to
 * the command, too, which may take the second SIGTERM for an order to hurry. Where that waits for
 * its handler to begin another one is nothing to the kernel; that it has begun is known a moment
 * later, and if not the command's runtime drops what we send.
 */
static bool has_it(pid_t child, const struct signalfd_siginfo *info)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	const int signal = (int)info->ssi_signo;

	if (info->ssi_code != SI_USER || getpgid(child) != getpgrp())
		return false;
	if (arena_command_handles(signal, (pid_t)info->ssi_pid))
		return true;
	nanosleep(&moment, NULL);
	return arena_command_handles(signal, (pid_t)info->ssi_pid);
}

/*
 * One signal to us. What a process sent, it meant for the command; the kernel's own come from the
 * terminal, which tells the command too, or are about us alone. Our own SIGPIPE, for a pipe that an
 * event's last reader has closed meanwhile, comes with our own number.
 */
static void pass_on(pid_t child, const struct signalfd_siginfo *info)
{
	const pid_t from = (pid_t)info->ssi_pid;

	if (info->ssi_code <= 0 && from != child && from != getpid() && !has_it(child, info))
		kill(child, (int)info->ssi_signo);
}

/* True when the child has ended. A stop of it is one of ours: whoever waits for us sees it. */
static bool look_after(pid_t child, int *status)
{
	while (waitpid(child, status, WNOHANG | WUNTRACED) == child) {
		if (!WIFSTOPPED(*status))
			return true;
		if (halted_let_go(child, *status))
			continue;
		/* For as long as that is we cannot help who waits for it. */
		halted_help_all(child);
		raise(SIGSTOP);
		kill(child, SIGCONT);
	}
	return false;
}

/*
 * Who has lost its parent becomes a child of ours where we are the first process of a container,
 * and nobody else would ever wait for it. What it has used is known for as long as that is not
 * done.
 */
static void bury_others(pid_t child)
{
	siginfo_t ended = {0};

	while (!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid &&
	       ended.si_pid != child) {
		events_settle();
		waitpid(ended.si_pid, NULL, WNOHANG);
		ended.si_pid = 0;
	}
}

static void take_signals(int signals, pid_t child)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGCHLD) {
			halted_look();
			bury_others(child);
		} else {
			pass_on(child, &info);
		}
}

static void wait_for(pid_t child, int epoll, int signals, int *status)
{
	struct epoll_event ready[16];

	while (!look_after(child, status)) {
		int nr = epoll_wait(epoll, ready, sizeof(ready) / sizeof(*ready), -1);

		for (int i = 0; i < nr; i++)
			if (ready[i].data.u64 == SIGNALS_READY)
				take_signals(signals, child);
			else
				events_ready(ready[i].data.u64);
	}
}

/* A descriptor is needed for each event of the tree. The command has been started with the limit
 * that there was. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* All that can be waited for: not what faults of our own raise. */
static void signals_of_others(sigset_t *signals)
{
	const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGTTIN, SIGTTOU};

	sigfillset(signals);
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		sigdelset(signals, ours[i]);
}

static const char *remedy_for(int code, const char *name)
{
	bool searched = !strchr(name, '/');

	switch (code) {
	case -ENOENT:
		return searched ? "no folder of PATH has it: check the spelling, or give its path"
				: "";
	case -EACCES:
		return searched
			       ? "PATH names it, or a folder that may not be searched: give its path, "
				 "and check its x permission"
			       : "make it executable with chmod +x";
	}
	return "";
}

static int find(const char *name, char path[PATH_MAX], struct tally_error *err)
{
	int code = monitor_find_command(name, path);

	if (!code)
		return 0;
	return fail(err, code, remedy_for(code, name), "cannot execute '%s': %s", name,
		    strerror(-code));
}

/* What of this process has to go back to what it was. */
struct before {
	sigset_t mask;
	struct sigaction ended;
};

/* The signals as events of @epoll, from here on until restore(). -1 with errno. */
static int catch_signals(int epoll, struct before *before)
{
	struct epoll_event ready = {.events = EPOLLIN, .data.u64 = SIGNALS_READY};
	sigset_t signals;
	int fd;

	signals_of_others(&signals);
	sigprocmask(SIG_BLOCK, &signals, &before->mask);
	/* Who ignores it, as we may have inherited, cannot wait for anybody. */
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &before->ended);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ready) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void restore(const struct before *before)
{
	sigaction(SIGCHLD, &before->ended, NULL);
	sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* Starts and waits. 0 or a negative errno value. */
static int run(struct child *child, const char *path, const struct monitor_options *options,
	       int *status)
{
	struct before before;
	int code, epoll = epoll_create1(EPOLL_CLOEXEC), signals;
	pid_t pid;

	if (epoll < 0)
		return -errno;
	signals = catch_signals(epoll, &before);
	if (signals < 0) {
		code = -errno;
		goto out;
	}
	/* Without an arena there are no events, and nothing else is missing. */
	child->arena = raise_descriptor(arena_make(options));
	if (child->arena >= 0) {
		arena_keep(child->arena);
		child->events = raise_descriptor(events_open(epoll));
	}
	child->mask = before.mask;
	child->ended = before.ended;
	code = prepare(child, path);
	pid = code ? code : start(child);
	forget(child);
	code = pid < 0 ? pid : 0;
	if (pid >= 0) {
		raise_limit();
		wait_for(pid, epoll, signals, status);
	}
	events_close();
	close(signals);
out:
	restore(&before);
	close(epoll);
	return code;
}

static const char *start_remedy(int code)
{
	switch (code) {
	case -EAGAIN:
		return LIMITS_RAISE_PROCESSES;
	case -ENOMEM:
		return "raise the limit on memory: ulimit -d";
	case -EMFILE:
		return "raise the limit on open files: ulimit -n 64";
	case -ENFILE:
		return "raise what the system may have open: sysctl fs.file-max";
	}
	return "";
}

int monitor_run(const char *runtime, const struct monitor_options *options, char *const argv[],
		int *status, struct tally_error *err)
{
	struct child child = {
		.runtime = runtime,
		.argv = argv,
		.arena = -1,
		.events = -1,
		.self = -1,
		.program = -1,
		.fixed = options->fixed,
	};
	char path[PATH_MAX];
	int code = find(argv[0], path, err);

	if (code)
		return code;
	code = run(&child, path, options, status);
	if (code)
		return fail(err, code, start_remedy(code), "cannot start '%s': %s", runtime,
			    strerror(-code));
	return 0;
}
