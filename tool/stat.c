// SPDX-License-Identifier: MIT
/* `tally stat`: counts events while a command runs, or of what runs already. */
#include "tool/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/command.h"
#include "tool/commands.h"
#include "tool/stat_cgroup.h"
#include "tool/user_mode.h"

#define DEFAULT_EVENTS                                                                             \
	"context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

enum {
	KEY_FILTER = 0x100,
	KEY_PER_CPU,
	KEY_PER_THREAD,
	KEY_INTERVAL_COUNT,
	KEY_TIMEOUT,
	KEY_APPEND,
	KEY_NO_BIG_NUM,
	KEY_SUMMARY,
	KEY_ALL_USER,
	KEY_ALL_KERNEL,
	KEY_EACH_CGROUP,
	KEY_LOG_FD,
	KEY_PMU,
};

static const struct tool_option option_table[] = {
	{'e', "event", TOOL_EVENT, false, "EVENTS", "what to count, separated by commas"},
	{KEY_FILTER, "filter", TOOL_TEXT, false, "FILTER", "condition on the tracepoint before it"},
	{'d', "detailed", TOOL_NONE, false, NULL,
	 "add events of the caches; twice: of the TLBs; three times: prefetches"},
	{'n', "null", TOOL_NONE, false, NULL, "count nothing, measure the time alone"},
	TOOL_PMU_OPTION(KEY_PMU),
	TOOL_TARGET_OPTIONS,
	{'G', "cgroup", TOOL_CGROUP, false, "NAMES",
	 "count the first event before it in the first of these cgroups, and so on"},
	{KEY_EACH_CGROUP, "for-each-cgroup", TOOL_CGROUP, false, "NAMES",
	 "count every event in each of these cgroups"},
	{'i', "no-inherit", TOOL_NONE, false, NULL, "leave out what the target starts later"},
	{KEY_ALL_USER, "all-user", TOOL_NONE, false, NULL, "count user code alone"},
	{KEY_ALL_KERNEL, "all-kernel", TOOL_NONE, false, NULL, "count kernel code alone"},
	{'A', "no-aggr", TOOL_NONE, false, NULL, "one line for each processor"},
	{KEY_PER_CPU, "per-cpu", TOOL_NONE, false, NULL, "the same"},
	{KEY_PER_THREAD, "per-thread", TOOL_NONE, false, NULL, "one line for each thread"},
	{'I', "interval-print", TOOL_NUMBER, false, "MSECS", "print what was counted every MSECS"},
	{KEY_INTERVAL_COUNT, "interval-count", TOOL_NUMBER, false, "N", "end after N intervals"},
	{KEY_SUMMARY, "summary", TOOL_NONE, false, NULL, "print the whole after the intervals"},
	{'r', "repeat", TOOL_NUMBER, false, "N",
	 "run the command N times (0: until Ctrl-C) and print mean and deviation"},
	{KEY_TIMEOUT, "timeout", TOOL_NUMBER, false, "MSECS", "end after MSECS"},
	{'D', "delay", TOOL_NUMBER, false, "MSECS", "count from MSECS after the start only"},
	{'x', "field-separator", TOOL_TEXT, false, "SEP", "write SEP-separated values"},
	{'j', "json", TOOL_NONE, false, NULL, "write JSON (tally-stat(1) has the schema)"},
	{'o', "output", TOOL_FILE, false, "FILE", "write to FILE, not to standard error"},
	{KEY_APPEND, "append", TOOL_NONE, false, NULL, "add to FILE"},
	{KEY_LOG_FD, "log-fd", TOOL_NUMBER, false, "FD", "write to this open descriptor"},
	{'B', "big-num", TOOL_NONE, false, NULL, "commas between thousands: the default"},
	{KEY_NO_BIG_NUM, "no-big-num", TOOL_NONE, false, NULL, "no commas between thousands"},
	{0},
};

/* What the command line says, before it is made into a session. */
struct line {
	const struct tool_command *command;
	struct stat_options *options;
	struct tally_events *events;
	unsigned int detail;
	bool null, append, all_user, all_kernel, repeats, csv, json;
	struct stat_cgroups cgroups;
	const char *output;
	int log_fd; /* -1: none */
	struct tool_counting counting;
};

static void write_list(FILE *out, const char *what, const char *plural, const int *numbers,
		       size_t nr)
{
	fprintf(out, "%s%s", what, nr == 1 ? "" : plural);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s%d", i ? "," : " ", numbers[i]);
}

