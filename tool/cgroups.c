// SPDX-License-Identifier: MIT
#include "tool/cgroups.h"

#include <stdlib.h>
#include <string.h>

#include "tool/filter.h"
#include "tool/lookup.h"
#include "tool/memory.h"

struct cgroup {
	uint64_t id;
	char *path;
};

struct cgroups {
	struct cgroup *list;
	size_t nr, room;
	struct lookup by_id;
};

struct cgroups *cgroups_new(void)
{
	return tool_alloc(1, sizeof(struct cgroups));
}

void cgroups_free(struct cgroups *cgroups)
{
	if (!cgroups)
		return;
	for (size_t i = 0; i < cgroups->nr; i++)
		free(cgroups->list[i].path);
	free(cgroups->list);
	lookup_free(&cgroups->by_id);
	free(cgroups);
}

static bool id_equal(const void *owner, uint32_t index, const void *key)
{
	return ((const struct cgroups *)owner)->list[index].id == *(const uint64_t *)key;
}

static uint32_t find(const struct cgroups *cgroups, uint64_t id)
{
	return lookup_find(&cgroups->by_id, lookup_hash_words(0, &id, 1), id_equal, cgroups, &id);
}

void cgroups_feed(struct cgroups *cgroups, const struct tally_record *record)
{
	const char *path;

	if (record->type != PERF_RECORD_CGROUP || find(cgroups, record->cgroup.id) != LOOKUP_NONE)
		return;
	path = record->cgroup.path;
	cgroups->list =
		tool_grow(cgroups->list, &cgroups->room, cgroups->nr + 1, sizeof(*cgroups->list));
	cgroups->list[cgroups->nr] =
		(struct cgroup){record->cgroup.id, tool_copy(path, strlen(path))};
	lookup_add(&cgroups->by_id, lookup_hash_words(0, &record->cgroup.id, 1), cgroups->nr++);
}

const char *cgroups_path(const struct cgroups *cgroups, uint64_t id)
{
	uint32_t index = find(cgroups, id);

	return index == LOOKUP_NONE ? UNKNOWN : cgroups->list[index].path;
}
