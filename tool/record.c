// SPDX-License-Identifier: MIT
/* `tally record`: the order in which things are started and ended, and what is said. */
#include "tool/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/commands.h"
#include "tool/descriptors.h"
#include "tool/requests.h"

/*
 * Rings wake us when they are half full; at low rates that may take minutes. So much is at most
 * missing from the file when the recording is killed.
 */
#define TICK_MS 1000
/* Who reads a pipe may be looking at what comes out. */
#define PIPE_TICK_MS 250

static int run_record(const struct tool_command *command, int argc, char **argv);

const struct tool_command record_command = {
	.name = "record",
	.summary = "sample a command or running tasks into perf.data",
	.usage = "[options] [--] [COMMAND [ARG...]]",
	.options = record_option_rows,
	.run = run_record,
};

void record_note(const struct recording *r, const char *what, ...)
{
	va_list ap;

	if (r->options.quiet)
		return;
	fputs("tally: ", stderr);
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* ---- the file's place ---- */

static bool is_pipe(const struct recording *r)
{
	return !strcmp(r->options.output, "-");
}

/* An earlier recording is kept as FILE.old, as people know it from perf. */
static void back_up(const char *path, bool undo)
{
	char old[PATH_MAX];
	struct stat st;

	if (snprintf(old, sizeof(old), "%s.old", path) >= (int)sizeof(old))
		return;
	if (undo) {
		unlink(path);
		rename(old, path);
	} else if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		rename(path, old);
	}
}

/* Snapshots are written later: whether they can be had better be known before. */
static bool may_create(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash + 1 - path), path);
	return access(folder, W_OK | X_OK) == 0;
}

/* ---- what is said ---- */

/* "12,345" */
static const char *grouped(uint64_t number, char text[32])
{
	char plain[24], *to = text;
	int length = snprintf(plain, sizeof(plain), "%" PRIu64, number);

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = plain[i];
	}
	*to = '\0';
	return text;
}

static const char *sized(uint64_t bytes, char text[32])
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	double value = bytes;
	size_t unit = 0;

	while (value >= 1000 && unit < 4) {
		value /= 1000;
		unit++;
	}
	snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static void summarize(const struct recording *r, const char *path, uint64_t bytes)
{
	char samples[32], size[32], lost[32];

	if (r->options.quiet)
		return;
	if (r->write_failed)
		fprintf(stderr, "[ tally record: the first of %s samples, %s in %s ]\n",
			grouped(r->stats.samples, samples), sized(bytes, size),
			is_pipe(r) ? "the pipe" : path);
	else
		fprintf(stderr, "[ tally record: %s samples, %s in %s, %s lost ]\n",
			grouped(r->stats.samples, samples), sized(bytes, size),
			is_pipe(r) ? "the pipe" : path, grouped(r->stats.lost, lost));
	/* Those of a snapshot came while the one before was taken. */
	if (r->stats.lost && !r->stats.throttled && !r->snapshots)
		record_note(r, "samples were lost because a ring was full: larger rings (-m) or a "
			       "lower rate (-F) keep them");
	if (r->aux_cut)
		record_note(
			r, "some of the trace is missing: it came faster than it could be written");
	if (r->stats.throttled)
		record_note(
			r,
			"sampling was throttled %" PRIu64
			" times, which leaves out samples: a lower rate (-F) or a longer period "
			"(-c) avoids that",
			r->stats.throttled);
	if (r->stats.corrupt)
		record_note(r, "%" PRIu64 " bytes of the rings were no records and are left out",
			    r->stats.corrupt);
}

/* With the features that finishing adds; of what is no plain file, the bytes written. */
static uint64_t file_size(const char *path, uint64_t written)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : written;
}

static void describe(const struct recording *r)
{
	char text[2048];

	for (size_t i = 0; i < tally_events_count(r->events); i++) {
		const struct tally_event *event = tally_events_at(r->events, i);

		tally_attr_format(event->attr, text, sizeof(text));
		fprintf(stderr, "%s: %s\n", event->name, text);
	}
	fprintf(stderr, "%zu tasks, %zu processors, %zu rings\n", tally_counters_tasks(r->counters),
		tally_counters_cpus(r->counters), tally_sampler_rings(r->sampler));
}

/* ---- opening ---- */

/* A group whose leader alone samples reads the others, which older kernels do not inherit. */
static bool reads_groups(const struct recording *r)
{
	for (size_t i = 0; i < tally_events_count(r->events); i++)
		if (tally_events_at(r->events, i)->attr->read_format & PERF_FORMAT_GROUP)
			return true;
	return false;
}

