// SPDX-License-Identifier: MIT
/*
 * The course of a measurement. All that can happen comes through one ppoll(2): the end of the
 * command (SIGCHLD) or of the processes watched (a pidfd each), a signal to us, the next deadline.
 * The signals are blocked throughout, so that none is missed between two calls; the command itself
 * starts with none blocked.
 */
#include "tool/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/command.h"
#include "tool/descriptors.h"
#include "tool/requests.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* How often to look after a thread that this kernel has no pidfd for. */
#define LOOK_SECONDS 0.05

struct watch {
	struct pollfd *fds; /* [0] is the signalfd, then one for each process or thread */
	size_t nr;
	size_t alive;
	bool looking; /* some have no pidfd: look for them by kill(2) */
	sigset_t before;
};

enum wake {
	WAKE_DEADLINE,
	WAKE_COMMAND, /* SIGCHLD: it may have ended */
	WAKE_SIGNAL,  /* somebody wants us to stop */
	WAKE_GONE,    /* nothing is left to watch */
};

static int open_pidfd(pid_t id, bool thread)
{
	int fd = (int)syscall(SYS_pidfd_open, id, thread ? PIDFD_THREAD : 0);

	if (fd < 0 && thread && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, id, 0);
	return fd;
}

static int start_watch(struct watch *watch, const struct stat_options *options)
{
	const struct tally_target *target = &options->target.target;
	bool thread = options->target.tids;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &watch->before);
	watch->fds = calloc(target->nr_ids + 1, sizeof(*watch->fds));
	if (!watch->fds)
		return -ENOMEM;
	watch->fds[0].fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	watch->nr = 1;
	if (watch->fds[0].fd < 0)
		return -errno;
	for (size_t i = 0; i < target->nr_ids; i++) {
		watch->fds[watch->nr].fd = open_pidfd(target->ids[i], thread);
		if (watch->fds[watch->nr].fd < 0 && errno != ESRCH)
			watch->looking = true;
		watch->nr++;
	}
	watch->alive = target->nr_ids;
	for (size_t i = 0; i < watch->nr; i++)
		watch->fds[i].events = POLLIN;
	return 0;
}

/* From here on a signal ends us as it ends everybody. */
static void stop_watch(struct watch *watch)
{
	for (size_t i = 0; i < watch->nr; i++)
		if (watch->fds[i].fd >= 0)
			close(watch->fds[i].fd);
	free(watch->fds);
	watch->fds = NULL;
	watch->nr = 0;
	sigprocmask(SIG_SETMASK, &watch->before, NULL);
}

static bool read_signal(struct watch *watch, struct signalfd_siginfo *info)
{
	return read(watch->fds[0].fd, info, sizeof(*info)) == sizeof(*info);
}

static void look_after_targets(struct watch *watch, const struct tally_target *target)
{
	watch->alive = 0;
	for (size_t i = 0; i < target->nr_ids; i++) {
		struct pollfd *fd = &watch->fds[i + 1];

		if (fd->fd >= 0 && fd->revents) {
			close(fd->fd);
			fd->fd = -1;
			fd->events = 0;
		} else if (fd->fd >= 0 || (fd->events && !kill(target->ids[i], 0))) {
			watch->alive++;
		}
	}
}

/* Waits for whatever comes first; @deadline is on the clock of stat_now(), or INFINITY. */
static enum wake wait_for(struct watch *watch, const struct stat_options *options, double deadline,
			  struct signalfd_siginfo *info)
{
	const struct tally_target *target = &options->target.target;

	for (;;) {
		double rest = deadline - stat_now();
		struct timespec timeout;

		if (rest <= 0)
			return WAKE_DEADLINE;
		if (watch->looking && rest > LOOK_SECONDS)
			rest = LOOK_SECONDS;
		if (isfinite(rest)) {
			timeout.tv_sec = (time_t)rest;
			timeout.tv_nsec = (long)((rest - (double)timeout.tv_sec) * 1e9);
		}
		if (ppoll(watch->fds, watch->nr, isfinite(rest) ? &timeout : NULL, NULL) < 0 &&
		    errno != EINTR)
			return WAKE_SIGNAL;
		if (read_signal(watch, info))
			return info->ssi_signo == SIGCHLD ? WAKE_COMMAND : WAKE_SIGNAL;
		if (target->nr_ids) {
			look_after_targets(watch, target);
			if (!watch->alive)
				return WAKE_GONE;
		}
	}
}