/* Each once, and last what is counted everywhere. */
static void describe_cgroups(const struct stat_session *stat, FILE *out)
{
	const char *comma = "";
	bool everywhere = false;

	for (size_t i = 0; i < stat->nr_sets; i++) {
		bool seen = !stat->sets[i].cgroup;

		everywhere |= seen;
		for (size_t j = 0; j < i && !seen; j++)
			seen = stat->sets[j].cgroup &&
			       !strcmp(stat->sets[j].cgroup, stat->sets[i].cgroup);
		if (seen)
			continue;
		fprintf(out, "%scgroup %s", comma, stat->sets[i].cgroup);
		comma = ", ";
	}
	if (everywhere)
		fprintf(out, "%sthe whole system", comma);
}

void stat_describe(const struct stat_session *stat, FILE *out)
{
	const struct stat_options *options = &stat->options;
	const struct tally_target *target = &options->target.target;
	bool processors = options->target.nr_cpus; /* named, not bound by us */
	bool threads = target->kind == TALLY_TARGET_THREADS;

	if (options->measure_command) {
		fputc('\'', out);
		for (char **word = options->command; *word; word++)
			fprintf(out, "%s%s", word == options->command ? "" : " ", *word);
		fputc('\'', out);
	} else if (target->nr_ids) {
		write_list(out, threads ? "thread" : "process", threads ? "s" : "es", target->ids,
			   target->nr_ids);
	} else if (target->kind == TALLY_TARGET_CGROUP) {
		describe_cgroups(stat, out);
	} else if (!processors) {
		fputs("the whole system", out);
	}
	if (processors && target->kind != TALLY_TARGET_SYSTEM)
		fputs(" on ", out);
	if (processors)
		write_list(out, "processor", "s", target->cpus, target->nr_cpus);
}

static int bad_argument(const struct line *line, const char *what, const char *argument)
{
	return tool_usage(line->command, "%s: '%s' is none", what, argument);
}

static int parse_milliseconds(const struct line *line, const char *what, const char *argument,
			      unsigned int *value)
{
	unsigned long long number;

	if (!tool_parse_number(argument, &number) || !number || number > INT_MAX)
		return tool_usage(line->command,
				  "%s wants a number of milliseconds above 0, not '%s'", what,
				  argument);
	*value = (unsigned int)number;
	return TOOL_OK;
}

static int parse_events(struct line *line, const char *text)
{
	struct tally_error err;

	if (line->counting.own)
		return TOOL_OK;
	return tally_events_parse(line->events, text, 0, &err) < 0 ? tool_error(&err) : TOOL_OK;
}

/* -G and --for-each-cgroup, once the names have been paired with events: they are a target, too. */
static int take_cgroups(struct line *line, const char *argument, int status)
{
	if (status != TOOL_OK)
		return status;
	return tool_target_option(&line->options->target, line->command, 'G', argument);
}

/* What is shown, and when. */
static int take_output_option(struct line *line, int key, const char *argument)
{
	struct stat_options *o = line->options;
	unsigned long long number;

	switch (key) {
	case 'A':
	case KEY_PER_CPU:
		o->per_cpu = true;
		break;
	case KEY_PER_THREAD:
		o->per_thread = true;
		break;
	case 'I':
		return parse_milliseconds(line, "-I", argument, &o->interval);
	case KEY_INTERVAL_COUNT:
		if (!tool_parse_number(argument, &number) || !number || number > INT_MAX)
			return bad_argument(line, "--interval-count wants a number above 0",
					    argument);
		o->interval_count = (unsigned int)number;
		break;
	case KEY_SUMMARY:
		o->summary = true;
		break;
	case 'x':
		if (!*argument)
			return tool_usage(line->command, "-x wants a separator that is not empty");
		line->csv = true;
		o->format = STAT_CSV;
		o->separator = strcmp(argument, "\\t") ? argument : "\t";
		break;
	case 'j':
		line->json = true;
		o->format = STAT_JSON;
		break;
	case 'o':
		line->output = argument;
		break;
	case KEY_APPEND:
		line->append = true;
		break;
	case KEY_LOG_FD:
		if (!tool_parse_number(argument, &number) || number > INT_MAX)
			return bad_argument(line, "--log-fd wants the number of a descriptor",
					    argument);
		line->log_fd = (int)number;
		break;
	case 'B':
		o->big_numbers = true;
		break;
	case KEY_NO_BIG_NUM:
		o->big_numbers = false;
		break;
	}
	return TOOL_OK;
}