static int open_side(struct recording *r, unsigned int flags, struct tally_error *err)
{
	struct tally_target everywhere = r->target.target;
	int ret;

	if (!r->side.events)
		return 0;
	everywhere.nr_cpus = 0;
	if ((flags & TALLY_OPEN_INHERIT) && tool_target_bind(&r->target, &everywhere))
		everywhere.nr_cpus = r->target.target.nr_cpus;
	ret = tally_counters_open(r->side.events, &everywhere, flags, &r->side.counters, err);
	if (ret == 0)
		ret = tally_sampler_new(r->side.counters, NULL, &r->side.sampler, err);
	return ret;
}

static int open_counters(struct recording *r)
{
	const struct tally_target *target = &r->target.target;
	unsigned int flags = TALLY_OPEN_DISABLED | TALLY_OPEN_USER_FALLBACK;
	struct tally_sampler_options options = {
		.pages = r->options.pages,
		.overwrite = r->options.overwrite,
		.ordered = r->options.off_cpu,
	};
	struct tally_error err;

	if (record_prepare_events(r, &err) < 0)
		return tool_error(&err);
	options.aux_pages = record_aux_pages(r);
	if ((target->kind == TALLY_TARGET_PROCESS || !tool_target_given(&r->target)) &&
	    !r->options.no_inherit && !reads_groups(r)) {
		flags |= TALLY_OPEN_INHERIT;
		/* Inherited events have a ring only when they are bound to a processor. */
		if (tool_target_bind(&r->target, &r->target.target))
			return TOOL_FAILED;
	}
	if (!tool_target_given(&r->target) && !r->options.delay_ms)
		flags |= TALLY_OPEN_ENABLE_ON_EXEC;
	/* The command is forked already, and nothing else is started. */
	tool_raise_descriptors(NULL);
	if (tally_counters_open(r->events, target, flags, &r->counters, &err) < 0 ||
	    open_side(r, flags, &err) < 0 || record_adopt_attrs(r, &err) < 0 ||
	    tally_sampler_new(r->counters, &options, &r->sampler, &err) < 0)
		return tool_error(&err);
	if (r->options.verbose)
		describe(r);
	return 0;
}

static void enable_event(struct recording *r, size_t event)
{
	struct tally_counters *counters = record_counters(r, &event);

	for (size_t task = 0; task < tally_counters_tasks(counters); task++) {
		for (size_t cpu = 0; cpu < tally_counters_cpus(counters); cpu++) {
			struct tally_counter *counter =
				tally_counters_at(counters, event, task, cpu);

			if (counter)
				tally_counter_enable(counter, false);
		}
	}
}

static int open_output(struct recording *r)
{
	struct tally_record_format format;
	struct tally_error err;

	if (r->options.overwrite) {
		if (!may_create(r->options.output))
			return tool_fail("no file can be made at %s: %m", r->options.output);
		r->snapshots = record_snapshots_new();
		return r->snapshots ? 0 : tool_fail("out of memory");
	}
	if (r->options.off_cpu) {
		tally_record_format_init(&format,
					 tally_events_at(r->events, r->off_cpu_event)->attr);
		r->off_cpu = record_off_cpu_new(&format);
		if (!r->off_cpu)
			return tool_fail("out of memory");
	}
	if (!is_pipe(r))
		back_up(r->options.output, false);
	if (record_open_file(r, r->options.output, &r->writer, &err) < 0)
		return tool_error(&err);
	if (record_aux_begin(r))
		return tool_fail("out of memory");
	return 0;
}

/* What was there before: written after the tracking event runs, so that nothing falls between. */
static void synthesize(struct recording *r)
{
	struct tool_synth synth;

	if (r->snapshots) {
		record_snapshots_begin(r, false);
		return;
	}
	record_synthesize(r, &synth, false);
	record_write(r, synth.data, synth.size);
	tool_synth_free(&synth);
}

/* ---- running ---- */

struct run {
	int signals;	      /* signalfd */
	uint64_t sampling_at; /* with --delay: when to start, as now_ms() has it; else 0 */
	int interrupted;      /* the signal that asked for the end */
	struct tool_request request;
	bool done;
	bool targets_ended;
	bool command_ended;
	int status; /* wait(2) status of the command, once it has ended */
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000;
}

