// SPDX-License-Identifier: MIT
/*
 * -G means what it means to perf: its names go to the events before it, one by one; a single name
 * to all of them, an empty one to none. What no name went to counts all tasks.
 */
#include "tool/stat_cgroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(void)
{
	return tool_fail("out of memory");
}

/* "/" for the root, which people also write as nothing; no slash at the end. */
static char *normal(char *name)
{
	static char root[] = "/";
	size_t length = strlen(name);

	while (length && name[length - 1] == '/')
		name[--length] = '\0';
	return *name ? name : root;
}

/* A copy of @argument that lives as long as @cgroups; NULL when memory is short. */
static char *keep(struct stat_cgroups *cgroups, const char *argument)
{
	char **grown = reallocarray(cgroups->texts, cgroups->nr_texts + 1, sizeof(*grown));
	char *copy;

	if (!grown)
		return NULL;
	cgroups->texts = grown;
	copy = strdup(argument);
	if (copy)
		cgroups->texts[cgroups->nr_texts++] = copy;
	return copy;
}

static size_t count_names(const char *text)
{
	size_t nr = 1;

	for (; *text; text++)
		nr += *text == ',';
	return nr;
}

int stat_cgroups_pair(struct stat_cgroups *cgroups, const struct tool_command *command,
		      const char *argument, size_t nr_events)
{
	size_t nr = count_names(argument), free_events = nr_events - cgroups->nr_of;
	char *text = keep(cgroups, argument);
	const char **grown;

	if (!text)
		return no_memory();
	if (cgroups->nr_each)
		return tool_usage(command, "-G and --for-each-cgroup do not go together");
	if (!nr_events && nr == 1 && !cgroups->of_all) {
		cgroups->of_all = normal(text);
		return TOOL_OK;
	}
	if (nr > free_events || cgroups->of_all)
		return tool_usage(command,
				  "-G %s names more cgroups than there are events before it "
				  "(--for-each-cgroup counts each event in each)",
				  argument);
	grown = reallocarray(cgroups->of, nr_events, sizeof(*grown));
	if (!grown)
		return no_memory();
	cgroups->of = grown;
	if (nr == 1) {
		const char *name = *text ? normal(text) : NULL;

		while (cgroups->nr_of < nr_events)
			cgroups->of[cgroups->nr_of++] = name;
		return TOOL_OK;
	}
	for (char *name; (name = strsep(&text, ","));)
		cgroups->of[cgroups->nr_of++] = *name ? normal(name) : NULL;
	return TOOL_OK;
}

static bool has(const struct stat_cgroups *cgroups, const char *name)
{
	for (size_t i = 0; i < cgroups->nr_each; i++)
		if (!strcmp(cgroups->each[i], name))
			return true;
	return false;
}

int stat_cgroups_each(struct stat_cgroups *cgroups, const struct tool_command *command,
		      const char *argument)
{
	char *text = keep(cgroups, argument);
	const char **grown;

	if (!text)
		return no_memory();
	if (cgroups->nr_of || cgroups->of_all)
		return tool_usage(command, "-G and --for-each-cgroup do not go together");
	grown = reallocarray(cgroups->each, cgroups->nr_each + count_names(text), sizeof(*grown));
	if (!grown)
		return no_memory();
	cgroups->each = grown;
	for (char *name; (name = strsep(&text, ","));) {
		name = normal(name);
		if (!has(cgroups, name))
			cgroups->each[cgroups->nr_each++] = name;
	}
	return TOOL_OK;
}

bool stat_cgroups_are_paired(const struct stat_cgroups *cgroups)
{
	return cgroups->nr_of;
}

static void add_set(struct stat_session *stat, const struct tally_events *events,
		    const char *cgroup)
{
	stat->sets[stat->nr_sets++] = (struct stat_set){.events = events, .cgroup = cgroup};
}

static const char *cgroup_of(const struct stat_cgroups *cgroups, size_t event)
{
	return event < cgroups->nr_of ? cgroups->of[event] : cgroups->of_all;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* From the end, as that is what can be taken off a list. */
static int split(struct stat_cgroups *cgroups, const struct tool_command *command,
		 struct tally_events *events)
{
	size_t nr = tally_events_count(events);

	cgroups->lists = calloc(nr, sizeof(*cgroups->lists));
	if (!cgroups->lists)
		return no_memory();
	for (size_t i = nr - 1; i > 0; i--) {
		int code;

		if (same(cgroup_of(cgroups, i), cgroup_of(cgroups, i - 1)))
			continue;
		code = tally_events_split(events, i, &cgroups->lists[cgroups->nr_lists]);
		if (code == -EINVAL)
			return tool_usage(command,
					  "'%s' is of a group that -G puts into several cgroups: "
					  "a group is counted in one",
					  tally_events_at(events, i)->name);
		if (code < 0)
			return no_memory();
		cgroups->nr_lists++;
	}
	return TOOL_OK;
}

int stat_cgroups_make_sets(struct stat_cgroups *cgroups, const struct tool_command *command,
			   struct tally_events *events, struct stat_session *stat)
{
	size_t event;
	int status;

	if (!cgroups->nr_each) {
		status = split(cgroups, command, events);
		if (status != TOOL_OK)
			return status;
	}
	stat->sets = calloc(cgroups->nr_each + cgroups->nr_lists + 1, sizeof(*stat->sets));
	if (!stat->sets)
		return no_memory();
	for (size_t i = 0; i < cgroups->nr_each; i++)
		add_set(stat, events, cgroups->each[i]);
	if (cgroups->nr_each)
		return TOOL_OK;
	add_set(stat, events, cgroup_of(cgroups, 0));
	event = tally_events_count(events);
	for (size_t i = cgroups->nr_lists; i > 0; i--) {
		add_set(stat, cgroups->lists[i - 1], cgroup_of(cgroups, event));
		event += tally_events_count(cgroups->lists[i - 1]);
	}
	return TOOL_OK;
}

void stat_cgroups_release(struct stat_cgroups *cgroups)
{
	for (size_t i = 0; i < cgroups->nr_lists; i++)
		tally_events_free(cgroups->lists[i]);
	for (size_t i = 0; i < cgroups->nr_texts; i++)
		free(cgroups->texts[i]);
	free(cgroups->lists);
	free(cgroups->texts);
	free(cgroups->of);
	free(cgroups->each);
	*cgroups = (struct stat_cgroups){0};
}
