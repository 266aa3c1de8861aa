// SPDX-License-Identifier: MIT
#include "lib/symbol/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tly_space_free(struct tly_space *space)
{
	free(space->maps);
	free(space->highest);
	memset(space, 0, sizeof(*space));
}

int tly_space_add(struct tly_space *space, const struct tly_map *map)
{
	if (map->end <= map->start)
		return 0;
	if (space->nr == space->size) {
		size_t size = space->size ? space->size * 2 : 16;
		struct tly_map *maps = reallocarray(space->maps, size, sizeof(*maps));
		uint64_t *highest;

		if (!maps)
			return -ENOMEM;
		space->maps = maps;
		highest = reallocarray(space->highest, size, sizeof(*highest));
		if (!highest)
			return -ENOMEM;
		space->highest = highest;
		space->size = size;
	}
	space->maps[space->nr++] = *map;
	return 0;
}

static int compare_starts(const void *a, const void *b)
{
	const struct tly_map *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

/*
 * The sorted array is a binary tree in itself: the middle of a range is the root of that range.
 * Each root keeps the highest end of its range, so that a search skips ranges that end too low.
 */
static uint64_t set_highest(struct tly_space *space, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2;
	uint64_t below, above, highest;

	if (low == high)
		return 0;
	highest = space->maps[middle].end;
	below = set_highest(space, low, middle);
	above = set_highest(space, middle + 1, high);
	if (below > highest)
		highest = below;
	if (above > highest)
		highest = above;
	space->highest[middle] = highest;
	return highest;
}

struct search {
	const struct tly_space *space;
	uint64_t address, time;
	struct tly_moment from, until;
	struct tly_space_result result;
};

static void consider(struct search *search, const struct tly_map *map)
{
	struct tly_space_result *result = &search->result;

	if (search->address < map->start || search->address >= map->end ||
	    tly_moment_before(map->since, search->from) ||
	    !tly_moment_before(map->since, search->until))
		return;
	if (map->since.time > search->time) {
		if (!result->next || tly_moment_before(map->since, result->next->since))
			result->next = map;
	} else if (!result->map || tly_moment_before(result->map->since, map->since)) {
		result->map = map;
	}
}

static void search_range(struct search *search, size_t low, size_t high)
{
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (search->space->highest[middle] <= search->address)
			return;
		search_range(search, low, middle);
		if (search->space->maps[middle].start > search->address)
			return;
		consider(search, &search->space->maps[middle]);
		low = middle + 1;
	}
}

struct tly_space_result tly_space_find(struct tly_space *space, uint64_t address, uint64_t time,
				       struct tly_moment from, struct tly_moment until)
{
	struct search search = {
		.space = space,
		.address = address,
		.time = time,
		.from = from,
		.until = until,
	};

	/* When mappings come between look-ups, as from a pipe, not each of them is worth a sort. */
	if (space->nr - space->sorted > 16 + space->sorted / 8) {
		qsort(space->maps, space->nr, sizeof(*space->maps), compare_starts);
		space->sorted = space->nr;
		set_highest(space, 0, space->nr);
	}
	search_range(&search, 0, space->sorted);
	for (size_t i = space->sorted; i < space->nr; i++)
		consider(&search, &space->maps[i]);
	return search.result;
}