static void take_snapshot(struct recording *r)
{
	char path[PATH_MAX], stamp[32];
	struct tally_error err;
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &tm);
	snprintf(path, sizeof(path), "%s.%s%02ld", r->options.output, stamp,
		 now.tv_nsec / 10000000);
	if (record_snapshot(r, path, &err) < 0)
		tool_error(&err);
	else
		summarize(r, path, file_size(path, 0));
	r->stats.lost = 0;
}

/*
 * The first request to end goes to the command, unless the terminal has sent it one already, and
 * the recording goes on until it has ended. The second ends the recording.
 */
static void interrupt(struct recording *r, struct run *run, const struct signalfd_siginfo *info)
{
	if (tool_request_repeats(&run->request, info))
		return;
	if (!r->workload) {
		run->done = true;
	} else if (run->interrupted) {
		kill(tally_workload_pid(r->workload), SIGTERM);
		run->done = true;
	} else if (info->ssi_code <= 0) {
		kill(tally_workload_pid(r->workload), info->ssi_signo);
	}
	run->interrupted = info->ssi_signo;
}

static void take_signals(struct recording *r, struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGCHLD:
			if (r->workload &&
			    tally_workload_wait(r->workload, false, &run->status, NULL) == 1)
				run->done = run->command_ended = true;
			break;
		case SIGUSR2:
			if (r->snapshots)
				take_snapshot(r);
			break;
		default:
			interrupt(r, run, &info);
		}
	}
}

static void start_sampling(struct recording *r, struct run *run)
{
	tally_counters_enable(r->counters);
	run->sampling_at = 0;
}

static void stop_sampling(struct recording *r)
{
	tally_counters_disable(r->counters);
	if (r->side.counters)
		tally_counters_disable(r->side.counters);
}

static int next_timeout(const struct recording *r, const struct run *run)
{
	int tick = is_pipe(r) ? PIPE_TICK_MS : TICK_MS;
	uint64_t now = now_ms();

	if (!run->sampling_at)
		return tick;
	if (run->sampling_at <= now)
		return 0;
	return run->sampling_at - now < (uint64_t)tick ? (int)(run->sampling_at - now) : tick;
}

static void run_until_done(struct recording *r, struct run *run)
{
	struct pollfd fds[3] = {
		{.fd = run->signals, .events = POLLIN},
		{.fd = tally_sampler_fd(r->sampler), .events = POLLIN},
		{.fd = r->side.sampler ? tally_sampler_fd(r->side.sampler) : -1, .events = POLLIN},
	};

	while (!run->done) {
		/* Ended targets have nothing more to say; the command's end is a signal. */
		if (run->targets_ended)
			fds[1].fd = -1;
		if (poll(fds, 3, next_timeout(r, run)) < 0 && errno != EINTR)
			break;
		if (run->sampling_at && run->sampling_at <= now_ms())
			start_sampling(r, run);
		take_signals(r, run);
		record_drain(r, false);
		if (!run->targets_ended && tally_sampler_wait(r->sampler, 0) == -EPIPE)
			run->targets_ended = true;
		if (fds[2].fd >= 0 && tally_sampler_wait(r->side.sampler, 0) == -EPIPE)
			fds[2].fd = -1;
		if ((run->targets_ended || r->write_failed) && !r->workload)
			run->done = true;
		/* The command's own result still matters, but there is nobody to write for. */
		if (r->write_failed && !run->done) {
			stop_sampling(r);
			run->targets_ended = true;
		}
	}
}

static int finish(struct recording *r)
{
	struct tally_error err;
	uint64_t bytes;

	stop_sampling(r);
	if (r->snapshots) {
		back_up(r->options.output, false);
		if (record_snapshot(r, r->options.output, &err) < 0)
			return tool_error(&err);
		summarize(r, r->options.output, file_size(r->options.output, 0));
		return 0;
	}
	record_drain(r, true);
	record_count_lost(r);
	bytes = tally_perfdata_writer_bytes(r->writer);
	if (record_finish_file(r, r->writer, &err) < 0 && !r->write_failed)
		record_write_failed(r, &err);
	r->writer = NULL;
	summarize(r, r->options.output, file_size(r->options.output, bytes));
	return r->write_failed ? TOOL_FAILED : 0;
}

static int start_workload(struct recording *r)
{
	struct tally_error err;
	int ret = tally_workload_start(r->workload, &err);

	if (ret == 0)
		return 0;
	tool_error(&err);
	if (!is_pipe(r) && r->writer) {
		tally_perfdata_finish(r->writer, NULL);
		r->writer = NULL;
		back_up(r->options.output, true);
	}
	return ret == -ENOENT ? TOOL_NOENT : TOOL_NOEXEC;
}

