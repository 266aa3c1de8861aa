/* SPDX-License-Identifier: MIT */
/*
 * A filter of seccomp(2) may end whoever makes a call that it does not list, as that of a systemd
 * service with SystemCallFilter=@system-service does. Who would call perf_event_open(2) there has a
 * child try first. For the library and for the monitor, which is linked without it.
 */
#ifndef ABI_FATAL_H
#define ABI_FATAL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The child sends no SIGCHLD, is not what a wait(2) of the program's could find, leaves no core
 * file, and takes no signal: it shares nothing with its parent but what a handler would do.
 */
static inline bool fatal_ends_child(void)
{
	sigset_t all, before;
	int status = 0;
	long child;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
	if (child == 0) {
		syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
		syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0UL);
		syscall(SYS_exit_group, 0);
	}
	if (child > 0)
		waitpid((pid_t)child, &status, __WCLONE);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

/* Under `tally run` the runtime answers the call, and a child is dear. */
static inline bool fatal_stays_in_run(void)
{
	static const char unit[] = "tally";
	char name[sizeof(unit) - 1];
	int fd = open("/sys/bus/event_source/devices/cpu/caps/pmu_name", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name));
	close(fd);
	return n == (ssize_t)sizeof(name) && !memcmp(name, unit, sizeof(name));
}

/* Filters are in force in most containers, and nowhere else: there it takes a child each time. */
static inline bool fatal_open(void)
{
	const int error = errno;
	const bool fatal = prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER && !fatal_stays_in_run() &&
			   fatal_ends_child();

	errno = error;
	return fatal;
}

#endif
