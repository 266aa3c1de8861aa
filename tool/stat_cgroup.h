/* SPDX-License-Identifier: MIT */
/* Which event `tally stat` counts in which cgroup, as -G and --for-each-cgroup say it. */
#ifndef TOOL_STAT_CGROUP_H
#define TOOL_STAT_CGROUP_H

#include "tool/command.h"
#include "tool/stat.h"

/* Start from a zeroed struct. */
struct stat_cgroups {
	char **texts; /* the arguments, cut into names */
	size_t nr_texts;
	const char **of; /* -G: of the events given until then, NULL where all tasks are meant */
	size_t nr_of;
	const char *of_all; /* -G before all events */
	const char **each;  /* --for-each-cgroup */
	size_t nr_each;
	struct tally_events **lists; /* of the sets */
	size_t nr_lists;
};

/*
 * Takes an argument of -G, @nr_events after the start of the command line, or of --for-each-cgroup.
 * Return TOOL_OK, or another status after saying what is wrong.
 */
int stat_cgroups_pair(struct stat_cgroups *cgroups, const struct tool_command *command,
		      const char *argument, size_t nr_events);
int stat_cgroups_each(struct stat_cgroups *cgroups, const struct tool_command *command,
		      const char *argument);

/* Whether options that add events would add them for all tasks, beside those of cgroups. */
bool stat_cgroups_are_paired(const struct stat_cgroups *cgroups);

/*
 * Fills in stat->sets: one for each run of events of the same cgroup. Takes from @events what does
 * not belong to the first of them; @events must outlive the sets.
 */
int stat_cgroups_make_sets(struct stat_cgroups *cgroups, const struct tool_command *command,
			   struct tally_events *events, struct stat_session *stat);

/* The sets' events go with it. */
void stat_cgroups_release(struct stat_cgroups *cgroups);

#endif