/* The command's; 128 + N where a signal has ended it, or the waiting for it, as shells have it. */
static int exit_status(const struct run *run)
{
	if (!run->command_ended)
		return 128 + run->interrupted;
	return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int record(struct recording *r)
{
	struct run run = {.signals = block_signals()};
	bool attached = tool_target_given(&r->target);
	int ret;

	if (run.signals < 0)
		return tool_fail("signalfd: %m");
	ret = open_counters(r);
	if (ret == 0)
		ret = open_output(r);
	if (ret) {
		close(run.signals);
		return ret;
	}
	if (attached || r->options.delay_ms)
		enable_event(r, r->tracking);
	synthesize(r);
	if (r->workload)
		ret = start_workload(r);
	if (ret == 0) {
		if (r->options.delay_ms)
			run.sampling_at = now_ms() + r->options.delay_ms;
		else if (attached)
			start_sampling(r, &run);
		run_until_done(r, &run);
		ret = finish(r);
	}
	close(run.signals);
	if (ret == 0 && r->workload)
		ret = exit_status(&run);
	return ret;
}

/*
 * Where nothing in particular was asked for, what the kernel's timer samples will do: user mode is
 * then for who may not use that either.
 */
static int choose_counting(struct recording *r, const struct tool_counting *counting)
{
	struct tally_events *timer = NULL, *events = r->events;
	struct tally_error why;
	int ret = 0;

	if (!tally_events_count(events)) {
		timer = events = tally_events_new();
		if (!timer || tally_events_parse(timer, "cpu-clock", 0, &why) < 0)
			ret = tool_fail("out of memory");
	}
	if (!ret && tool_wants_user_mode(counting, events, &why))
		ret = tool_enter_user_mode(counting, r->options.quiet ? NULL : why.what, events);
	tally_events_free(timer);
	return ret;
}

static int prepare(struct recording *r, const struct tool_counting *counting, char **command)
{
	struct tally_error err;
	pid_t child = 0;
	int ret = record_check_options(r, *command);

	if (!ret && *command && !tool_target_given(&r->target))
		ret = choose_counting(r, counting);
	if (ret)
		return ret;
	if (*command && tally_workload_prepare(command, is_pipe(r) ? STDERR_FILENO : -1,
					       &r->workload, &err) < 0)
		return tool_error(&err);
	if (r->workload)
		child = tally_workload_pid(r->workload);
	ret = tool_target_resolve(&r->target, r->command, &child);
	return ret ? ret : record(r);
}

static int run_record(const struct tool_command *command, int argc, char **argv)
{
	struct tool_parse parse = {.command = command, .argc = argc, .argv = argv};
	struct recording r = {
		.command = command,
		.options = {.output = "perf.data", .clockid = -1},
		.argv = calloc(argc + 2, sizeof(*r.argv)),
		.events = tally_events_new(),
	};
	struct tool_counting counting;
	int key, ret = 0;

	if (!r.events || !r.argv) {
		tally_events_free(r.events);
		free(r.argv);
		return tool_fail("out of memory");
	}
	r.argv[0] = "tally";
	memcpy(r.argv + 1, argv, argc * sizeof(*argv));
	key = tool_choose_counting(&counting, command, argc, argv, RECORD_KEY_PMU);
	r.elsewhere = counting.own;
	if (key > 0)
		ret = key;
	while (ret == 0 && key >= 0 && (key = tool_next_option(&parse)) > 0)
		ret = record_parse_option(&r, key, parse.argument);
	tool_end_options(&parse);
	if (ret == 0 && key < 0)
		ret = key == -2 ? TOOL_OK : TOOL_USAGE;
	else if (ret == 0)
		ret = prepare(&r, &counting, argv + parse.index);
	if (r.writer)
		tally_perfdata_finish(r.writer, NULL);
	record_off_cpu_free(r.off_cpu);
	record_snapshots_free(r.snapshots);
	record_aux_free(r.aux);
	tally_sampler_free(r.sampler);
	tally_sampler_free(r.side.sampler);
	tally_counters_close(r.counters);
	tally_counters_close(r.side.counters);
	tally_workload_free(r.workload);
	tally_events_free(r.events);
	tally_events_free(r.side.events);
	tool_target_release(&r.target);
	free(r.argv);
	return ret;
}