/* One run: of the command, or until the target is gone or the time is up. */
struct run {
	struct stat_session *stat;
	struct watch *watch;
	struct tally_workload *workload;	/* or NULL */
	double start, end;			/* of counting */
	double enable_at, stop_at, interval_at; /* INFINITY: never */
	double interval_start;
	unsigned int intervals;
	bool ended;	    /* the command */
	bool leave_command; /* it goes on without being measured */
	struct tool_request request;
	struct rusage usage;
};

static double earliest(const struct run *run)
{
	return fmin(run->enable_at, fmin(run->stop_at, run->interval_at));
}

static const struct stat_printer *printer(const struct stat_session *stat)
{
	static const struct stat_printer *const printers[] = {
		[STAT_TEXT] = &stat_text,
		[STAT_CSV] = &stat_csv,
		[STAT_JSON] = &stat_json,
	};

	return printers[stat->options.format];
}

static void print_interval(struct run *run, double time)
{
	stat_read_interval(run->stat);
	printer(run->stat)->interval(run->stat, time - run->start, time - run->interval_start);
	fflush(run->stat->options.out);
	run->interval_start = time;
	run->intervals++;
}

/* Counting begins now: all times are from here on. */
static void start_clock(struct run *run)
{
	const struct stat_options *options = &run->stat->options;

	run->stat->table.waiting = false;
	run->enable_at = INFINITY;
	run->start = run->interval_start = stat_now();
	run->stop_at = options->timeout ? run->start + 1e-3 * options->timeout : INFINITY;
	run->interval_at = options->interval ? run->start + 1e-3 * options->interval : INFINITY;
}

static void start_delay(struct run *run)
{
	run->stat->table.waiting = true;
	run->enable_at = stat_now() + 1e-3 * run->stat->options.delay;
	run->stop_at = run->interval_at = INFINITY;
}

/* False when the measurement is over. */
static bool meet_deadlines(struct run *run)
{
	const struct stat_options *options = &run->stat->options;
	double time = stat_now();

	if (time >= run->enable_at) {
		stat_enable(run->stat);
		start_clock(run);
	}
	if (time >= run->interval_at) {
		double step = 1e-3 * options->interval;

		print_interval(run, time);
		/* After a long stop the ticks that were missed are left out. */
		run->interval_at += step * (1 + floor((time - run->interval_at) / step));
		if (run->intervals == options->interval_count) {
			run->leave_command = true;
			return false;
		}
	}
	return time < run->stop_at;
}

/*
 * A Ctrl-C reaches the command by itself: both are of the terminal's foreground group. A signal
 * that was sent to us alone is handed on. After that the command has the word; whoever insists
 * (a second signal) ends the measurement. False when it is over.
 */
static bool take_signal(struct run *run, const struct signalfd_siginfo *info)
{
	bool first = !run->stat->interrupted;

	if (tool_request_repeats(&run->request, info))
		return true;
	run->stat->interrupted = true;
	if (!run->workload || !first)
		return false;
	if (info->ssi_code <= 0)
		kill(tally_workload_pid(run->workload), (int)info->ssi_signo);
	return true;
}

static bool command_ended(struct run *run)
{
	run->ended =
		run->workload && tally_workload_wait(run->workload, false, &run->stat->wait_status,
						     &run->usage) == 1;
	return run->ended;
}

static void watch_run(struct run *run)
{
	const struct stat_options *options = &run->stat->options;
	struct signalfd_siginfo info;
	bool going = true;

	while (going) {
		switch (wait_for(run->watch, options, earliest(run), &info)) {
		case WAKE_DEADLINE:
			going = meet_deadlines(run);
			break;
		case WAKE_COMMAND:
			going = !command_ended(run);
			break;
		case WAKE_SIGNAL:
			going = take_signal(run, &info);
			break;
		case WAKE_GONE:
			/* A command beside it says how long to measure. */
			going = run->workload != NULL;
			run->watch->looking = false;
			break;
		}
	}
	run->end = stat_now();
	if (run->stat->table.waiting)
		run->start = run->interval_start = run->end;
}

/*
 * The measurement ended before the command did. One that does not heed SIGTERM is waited for, until
 * somebody who is tired of that sends us another signal.
 */
static void end_command(struct run *run)
{
	pid_t pid = tally_workload_pid(run->workload);
	struct signalfd_siginfo info;

	if (!run->leave_command) {
		kill(pid, SIGTERM);
		kill(pid, SIGCONT);
	}
	while (!command_ended(run)) {
		if (wait_for(run->watch, &run->stat->options, INFINITY, &info) != WAKE_SIGNAL)
			continue;
		if (run->leave_command ? take_signal(run, &info)
				       : tool_request_repeats(&run->request, &info))
			continue;
		run->stat->interrupted = true;
		kill(pid, SIGKILL);
	}
}

