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
#include "tool/parts.h"

enum {
	OPTION_PARANOID = 256,
	OPTION_RATE,
	OPTION_COUNTERS,
	OPTION_HOST,
	OPTION_CPU_MODEL,
	OPTION_CODE,
	OPTION_ADDRESSES
};

static const struct tool_option option_table[] = {
	{OPTION_PARANOID, "paranoid", TOOL_NUMBER, .metavar = "LEVEL",
	 .help = "the perf_event_paranoid that the command sees and has to obey (default 2)"},
	{OPTION_RATE, "max-sample-rate", TOOL_NUMBER, .metavar = "N",
	 .help = "samples a second of an event, above which it is throttled (default 100000)"},
	{OPTION_COUNTERS, "counters", TOOL_NUMBER, .metavar = "N",
	 .help = "how many counters the virtual PMU has, as hardware has few (default: no limit)"},
	{OPTION_HOST, "host", TOOL_WORD, .metavar = "auto|never",
	 .help = "whether the kernel counts what it can: software events, tracepoints (default auto)"},
	{OPTION_CPU_MODEL, "cpu-model", TOOL_WORD, .metavar = "reference|host",
	 .help = "whose caches and TLBs the model has: the same everywhere, or this processor's"},
	{OPTION_CODE, "code", TOOL_WORD, .metavar = "shared|own",
	 .help = "whether processes leave translated code to those that execute the same program "
		 "(default shared)"},
	{OPTION_ADDRESSES, "addresses", TOOL_WORD, .metavar = "random|fixed",
	 .help = "fixed: each run has the same, and so the same counts, also where 'setarch -R' is "
		 "refused"},
	{0},
};

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

/* 0, or TOOL_USAGE once it has said what is wrong. */
static int set_number(const struct tool_command *command, const char *what, const char *argument,
		      int least, int most, int *value)
{
	char *end;
	long number = strtol(argument, &end, 10);

	if (end == argument || *end || number < least || number > most)
		return tool_usage(command, "--%s takes a number from %d to %d, not '%s'", what,
				  least, most, argument);
	*value = (int)number;
	return 0;
}

/* @value: whether it is @yes. */
static int set_choice(const struct tool_command *command, const char *what, const char *yes,
		      const char *no, const char *argument, bool *value)
{
	*value = !strcmp(argument, yes);
	if (!*value && strcmp(argument, no))
		return tool_usage(command, "--%s takes %s or %s, not '%s'", what, yes, no,
				  argument);
	return 0;
}

static int set_machine(const struct tool_command *command, const char *argument,
		       struct monitor_options *options)
{
	char rounded[512];

	if (!strcmp(argument, "reference")) {
		options->machine = (struct machine){0};
		return 0;
	}
	if (strcmp(argument, "host"))
		return tool_usage(command, "--cpu-model takes reference or host, not '%s'",
				  argument);
	monitor_model_host(options, rounded, sizeof(rounded));
	if (*rounded)
		fprintf(stderr, "tally: the model differs from this processor: %s\n", rounded);
	return 0;
}

static int set_option(const struct tool_command *command, int key, const char *argument,
		      struct monitor_options *options)
{
	switch (key) {
	case OPTION_PARANOID:
		return set_number(command, "paranoid", argument, -1, 4, &options->paranoid);
	case OPTION_RATE:
		return set_number(command, "max-sample-rate", argument, 1, 1000000000,
				  &options->max_sample_rate);
	case OPTION_COUNTERS:
		return set_number(command, "counters", argument, 0, 64, &options->counters);
	case OPTION_CPU_MODEL:
		return set_machine(command, argument, options);
	case OPTION_ADDRESSES:
		return set_choice(command, "addresses", "fixed", "random", argument,
				  &options->fixed);
	case OPTION_CODE:
		return set_choice(command, "code", "shared", "own", argument,
				  &options->shares_code);
	default:
		return set_choice(command, "host", "auto", "never", argument, &options->host);
	}
}

static int run(const struct tool_command *command, int argc, char **argv)
{
	struct tool_parse parse = {.command = command, .argc = argc, .argv = argv};
	struct monitor_options options = {
		.paranoid = 2,
		.max_sample_rate = 100000,
		.host = true,
		.shares_code = true,
	};
	struct tally_error err;
	char runtime[PATH_MAX];
	int key, status;

	while ((key = tool_next_option(&parse)) > 0)
		if (set_option(command, key, parse.argument, &options)) {
			tool_end_options(&parse);
			return TOOL_USAGE;
		}
	if (key)
		return key == -2 ? TOOL_OK : TOOL_USAGE;
	if (parse.index >= argc)
		return tool_usage(command, "no command to run");
	if (!tool_find_part("tally-rt", runtime))
		return tool_fail(
			"cannot find tally-rt, which belongs to tally: install tally anew");
	if (monitor_run(runtime, &options, argv + parse.index, &status, &err)) {
		tool_error(&err);
		return err.code == -ENOENT || err.code == -ENOMEM ? TOOL_NOENT : TOOL_NOEXEC;
	}
	return end_like(status);
}

const struct tool_command run_command = {
	.name = "run",
	.summary = "run a command under the translator",
	.usage = "[options] [--] COMMAND [ARG...]",
	.options = option_table,
	.run = run,
};
