// SPDX-License-Identifier: MIT
/*
 * A bit for each page, and the first place that fits, looked for from the beginning: rings are few
 * and live long, and what lies low needs no memory for the bits above it.
 */
#include "core/pages.h"

#include "abi/arena.h"
#include "core/arena.h"

#define BITS 64UL

#define MAP_AT	 (CORE_WATCHED_AT + CORE_WATCHED * sizeof(struct core_watched))
#define PAGES_AT (MAP_AT + ARENA_RINGS_SIZE / ARENA_PAGE / 8)
#define PAGES	 ((ARENA_SIZE - PAGES_AT) / ARENA_PAGE)

_Static_assert(PAGES_AT % ARENA_PAGE == 0, "");

static uint64_t *map(void)
{
	return core_arena(MAP_AT);
}

static bool is_taken(uint64_t page)
{
	return map()[page / BITS] >> page % BITS & 1;
}

static void flip(uint64_t page, uint64_t count)
{
	for (; count; page++, count--)
		map()[page / BITS] ^= 1UL << page % BITS;
}

uint64_t core_pages_take(uint64_t count)
{
	uint64_t free = 0;

	for (uint64_t page = 0; count && page < PAGES; page++) {
		if (page % BITS == 0 && map()[page / BITS] == UINT64_MAX) {
			page += BITS - 1;
			free = 0;
			continue;
		}
		free = is_taken(page) ? 0 : free + 1;
		if (free < count)
			continue;
		page -= count - 1;
		flip(page, count);
		return PAGES_AT + page * ARENA_PAGE;
	}
	return 0;
}

void core_pages_give(uint64_t at, uint64_t count)
{
	flip((at - PAGES_AT) / ARENA_PAGE, count);
}

void core_pages_forget(void)
{
	for (uint64_t i = 0; i < PAGES / BITS; i++)
		if (map()[i]) /* what was never used stays untouched */
			map()[i] = 0;
}

void core_pages_have(uint64_t at, uint64_t count)
{
	flip((at - PAGES_AT) / ARENA_PAGE, count);
}
