/* SPDX-License-Identifier: MIT */
/* What to measure, as the options -p -t -C -a -G and the command say it. */
#ifndef TOOL_TARGET_H
#define TOOL_TARGET_H

#include <stdbool.h>

#include <tally/counter.h>

#include "tool/command.h"

struct tool_target {
	struct tally_target target; /* valid after tool_target_resolve() */
	int *pids, *tids, *cpus;
	size_t nr_pids, nr_tids, nr_cpus;
	const char *cgroup;
	bool all;
	int *online; /* of tool_target_bind() */
	size_t nr_online;
};

/* The rows of these options, for a command's table; what -G takes is the command's to say. */
#define TOOL_TARGET_OPTIONS                                                                        \
	{'p', "pid", TOOL_PID, false, "PID,...", "measure these running processes"},               \
		{'t', "tid", TOOL_TID, false, "TID,...", "measure these running threads"},         \
		{'a', "all-cpus", TOOL_NONE, false, NULL, "measure the whole system"},             \
	{                                                                                          \
		'C', "cpu", TOOL_CPUS, false, "LIST", "measure on these processors: 0,2-3"         \
	}

/*
 * Takes the argument of one of these options. Returns 0, or TOOL_USAGE after saying what is wrong.
 */
int tool_target_option(struct tool_target *target, const struct tool_command *command, int key,
		       const char *argument);

/* Whether anything was named but a command: else the command alone is measured. */
bool tool_target_given(const struct tool_target *target);

/*
 * Fills in target->target. Where no option names a target it is *@child, the process of the
 * command, which must stay there. Returns 0, or TOOL_USAGE when the options contradict each other.
 */
int tool_target_resolve(struct tool_target *target, const struct tool_command *command,
			const pid_t *child);

/*
 * Binds @which, target->target or a copy of it, to every online processor if it names none. Returns
 * 0, or TOOL_FAILED after saying why.
 */
int tool_target_bind(struct tool_target *target, struct tally_target *which);

void tool_target_release(struct tool_target *target);

#endif
