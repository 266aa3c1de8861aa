// SPDX-License-Identifier: MIT
#include "monitor/memory_limit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* UINT64_MAX: there is none, which version 2 calls "max". */
static uint64_t limit_in(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long limit;

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%lu", &limit) != 1)
		limit = UINT64_MAX;
	fclose(file);
	return limit;
}

/*
 * Of a group and those that it is in. In a container the names may be those outside of it, and only
 * the last of them, the root, be there.
 */
static uint64_t least(const char *root, char *group, const char *name)
{
	uint64_t limit = UINT64_MAX, next;
	char path[PATH_MAX];
	char *slash;

	do {
		if (snprintf(path, sizeof(path), "%s%s/%s", root, group, name) < PATH_MAX) {
			next = limit_in(path);
			limit = next < limit ? next : limit;
		}
		slash = strrchr(group, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return limit;
}

/* A line is NUMBER:CONTROLLERS:GROUP; of version 2 there are no controllers. */
uint64_t memory_limit_of_groups(const char *groups, const char *root)
{
	char line[PATH_MAX], controllers[PATH_MAX], group[PATH_MAX], first[PATH_MAX];
	FILE *file = fopen(groups, "re");
	uint64_t limit = UINT64_MAX, next;

	if (!file)
		return limit;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*d::%[^\n]", group) == 1) {
			next = least(root, group, "memory.max");
		} else if (sscanf(line, "%*d:%[^:]:%[^\n]", controllers, group) == 2 &&
			   !strcmp(controllers, "memory")) {
			if (snprintf(first, sizeof(first), "%s/memory", root) >= PATH_MAX)
				continue;
			next = least(first, group, "memory.limit_in_bytes");
		} else {
			continue;
		}
		limit = next < limit ? next : limit;
	}
	fclose(file);
	return limit;
}

uint64_t memory_limit(void)
{
	const uint64_t machine =
		(uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t groups = memory_limit_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");

	return groups < machine ? groups : machine;
}
