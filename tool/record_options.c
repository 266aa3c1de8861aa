// SPDX-License-Identifier: MIT
/* The options of `tally record`. */
#include "tool/record.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
	KEY_CALL_GRAPH = 256,
	KEY_SWITCH_EVENTS,
	KEY_OFF_CPU,
	KEY_OVERWRITE,
	KEY_FILTER,
	KEY_NO_INHERIT,
	KEY_USER_CALLCHAINS,
	KEY_KERNEL_CALLCHAINS,
	KEY_CLOCKID,
	KEY_PHYS_DATA,
	KEY_DATA_PAGE_SIZE,
	KEY_CODE_PAGE_SIZE,
	KEY_TRANSACTION,
	KEY_USER_REGS,
	KEY_SAMPLE_CPU,
	KEY_ALL_CGROUPS,
	KEY_NAMESPACES,
};

const struct tool_option record_option_rows[] = {
	{'e', "event", TOOL_EVENT, false, "EVENT,...",
	 "what to sample; default: cycles, or cpu-clock where there is no PMU"},
	{KEY_FILTER, "filter", TOOL_TEXT, false, "FILTER", "filter of the tracepoint before it"},
	{'F', "freq", TOOL_TEXT, false, "RATE", "samples a second, or max; default: 4000"},
	{'c', "count", TOOL_NUMBER, false, "N", "sample every N occurrences instead"},
	{'g', NULL, TOOL_NONE, false, NULL, "record call chains, by frame pointers"},
	{KEY_CALL_GRAPH, "call-graph", TOOL_TEXT, false, "fp|dwarf[,SIZE]|lbr",
	 "record call chains this way; dwarf copies SIZE bytes of stack (8192)"},
	{KEY_USER_CALLCHAINS, "user-callchains", TOOL_NONE, false, NULL,
	 "leave the kernel's side out of call chains"},
	{KEY_KERNEL_CALLCHAINS, "kernel-callchains", TOOL_NONE, false, NULL,
	 "leave the user's side out of call chains"},
	{'d', "data", TOOL_NONE, false, NULL,
	 "also the address of the data, and where it came from"},
	{KEY_PHYS_DATA, "phys-data", TOOL_NONE, false, NULL, "also its physical address"},
	{KEY_DATA_PAGE_SIZE, "data-page-size", TOOL_NONE, false, NULL,
	 "also the size of the page that the data is in"},
	{KEY_CODE_PAGE_SIZE, "code-page-size", TOOL_NONE, false, NULL,
	 "also the size of the page that the code is in"},
	{'W', "weight", TOOL_NONE, false, NULL, "also what the access cost: latencies"},
	{KEY_TRANSACTION, "transaction", TOOL_NONE, false, NULL,
	 "also why a transaction was aborted"},
	{'b', "branch-any", TOOL_NONE, false, NULL, "also the last branches taken"},
	{'j', "branch-filter", TOOL_TEXT, false, "KINDS",
	 "also the last branches of these kinds: any_call,u ..."},
	{'I', "intr-regs", TOOL_NONE, false, NULL, "also the registers"},
	{KEY_USER_REGS, "user-regs", TOOL_NONE, false, NULL, "also the registers of user space"},
	{KEY_SAMPLE_CPU, "sample-cpu", TOOL_NONE, false, NULL, "also the processor"},
	{KEY_ALL_CGROUPS, "all-cgroups", TOOL_NONE, false, NULL, "also the cgroup"},
	{KEY_NAMESPACES, "namespaces", TOOL_NONE, false, NULL,
	 "record which namespaces processes are in"},
	TOOL_PMU_OPTION(RECORD_KEY_PMU),
	TOOL_TARGET_OPTIONS,
	{'G', "cgroup", TOOL_CGROUP, false, "PATH", "measure the tasks of this cgroup"},
	{KEY_NO_INHERIT, "no-inherit", TOOL_NONE, false, NULL,
	 "leave out what the measured processes start"},
	{KEY_SWITCH_EVENTS, "switch-events", TOOL_NONE, false, NULL, "record context switches"},
	{KEY_OFF_CPU, "off-cpu", TOOL_NONE, false, NULL,
	 "sample where tasks wait, weighted by how long (nanoseconds)"},
	{'D', "delay", TOOL_NUMBER, false, "MS",
	 "start sampling MS milliseconds after the command"},
	{'o', "output", TOOL_FILE, false, "FILE", "default: perf.data; - is standard output"},
	{'z', "compression-level", TOOL_NUMBER, true, "LEVEL", "compress with zstd (1 to 22)"},
	{'m', "mmap-pages", TOOL_TEXT, false, "PAGES|SIZE", "size of each ring: 512, 2M"},
	{KEY_OVERWRITE, "overwrite", TOOL_NONE, false, NULL,
	 "keep the newest samples in the rings; SIGUSR2 writes FILE.TIMESTAMP"},
	{'k', "clockid", TOOL_TEXT, false, "CLOCK", "clock of the time stamps: monotonic, ..."},
	{'q', "quiet", TOOL_NONE, false, NULL, "say nothing but errors"},
	{'v', "verbose", TOOL_NONE, false, NULL, "show what is opened"},
	{0},
};