static int take_option(struct line *line, int key, const char *argument)
{
	struct stat_options *o = line->options;
	unsigned long long number;
	struct tally_error err;

	switch (key) {
	case 'e':
		return parse_events(line, argument);
	case KEY_FILTER:
		if (tally_events_set_filter(line->events, argument, &err) < 0)
			return tool_error(&err);
		break;
	case 'd':
		line->detail++;
		break;
	case 'n':
		line->null = true;
		break;
	case 'p':
	case 't':
	case 'a':
	case 'C':
		return tool_target_option(&o->target, line->command, key, argument);
	case 'G':
		return take_cgroups(line, argument,
				    stat_cgroups_pair(&line->cgroups, line->command, argument,
						      tally_events_count(line->events)));
	case KEY_EACH_CGROUP:
		return take_cgroups(line, argument,
				    stat_cgroups_each(&line->cgroups, line->command, argument));
	case 'i':
		o->no_inherit = true;
		break;
	case KEY_ALL_USER:
		line->all_user = true;
		break;
	case KEY_ALL_KERNEL:
		line->all_kernel = true;
		break;
	case 'r':
		if (!tool_parse_number(argument, &number))
			return bad_argument(line, "-r wants a number", argument);
		o->repeat = number;
		line->repeats = true;
		break;
	case KEY_TIMEOUT:
		return parse_milliseconds(line, "--timeout", argument, &o->timeout);
	case 'D':
		return parse_milliseconds(line, "--delay", argument, &o->delay);
	default:
		return take_output_option(line, key, argument);
	}
	return TOOL_OK;
}

/* What contradicts itself, before anything is opened or run. */
static int check_line(const struct line *line)
{
	const struct tool_command *command = line->command;
	const struct stat_options *o = line->options;

	if (line->all_user && line->all_kernel)
		return tool_usage(command, "--all-user and --all-kernel leave nothing to count");
	if (line->repeats && !o->command)
		return tool_usage(command, "-r wants a command to repeat");
	if (o->interval && line->repeats && o->repeat != 1)
		return tool_usage(command, "-I and -r do not go together");
	if (o->interval_count && !o->interval)
		return tool_usage(command, "--interval-count wants an interval (-I)");
	if (o->per_thread && !o->target.pids && !o->target.tids)
		return tool_usage(command,
				  "--per-thread wants processes or threads (-p, -t): those "
				  "that a command starts are counted with it");
	if (o->per_thread && o->per_cpu)
		return tool_usage(command, "choose one of --per-thread and --per-cpu");
	if (o->per_thread && line->repeats && o->repeat != 1)
		return tool_usage(command, "--per-thread and -r do not go together");
	if (line->detail && stat_cgroups_are_paired(&line->cgroups))
		return tool_usage(command, "-d adds events that -G names no cgroup for: "
					   "use --for-each-cgroup");
	if (line->csv && line->json)
		return tool_usage(command, "choose one of -x and -j");
	if (line->output && line->log_fd >= 0)
		return tool_usage(command, "choose one of -o and --log-fd");
	if (line->append && !line->output)
		return tool_usage(command, "--append wants a file to append to (-o)");
	if (line->null && (tally_events_count(line->events) || line->detail || o->interval))
		return tool_usage(command, "-n counts nothing: leave out -e, -d and -I");
	return TOOL_OK;
}

static int choose_target(const struct line *line)
{
	static const pid_t not_yet = -1;
	struct stat_options *o = line->options;
	int status;

	if (!tool_target_given(&o->target)) {
		o->measure_command = o->command;
		o->target.all = !o->command;
	}
	status = tool_target_resolve(&o->target, line->command, &not_yet);
	if (o->measure_command)
		o->target.target.nr_ids = 0;
	return status;
}

static bool by_task(const struct tally_target *target)
{
	return target->kind == TALLY_TARGET_PROCESS || target->kind == TALLY_TARGET_THREADS;
}

/* A task is counted on each processor apart only where that was asked for. */
static int choose_cpus(struct stat_options *o)
{
	if (!o->per_cpu || !by_task(&o->target.target))
		return TOOL_OK;
	return tool_target_bind(&o->target, &o->target.target);
}

static int choose_events(struct line *line)
{
	static const char *const details[] = {
		"L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
		("L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,"
		 "iTLB-load-misses"),
		"L1-dcache-prefetches,L1-dcache-prefetch-misses",
	};
	const size_t nr_details = sizeof(details) / sizeof(details[0]);
	int status = TOOL_OK;

	if (line->null)
		return TOOL_OK;
	if (!tally_events_count(line->events))
		status = parse_events(line, by_task(&line->options->target.target)
						    ? "task-clock," DEFAULT_EVENTS
						    : "cpu-clock," DEFAULT_EVENTS);
	for (size_t i = 0; i < nr_details && i < line->detail && status == TOOL_OK; i++)
		status = parse_events(line, details[i]);
	for (size_t i = 0; i < tally_events_count(line->events); i++) {
		struct perf_event_attr *attr = tally_events_at(line->events, i)->attr;

		if (line->all_user)
			attr->exclude_kernel = attr->exclude_hv = 1;
		if (line->all_kernel)
			attr->exclude_user = 1;
	}
	return status;
}

