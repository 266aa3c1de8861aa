// SPDX-License-Identifier: MIT
/*
 * The cgroups that are there already. Samples have the number of the one that counts for
 * perf_event: of that controller's own hierarchy where it has one, else of the unified hierarchy.
 */
#include "tool/synth.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEEPEST 64

/* The place of a line "WHAT PLACE TYPE OPTIONS ..." of mounts when it is the hierarchy, or NULL. */
static const char *place_of_hierarchy(char *line, const char *type, const char *option)
{
	char *fields[4], *rest = line, *word;

	for (size_t i = 0; i < 4; i++)
		if (!(fields[i] = strsep(&rest, " ")))
			return NULL;
	if (strcmp(fields[2], type))
		return NULL;
	while (*option && (word = strsep(&fields[3], ",")))
		if (!strcmp(word, option))
			return fields[1];
	return *option ? NULL : fields[1];
}

static bool find_hierarchy(const struct tool_synth *synth, const char *type, const char *option,
			   char place[PATH_MAX])
{
	FILE *mounts = tool_synth_open(synth, "/proc/self/mounts");
	const char *at = NULL;
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (mounts && !at && getline(&line, &room, mounts) > 0)
		at = place_of_hierarchy(line, type, option);
	if (at)
		found = snprintf(place, PATH_MAX, "%s", at) < PATH_MAX;
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/* @path: where @folder is in the hierarchy; longer by each level, and as before in the end. */
static void add_below(struct tool_synth *synth, char folder[PATH_MAX], char *path, int depth)
{
	DIR *dir = opendir(folder);
	size_t length = strlen(folder);
	const struct dirent *entry;
	struct stat st;

	if (!dir)
		return;
	/* The number of a cgroup is that of its folder. */
	if (!fstat(dirfd(dir), &st))
		tool_synth_cgroup(synth, st.st_ino, *path ? path : "/");
	while (depth < DEEPEST && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    length + 1 + strlen(entry->d_name) >= PATH_MAX)
			continue;
		folder[length] = '/';
		strcpy(folder + length + 1, entry->d_name);
		add_below(synth, folder, path, depth + 1);
		folder[length] = '\0';
	}
	closedir(dir);
}

void tool_synth_cgroups(struct tool_synth *synth)
{
	char place[PATH_MAX], folder[PATH_MAX];
	int length;

	if (!find_hierarchy(synth, "cgroup", "perf_event", place) &&
	    !find_hierarchy(synth, "cgroup2", "", place))
		return;
	length = snprintf(folder, sizeof(folder), "%s%s", synth->root, place);
	if (length < (int)sizeof(folder))
		add_below(synth, folder, folder + length, 0);
}