static int parse_call_graph(struct recording *r, const char *argument)
{
	struct record_options *o = &r->options;
	unsigned long long size;

	if (!strcmp(argument, "fp")) {
		o->callgraph = TALLY_CALLGRAPH_FP;
	} else if (!strcmp(argument, "lbr")) {
		o->callgraph = TALLY_CALLGRAPH_LBR;
	} else if (!strcmp(argument, "dwarf")) {
		o->callgraph = TALLY_CALLGRAPH_DWARF;
	} else if (!strncmp(argument, "dwarf,", 6)) {
		/* The kernel takes multiples of 8 that fit in a record beside the rest. */
		if (!tool_parse_number(argument + 6, &size) || !size || size > 65528 - 1024)
			return tool_usage(
				r->command,
				"'--call-graph %s': a stack of 8 to %d bytes can be copied",
				argument, 65528 - 1024);
		o->callgraph = TALLY_CALLGRAPH_DWARF;
		o->stack_size = (size + 7) & ~7ull;
	} else {
		return tool_usage(r->command,
				  "'--call-graph %s': expected fp, dwarf, dwarf,SIZE or lbr",
				  argument);
	}
	return 0;
}

/* The words are those of perf, whose scripts people bring along. */
static int parse_branches(struct recording *r, const char *argument)
{
	static const struct {
		const char *name;
		uint64_t bit;
	} kinds[] = {
		{"u", PERF_SAMPLE_BRANCH_USER},
		{"k", PERF_SAMPLE_BRANCH_KERNEL},
		{"hv", PERF_SAMPLE_BRANCH_HV},
		{"any", PERF_SAMPLE_BRANCH_ANY},
		{"any_call", PERF_SAMPLE_BRANCH_ANY_CALL},
		{"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN},
		{"ind_call", PERF_SAMPLE_BRANCH_IND_CALL},
		{"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP},
		{"call", PERF_SAMPLE_BRANCH_CALL},
		{"cond", PERF_SAMPLE_BRANCH_COND},
		{"abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX},
		{"in_tx", PERF_SAMPLE_BRANCH_IN_TX},
		{"no_tx", PERF_SAMPLE_BRANCH_NO_TX},
		{"stack", PERF_SAMPLE_BRANCH_CALL_STACK},
		{"no_flags", PERF_SAMPLE_BRANCH_NO_FLAGS},
		{"no_cycles", PERF_SAMPLE_BRANCH_NO_CYCLES},
		{"save_type", PERF_SAMPLE_BRANCH_TYPE_SAVE},
		{"priv", PERF_SAMPLE_BRANCH_PRIV_SAVE},
	};
	/* Words that say which of the branches, not which branches. */
	const uint64_t modes = PERF_SAMPLE_BRANCH_PLM_ALL | PERF_SAMPLE_BRANCH_NO_FLAGS |
			       PERF_SAMPLE_BRANCH_NO_CYCLES | PERF_SAMPLE_BRANCH_TYPE_SAVE |
			       PERF_SAMPLE_BRANCH_PRIV_SAVE;
	struct record_options *o = &r->options;

	for (const char *word = argument;; word++) {
		size_t length = strcspn(word, ","), i = 0;

		while (i < sizeof(kinds) / sizeof(kinds[0]) &&
		       (strlen(kinds[i].name) != length || strncmp(kinds[i].name, word, length)))
			i++;
		if (i == sizeof(kinds) / sizeof(kinds[0]))
			return tool_usage(
				r->command,
				"'%.*s' is no kind of branch: there are any, any_call, "
				"any_ret, ind_call, ind_jmp, call, cond, abort_tx, in_tx, "
				"no_tx, stack, with u, k, hv, no_flags, no_cycles, "
				"save_type, priv",
				(int)length, word);
		o->branch_sample_type |= kinds[i].bit;
		word += length;
		if (!*word)
			break;
	}
	if (!(o->branch_sample_type & ~modes))
		o->branch_sample_type |= PERF_SAMPLE_BRANCH_ANY;
	o->sample_type |= PERF_SAMPLE_BRANCH_STACK;
	return 0;
}

/* The PERF_SAMPLE_ bits of an option that asks for nothing else; 0 when it is another. */
static uint64_t sample_bits(int key)
{
	switch (key) {
	case 'd':
		return PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC;
	case KEY_PHYS_DATA:
		return PERF_SAMPLE_PHYS_ADDR;
	case KEY_DATA_PAGE_SIZE:
		return PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
	case KEY_CODE_PAGE_SIZE:
		return PERF_SAMPLE_CODE_PAGE_SIZE;
	case 'W':
		return PERF_SAMPLE_WEIGHT_STRUCT;
	case KEY_TRANSACTION:
		return PERF_SAMPLE_TRANSACTION;
	case 'I':
		return PERF_SAMPLE_REGS_INTR;
	case KEY_USER_REGS:
		return PERF_SAMPLE_REGS_USER;
	case KEY_SAMPLE_CPU:
		return PERF_SAMPLE_CPU;
	default:
		return 0;
	}
}

static int parse_clock(struct recording *r, const char *argument)
{
	static const struct {
		const char *name;
		int id;
	} clocks[] = {
		{"realtime", CLOCK_REALTIME}, {"monotonic", CLOCK_MONOTONIC},
		{"mono", CLOCK_MONOTONIC},    {"monotonic_raw", CLOCK_MONOTONIC_RAW},
		{"raw", CLOCK_MONOTONIC_RAW}, {"boottime", CLOCK_BOOTTIME},
		{"boot", CLOCK_BOOTTIME},     {"tai", CLOCK_TAI},
	};
	unsigned long long id;

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (!strcasecmp(argument, clocks[i].name) ||
		    (!strncasecmp(argument, "CLOCK_", 6) &&
		     !strcasecmp(argument + 6, clocks[i].name))) {
			r->options.clockid = clocks[i].id;
			return 0;
		}
	}
	if (!tool_parse_number(argument, &id) || id > INT_MAX)
		return tool_usage(r->command,
				  "'-k %s': expected monotonic, monotonic_raw, realtime, boottime, "
				  "tai or a clock's number",
				  argument);
	r->options.clockid = id;
	return 0;
}

/* A number of pages, or of bytes when it has a suffix; rounded up to a power of two. */
static int parse_pages(struct recording *r, const char *argument)
{
	unsigned long long value;
	size_t pages = 1, length = strlen(argument);

	if (!tool_parse_number(argument, &value) || !value || value > (1ull << 40))
		return tool_usage(r->command, "'-m %s': expected pages or a size: 512, 2M",
				  argument);
	if (strchr("kmgKMG", argument[length - 1]))
		value = (value + sysconf(_SC_PAGESIZE) - 1) / sysconf(_SC_PAGESIZE);
	while (pages < value)
		pages *= 2;
	r->options.pages = pages;
	return 0;
}

static int parse_number(const struct recording *r, int key, const char *argument,
			unsigned long long min, unsigned long long max, uint64_t *value)
{
	unsigned long long number;

	if (!tool_parse_number(argument, &number) || number < min || number > max)
		return tool_usage(r->command, "'-%c %s': expected a number from %llu to %llu", key,
				  argument, min, max);
	*value = number;
	return 0;
}

int record_parse_option(struct recording *r, int key, const char *argument)
{
	struct record_options *o = &r->options;
	struct tally_error err;
	uint64_t number = 0;
	int ret = 0;

	if (sample_bits(key)) {
		o->sample_type |= sample_bits(key);
		return 0;
	}
	switch (key) {
	case RECORD_KEY_PMU:
		return 0; /* looked at already */
	case 'b':
		return parse_branches(r, "any");
	case 'j':
		return parse_branches(r, argument);
	case KEY_ALL_CGROUPS:
		o->all_cgroups = true;
		o->sample_type |= PERF_SAMPLE_CGROUP;
		return 0;
	case KEY_NAMESPACES:
		o->namespaces = true;
		return 0;
	case 'e':
		ret = r->elsewhere ? 0 : tally_events_parse(r->events, argument, 0, &err);
		return ret < 0 ? tool_error(&err) : 0;
	case KEY_FILTER:
		ret = tally_events_set_filter(r->events, argument, &err);
		return ret < 0 ? tool_error(&err) : 0;
	case 'F':
		o->frequency_max = !strcmp(argument, "max");
		if (!o->frequency_max)
			ret = parse_number(r, key, argument, 1, INT64_MAX, &o->frequency);
		return ret;
	case 'c':
		return parse_number(r, key, argument, 1, INT64_MAX, &o->period);
	case 'g':
		if (o->callgraph == TALLY_CALLGRAPH_UNSET)
			o->callgraph = TALLY_CALLGRAPH_FP;
		return 0;
	case KEY_CALL_GRAPH:
		return parse_call_graph(r, argument);
	case KEY_USER_CALLCHAINS:
		o->no_kernel_callchain = true;
		return 0;
	case KEY_KERNEL_CALLCHAINS:
		o->no_user_callchain = true;
		return 0;
	case KEY_NO_INHERIT:
		o->no_inherit = true;
		return 0;
	case KEY_SWITCH_EVENTS:
		o->switch_events = true;
		return 0;
	case KEY_OFF_CPU:
		o->off_cpu = true;
		return 0;
	case 'D':
		ret = parse_number(r, key, argument, 0, INT_MAX, &number);
		if (!ret)
			o->delay_ms = number;
		return ret;
	case 'o':
		o->output = argument;
		return 0;
	case 'z':
		number = 1;
		if (argument)
			ret = parse_number(r, key, argument, 1, 22, &number);
		o->zstd_level = number;
		return ret;
	case 'm':
		return parse_pages(r, argument);
	case KEY_OVERWRITE:
		o->overwrite = true;
		return 0;
	case 'k':
		return parse_clock(r, argument);
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	default:
		return tool_target_option(&r->target, r->command, key, argument);
	}
}

int record_check_options(const struct recording *r, bool has_command)
{
	const struct record_options *o = &r->options;

	if (!has_command && !tool_target_given(&r->target))
		return tool_usage(r->command, "what to record? A command, -p PID or -a");
	if (o->overwrite && o->off_cpu)
		return tool_usage(r->command,
				  "--overwrite and --off-cpu exclude each other: waits are "
				  "known only when they end");
	if (strcmp(o->output, "-") != 0)
		return 0;
	if (o->overwrite)
		return tool_usage(r->command,
				  "--overwrite writes files: it cannot write to a pipe");
	if (isatty(STDOUT_FILENO))
		return tool_usage(r->command,
				  "'-o -': standard output is a terminal, and a recording "
				  "is not text");
	return 0;
}
