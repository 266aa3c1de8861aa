/* SPDX-License-Identifier: MIT */
/*
 * Who counts: the kernel, or `tally run`. A command that the kernel cannot measure as asked is
 * measured by this same tool, started anew with the same arguments under `tally run`, where
 * perf_event_open(2) has everything.
 */
#ifndef TOOL_USER_MODE_H
#define TOOL_USER_MODE_H

#include <stdbool.h>

#include <tally/error.h>
#include <tally/event.h>

#include "tool/command.h"

enum tool_pmu {
	TOOL_PMU_AUTO,	 /* the kernel if it can, else user mode */
	TOOL_PMU_KERNEL, /* whatever perf_event_open(2) says */
	TOOL_PMU_USER,
};

/* The row of the option, for a command's table. */
#define TOOL_PMU_OPTION(key)                                                                       \
	{                                                                                          \
		key, "pmu", TOOL_WORD, false, "auto|kernel|user",                                  \
			"who counts: the kernel, or user mode (tally run); default: user mode "    \
			"for a command that the kernel cannot measure as asked"                    \
	}

/* What a command line says of it. */
struct tool_counting {
	enum tool_pmu pmu;
	const char *own; /* why -e can be parsed in user mode alone; NULL if that is not so */
	bool has_period; /* a sample at every Nth occurrence is asked for */
	int argc;
	char **argv;
};

/*
 * Looks through a command line for the option @key, and for events of user mode's own in those of
 * -e, ahead of its parsing: what events there are depends on who counts them. With `own` set, none
 * is to be parsed: tool_wants_user_mode() says yes. With user mode asked for and needed this
 * process becomes another, as by tool_enter_user_mode(). Returns 0, or what tool_next_option() did,
 * or a tool_status above 0 after saying what is wrong.
 */
int tool_choose_counting(struct tool_counting *counting, const struct tool_command *command,
			 int argc, char **argv, int key);

/*
 * Whether it is left to us who counts, user mode can count one of @events, and the kernel, asked
 * for the calling thread, cannot; then @why says which and why.
 */
bool tool_wants_user_mode(const struct tool_counting *counting, struct tally_events *events,
			  struct tally_error *why);

/*
 * Becomes `tally run -- tally ARGV...`. @why goes to standard error, unless it is NULL, and which
 * of @events will be slow to count. Returns only when that failed, TOOL_FAILED after saying why.
 */
int tool_enter_user_mode(const struct tool_counting *counting, const char *why,
			 struct tally_events *events);

/* Whether user mode computes it by a model of the processor, which takes ten times as long as
 * counting. Of raw events nothing is known. */
bool tool_is_modelled(const struct perf_event_attr *attr);

#endif