static int exec_status(int code)
{
	return code == -ENOENT ? TOOL_NOENT : TOOL_NOEXEC;
}

/* Without a command there is nothing to wait for when no event opened. */
static bool can_measure(const struct stat_session *stat)
{
	const struct stat_table *table = &stat->table;

	for (size_t i = 0; i < table->nr_events; i++)
		if (!table->events[i].error.code)
			return true;
	return stat->options.command || !table->nr_events;
}

/* One line on a terminal while there is nothing else to see; taken back by hide_progress(). */
static bool has_progress(const struct stat_options *options)
{
	return isatty(STDERR_FILENO) && !options->interval &&
	       (!options->command || options->repeat != 1);
}

static void show_progress(const struct stat_session *stat)
{
	const struct stat_options *options = &stat->options;
	size_t run = stat->table.runs + 1;

	if (!has_progress(options))
		return;
	if (!options->command)
		fputs("counting (Ctrl-C ends) ", stderr);
	else if (options->repeat)
		fprintf(stderr, "run %zu of %zu ", run, options->repeat);
	else
		fprintf(stderr, "run %zu (Ctrl-C ends) ", run);
	fflush(stderr);
}

static void hide_progress(const struct stat_session *stat)
{
	if (!has_progress(&stat->options))
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}

/* @run->workload, if there is one, is prepared. */
static int open_and_watch(struct run *run)
{
	struct stat_session *stat = run->stat;
	const struct stat_options *options = &stat->options;
	struct tally_error err;
	int rc;

	rc = stat_open(stat, run->workload ? tally_workload_pid(run->workload) : -1, &err);
	if (rc < 0)
		return tool_error(&err);
	if (!stat->table.runs)
		printer(stat)->start(stat);
	if (!options->measure_command && !options->delay)
		stat_enable(stat);
	if (options->delay)
		start_delay(run);
	else
		start_clock(run);
	if (run->workload) {
		rc = tally_workload_start(run->workload, &err);
		if (rc < 0) {
			tool_error(&err);
			return exec_status(rc);
		}
	}
	if (can_measure(stat)) {
		show_progress(stat);
		watch_run(run);
		hide_progress(stat);
	} else {
		run->start = run->end = stat_now();
	}
	if (!run->ended)
		stat_disable(stat);
	if (options->interval &&
	    (!options->interval_count || run->intervals < options->interval_count))
		print_interval(run, run->end);
	stat_read(stat);
	if (run->workload && !run->ended)
		end_command(run);
	/* A run cut short says nothing about the whole ones before it. */
	if (stat->interrupted && stat->table.runs)
		stat_drop_run(stat);
	else
		stat_add_run(stat, run->end - run->start, run->workload ? &run->usage : NULL);
	return TOOL_OK;
}

static int measure(struct run *run)
{
	char **command = run->stat->options.command;
	struct tally_error err;
	struct rlimit limit;
	int status;

	if (command && tally_workload_prepare(command, -1, &run->workload, &err) < 0)
		return tool_error(&err);
	tool_raise_descriptors(&limit);
	status = open_and_watch(run);
	tool_restore_descriptors(&limit);
	return status;
}

static int status_of_command(const struct stat_session *stat)
{
	if (!stat->options.command)
		return can_measure(stat) ? TOOL_OK : TOOL_FAILED;
	return WIFEXITED(stat->wait_status) ? WEXITSTATUS(stat->wait_status)
					    : 128 + WTERMSIG(stat->wait_status);
}

int stat_run(struct stat_session *stat)
{
	const struct stat_options *options = &stat->options;
	struct watch watch = {0};
	int status = TOOL_OK;

	if (start_watch(&watch, options) < 0) {
		stop_watch(&watch);
		return tool_fail("cannot wait for signals: %s", strerror(errno));
	}
	for (size_t i = 1; status == TOOL_OK; i++) {
		struct run run = {.stat = stat, .watch = &watch};

		status = measure(&run);
		tally_workload_free(run.workload);
		stat_close(stat);
		if (stat->interrupted || i == options->repeat)
			break;
	}
	stop_watch(&watch);
	if (status != TOOL_OK)
		return status;
	printer(stat)->finish(stat);
	return status_of_command(stat);
}
