// SPDX-License-Identifier: MIT
/*
 * One socket pair carries the whole conversation with the child:
 *
 *	parent                          child
 *	prepare: fork ----------------> reads one byte: waits
 *	         (events are opened)
 *	start:   writes one byte -----> execvp()
 *	         reads   <------------- closed by exec: it runs
 *	                 <------------- errno of the exec that failed
 *
 * Should the parent die or give up, the child reads end of file and leaves. Between fork and exec
 * the child of a multi-threaded program may use async-signal-safe functions only; execvp(3) of the
 * libcs in use is one in practice, as it keeps to its stack.
 */
#include <tally/workload.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/limits.h"
#include "lib/error.h"

enum workload_phase { HELD, RUNNING, ENDED };

struct tally_workload {
	pid_t pid;
	int channel; /* our end of the pair; -1 once started */
	enum workload_phase phase;
	int status;
	struct rusage usage;
	char *name;
};

/* Above the standard descriptors, which the child may be about to replace. */
static int above_standard(int fd)
{
	int moved;

	if (fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return moved;
}

static int open_channel(int channel[2])
{
	int saved;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0)
		return -errno;
	channel[0] = above_standard(channel[0]);
	saved = errno;
	channel[1] = above_standard(channel[1]);
	if (channel[0] >= 0 && channel[1] >= 0)
		return 0;
	saved = channel[1] < 0 ? errno : saved;
	if (channel[0] >= 0)
		close(channel[0]);
	if (channel[1] >= 0)
		close(channel[1]);
	return -saved;
}

/* Handlers point into a program that is about to go; what was ignored stays so, as under nohup. */
static void default_signals(void)
{
	struct sigaction action;
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &action) < 0 || action.sa_handler == SIG_IGN ||
		    action.sa_handler == SIG_DFL)
			continue;
		memset(&action, 0, sizeof(action));
		action.sa_handler = SIG_DFL;
		sigaction(sig, &action, NULL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_child(int channel, char *const argv[], int out_fd)
{
	char go;
	ssize_t n;
	int code;

	default_signals();
	do
		n = read(channel, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(0);
	if (out_fd < 0 || dup2(out_fd, STDOUT_FILENO) >= 0)
		execvp(argv[0], argv);
	code = errno;
	/* Nobody is left to tell when this fails. */
	n = send(channel, &code, sizeof(code), MSG_NOSIGNAL);
	_exit(n < 0 ? 126 : 127);
}

static pid_t fork_without_signals(int child_channel, int parent_channel, char *const argv[],
				  int out_fd)
{
	sigset_t all, before;
	pid_t pid;
	int saved;

	/* Our handlers must not run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	saved = errno;
	if (pid == 0) {
		close(parent_channel);
		run_child(child_channel, argv, out_fd);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

int tally_workload_prepare(char *const argv[], int out_fd, struct tally_workload **workload,
			   struct tally_error *err)
{
	struct tally_workload *w;
	int channel[2], code;

	*workload = NULL;
	if (!argv[0]) {
		tly_error(err, -EINVAL, "no command to run");
		return tly_error_remedy(err, "name the program after the options");
	}
	w = calloc(1, sizeof(*w));
	if (w)
		w->name = strdup(argv[0]);
	if (!w || !w->name) {
		free(w);
		return tly_error(err, -ENOMEM, "out of memory");
	}
	code = open_channel(channel);
	if (code < 0) {
		tly_error(err, code, "cannot prepare '%s': %s", w->name, strerror(-code));
		goto fail;
	}
	w->pid = fork_without_signals(channel[1], channel[0], argv, out_fd);
	if (w->pid < 0) {
		code = -errno;
		tly_error(err, code, "cannot start a process for '%s': %s", w->name,
			  strerror(-code));
		if (code == -EAGAIN)
			tly_error_remedy(err, LIMITS_RAISE_PROCESSES);
		close(channel[0]);
		close(channel[1]);
		goto fail;
	}
	close(channel[1]);
	w->channel = channel[0];
	*workload = w;
	return 0;
fail:
	free(w->name);
	free(w);
	return code;
}

pid_t tally_workload_pid(const struct tally_workload *workload)
{
	return workload->pid;
}

static void reap(struct tally_workload *w)
{
	pid_t pid;

	do
		pid = wait4(w->pid, &w->status, 0, &w->usage);
	while (pid < 0 && errno == EINTR);
	w->phase = ENDED;
}

static int exec_error(const struct tally_workload *w, int code, struct tally_error *err)
{
	tly_error(err, -code, "cannot execute '%s': %s", w->name, strerror(code));
	switch (code) {
	case ENOENT:
		if (strchr(w->name, '/'))
			return tly_error_remedy(err, "check the path, and the interpreter that "
						     "the first line of a script names");
		return tly_error_remedy(err, "no folder of PATH has it: check the spelling, or "
					     "give its path");
	case EACCES:
		if (!strchr(w->name, '/'))
			return tly_error_remedy(err, "PATH names it, or a folder that may not be "
						     "searched: give its path, and check its x "
						     "permission");
		return tly_error_remedy(err, "make it executable: chmod +x '%s'", w->name);
	case ENOEXEC:
		return tly_error_remedy(err, "it is neither a program for this machine nor a "
					     "script with a #! line");
	}
	return -code;
}

int tally_workload_start(struct tally_workload *workload, struct tally_error *err)
{
	const char go = 1;
	int code = 0;
	ssize_t n;

	if (workload->phase != HELD)
		return tly_error(err, -EINVAL, "'%s' was started before", workload->name);
	if (send(workload->channel, &go, 1, MSG_NOSIGNAL) < 0) {
		code = errno;
		tly_error(err, -ECHILD, "'%s' was killed before it started: %s", workload->name,
			  strerror(code));
		code = ECHILD;
	} else {
		do
			n = recv(workload->channel, &code, sizeof(code), MSG_WAITALL);
		while (n < 0 && errno == EINTR);
		/* End of file: exec closed the channel, or a signal was faster; wait will tell. */
		if (n != sizeof(code))
			code = 0;
		else
			exec_error(workload, code, err);
	}
	close(workload->channel);
	workload->channel = -1;
	workload->phase = RUNNING;
	if (code)
		reap(workload);
	return -code;
}

int tally_workload_wait(struct tally_workload *workload, bool block, int *status,
			struct rusage *usage)
{
	pid_t pid;

	if (workload->phase == HELD)
		return -EINVAL;
	if (workload->phase == RUNNING) {
		pid = wait4(workload->pid, &workload->status, block ? 0 : WNOHANG,
			    &workload->usage);
		if (pid < 0)
			return -errno;
		if (pid == 0)
			return 0;
		workload->phase = ENDED;
	}
	if (status)
		*status = workload->status;
	if (usage)
		*usage = workload->usage;
	return 1;
}

void tally_workload_free(struct tally_workload *workload)
{
	if (!workload)
		return;
	if (workload->phase == HELD) {
		close(workload->channel);
		reap(workload);
	}
	free(workload->name);
	free(workload);
}
