// SPDX-License-Identifier: MIT
#include "runtime/model/near.h"

#include <stdbool.h>

/* Later than all, with every way. */
#define NO_WAY (-2UL * NEAR_TICK)

/* Of a set, with those that fill the last four. */
static uint32_t room_for(uint32_t ways)
{
	return (ways + SCAN_WORDS - 1) & ~(SCAN_WORDS - 1);
}

static uint64_t all_room(const struct machine_cache *cache)
{
	return (uint64_t)cache->sets * room_for(cache->ways);
}

static uint64_t sets_size(const struct machine_cache *cache)
{
	return all_room(cache) * (2 * sizeof(uint64_t) + sizeof(uint32_t));
}

/* And of a page which of its lines are in slots. */
uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages)
{
	return sets_size(lines) + sets_size(pages) + all_room(pages) * sizeof(uint64_t);
}

/* Returns what lies behind it. */
static uint8_t *place_sets(struct near_sets *sets, const struct machine_cache *cache,
			   uint8_t *memory)
{
	const uint64_t all = all_room(cache);

	sets->mask = cache->sets - 1;
	sets->bits = (uint32_t)__builtin_ctz(cache->sets);
	sets->room = room_for(cache->ways);
	sets->times = (uint64_t *)memory;
	sets->keys = sets->times + all;
	sets->tags = (uint32_t *)(sets->keys + all);
	for (uint64_t i = 0; i < all; i++)
		if (i % sets->room >= cache->ways)
			sets->times[i] = NO_WAY;
	return memory + sets_size(cache);
}

uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint8_t *memory)
{
	near->slots_of = (uint64_t *)place_sets(&near->pages, pages,
						place_sets(&near->lines, lines, memory));
	return near_size(lines, pages);
}

/* Which of @ways of the set that begins at @set @key has, among all; UINT64_MAX: none. */
static uint64_t way_of(const struct near_sets *sets, uint64_t set, uint32_t ways, uint64_t key)
{
	for (; ways; ways &= ways - 1) {
		const uint64_t way = set + (uint64_t)__builtin_ctz(ways);

		if (sets->keys[way] == key)
			return way;
	}
	return UINT64_MAX;
}

/* ---- pages ---- */

/* The slots of the lines of the page that has @way. */
#define for_each_slot(near, way, slot)                                                             \
	for (uint64_t lines_ = (near)->slots_of[way],                                              \
		      first_ = (near)->pages.keys[way] << NEAR_LINES;                              \
	     lines_ && (slot = near_slot(near, first_ | (uint64_t)__builtin_ctzl(lines_)), true);  \
	     lines_ &= lines_ - 1)

/* When the page that has @way was used last; or some time after @limit, if that is later. */
static uint64_t last_use(const struct near *near, uint64_t way, uint64_t limit)
{
	uint64_t time = near->pages.times[way];
	struct near_slot *slot;

	for_each_slot(near, way, slot)
	{
		const uint64_t line = *near_time(near, slot);

		time = line > time ? line : time;
		if (time > limit)
			break;
	}
	return time;
}

/* The way of the page of a set whose use is the longest ago: the least of the times that are kept,
 * once that is when its page was used last. */
static uint64_t oldest_page(const struct near *near, uint64_t set)
{
	uint64_t *times = near->pages.times + set, way, kept, next;

	for (;;) {
		way = near_oldest(times, near->pages.room);
		kept = times[way];
		times[way] = NO_WAY;
		next = times[near_oldest(times, near->pages.room)];
		times[way] = kept;
		times[way] = last_use(near, set + way, next);
		if (times[way] <= next)
			return set + way;
	}
}

/* Its lines are in no slot then. */
static void evict_page(const struct near *near, uint64_t way)
{
	struct near_slot *slot;

	for_each_slot(near, way, slot) slot->key = 0;
	near->slots_of[way] = 0;
}

/* Finds the way of @page, or gives it one. */
static uint64_t take_page(struct near *near, uint64_t page, bool *missed)
{
	const uint64_t set = near_set(&near->pages, page);
	uint64_t way = way_of(&near->pages, set, near_ways(&near->pages, set, page), page);

	*missed = way == UINT64_MAX;
	if (*missed) {
		way = oldest_page(near, set);
		evict_page(near, way);
		near_take(&near->pages, way, page);
	}
	near->page_ways[page % NEAR_GUESSES] = (uint16_t)way;
	return way;
}

/* ---- lines ---- */

unsigned int near_find_line(struct near *near, uint64_t line, uint64_t now, uint64_t page_way,
			    uint32_t ways)
{
	const uint64_t set = near_set(&near->lines, line);
	uint64_t way = way_of(&near->lines, set, ways, line);
	const bool missed = way == UINT64_MAX;

	if (missed)
		way = near_replace(near, set, line);
	near_settle(near, near_slot(near, line), line, way, page_way, now);
	return missed ? NEAR_LINE_MISSED : 0;
}

unsigned int near_find_page(struct near *near, uint64_t line, uint64_t now)
{
	bool missed;
	const uint64_t page_way = take_page(near, line >> NEAR_LINES, &missed);
	const uint32_t ways = near_ways(&near->lines, near_set(&near->lines, line), line);

	return near_find_line(near, line, now, page_way, ways) | (missed ? NEAR_PAGE_MISSED : 0);
}