static int open_output(const struct line *line)
{
	struct stat_options *o = line->options;
	char date[64];
	time_t seconds;

	o->out = stderr;
	if (line->log_fd >= 0) {
		int fd = fcntl(line->log_fd, F_DUPFD_CLOEXEC, 0);

		o->out = fd < 0 ? NULL : fdopen(fd, "w");
		return o->out ? TOOL_OK
			      : tool_fail("cannot write to descriptor %d: %s", line->log_fd,
					  strerror(errno));
	}
	if (!line->output)
		return TOOL_OK;
	o->out = fopen(line->output, line->append ? "ae" : "we");
	if (!o->out)
		return tool_fail("cannot write '%s': %s", line->output, strerror(errno));
	if (o->format == STAT_TEXT) {
		seconds = time(NULL);
		strftime(date, sizeof(date), "%F %T %z", localtime(&seconds));
		fprintf(o->out, "# started on %s\n", date);
	}
	return TOOL_OK;
}

static int close_output(const struct line *line, int status)
{
	FILE *out = line->options->out;
	bool failed;

	if (!out)
		return status;
	failed = fflush(out) || ferror(out);
	if (out != stderr)
		failed |= fclose(out) != 0;
	if (failed)
		return tool_fail("cannot write the results%s%s: %s", line->output ? " to " : "",
				 line->output ? line->output : "", strerror(errno));
	return status;
}

static int parse_line(struct line *line, int argc, char **argv)
{
	struct tool_parse parse = {.command = line->command, .argc = argc, .argv = argv};
	int key = tool_choose_counting(&line->counting, line->command, argc, argv, KEY_PMU);
	int status;

	if (key)
		return key;
	while ((key = tool_next_option(&parse)) > 0) {
		status = take_option(line, key, parse.argument);
		if (status != TOOL_OK) {
			tool_end_options(&parse);
			return status;
		}
	}
	if (key < 0)
		return key;
	if (parse.index < argc)
		line->options->command = argv + parse.index;
	return TOOL_OK;
}

/* The table is for programs where it shares standard error with nobody: there it tells the source.
 */
static int choose_counting(const struct line *line)
{
	const struct stat_options *o = line->options;
	const bool say = o->format == STAT_TEXT || line->output || line->log_fd >= 0;
	struct tally_error why;

	if (!tool_wants_user_mode(&line->counting, line->events, &why))
		return TOOL_OK;
	if (!o->measure_command) {
		line->options->out_of_reach = true;
		return TOOL_OK;
	}
	return tool_enter_user_mode(&line->counting, say ? why.what : NULL, line->events);
}

static int prepare(struct line *line, struct stat_session *stat)
{
	int status = check_line(line);

	if (status == TOOL_OK)
		status = choose_target(line);
	if (status == TOOL_OK)
		status = choose_cpus(line->options);
	if (status == TOOL_OK)
		status = choose_events(line);
	if (status == TOOL_OK)
		status = choose_counting(line);
	if (status == TOOL_OK && !line->null)
		status = stat_cgroups_make_sets(&line->cgroups, line->command, line->events, stat);
	if (status == TOOL_OK)
		status = open_output(line);
	return status;
}

static int run(const struct tool_command *command, int argc, char **argv)
{
	struct tool_reasons reasons = {0};
	struct stat_session stat = {.options = {.big_numbers = true, .repeat = 1},
				    .reasons = &reasons};
	struct line line = {.command = command, .options = &stat.options, .log_fd = -1};
	int status;

	line.events = tally_events_new();
	if (!line.events)
		return tool_fail("out of memory");
	status = parse_line(&line, argc, argv);
	if (status == -2)
		status = TOOL_OK;
	else if (status == -1)
		status = TOOL_USAGE;
	else if (status == TOOL_OK)
		status = prepare(&line, &stat);
	if (status == TOOL_OK && stat.options.out)
		status = stat_run(&stat);
	status = close_output(&line, status);
	free(stat.sets);
	free(stat.last);
	free(stat.order);
	stat_table_free(&stat.table);
	tally_events_free(line.events);
	stat_cgroups_release(&line.cgroups);
	tool_target_release(&stat.options.target);
	return status;
}

const struct tool_command stat_command = {
	.name = "stat",
	.summary = "count events while a command runs, or of what runs already",
	.usage = "[options] [--] [COMMAND [ARG...]]",
	.options = option_table,
	.run = run,
};
