// SPDX-License-Identifier: MIT
#include "tool/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int take_list(const struct tool_command *command, int key, const char *argument,
		     int **values, size_t *nr)
{
	free(*values);
	if (tool_parse_list(argument, values, nr))
		return 0;
	return tool_usage(command, "'-%c %s': expected numbers like 3 or 0,2-5", key, argument);
}

int tool_target_option(struct tool_target *target, const struct tool_command *command, int key,
		       const char *argument)
{
	switch (key) {
	case 'p':
		return take_list(command, key, argument, &target->pids, &target->nr_pids);
	case 't':
		return take_list(command, key, argument, &target->tids, &target->nr_tids);
	case 'C':
		return take_list(command, key, argument, &target->cpus, &target->nr_cpus);
	case 'a':
		target->all = true;
		return 0;
	default:
		target->cgroup = argument;
		return 0;
	}
}

bool tool_target_given(const struct tool_target *target)
{
	return target->pids || target->tids || target->cpus || target->all || target->cgroup;
}

int tool_target_resolve(struct tool_target *target, const struct tool_command *command,
			const pid_t *child)
{
	struct tally_target *t = &target->target;
	int named = !!target->pids + !!target->tids + (target->all || target->cgroup);

	/* A cgroup is a part of the whole system: -a beside -G says nothing new. */
	if (named > 1)
		return tool_usage(command, "choose one of -p, -t, and -a or -G");
	*t = (struct tally_target){.cpus = target->cpus, .nr_cpus = target->nr_cpus};
	if (target->pids) {
		t->kind = TALLY_TARGET_PROCESS;
		t->ids = target->pids;
		t->nr_ids = target->nr_pids;
	} else if (target->tids) {
		t->kind = TALLY_TARGET_THREADS;
		t->ids = target->tids;
		t->nr_ids = target->nr_tids;
	} else if (target->cgroup) {
		t->kind = TALLY_TARGET_CGROUP;
		t->cgroup = target->cgroup;
	} else if (target->all || target->cpus) {
		t->kind = TALLY_TARGET_SYSTEM;
	} else {
		/* It has one thread by now, which a root without /proc would not tell. */
		t->kind = access("/proc/self", F_OK) ? TALLY_TARGET_THREADS : TALLY_TARGET_PROCESS;
		t->ids = child;
		t->nr_ids = 1;
	}
	return 0;
}

/*
 * The processors that are online, as an array to be freed; without sysfs a guess, right wherever
 * none is offline. False when that is no list, or memory is short.
 */
static bool online_cpus(int **cpus, size_t *nr)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	char text[4096];

	if (!file || !fgets(text, sizeof(text), file))
		snprintf(text, sizeof(text), "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (file)
		fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return tool_parse_list(text, cpus, nr);
}

int tool_target_bind(struct tool_target *target, struct tally_target *which)
{
	if (which->nr_cpus)
		return 0;
	if (!target->online && !online_cpus(&target->online, &target->nr_online))
		return tool_fail("the list of online processors cannot be read");
	which->cpus = target->online;
	which->nr_cpus = target->nr_online;
	return 0;
}

void tool_target_release(struct tool_target *target)
{
	free(target->online);
	free(target->pids);
	free(target->tids);
	free(target->cpus);
	*target = (struct tool_target){0};
}
