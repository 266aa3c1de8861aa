// SPDX-License-Identifier: MIT
#include "runtime/model/near.h"

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
	return all_room(cache) * (sizeof(uint64_t) + sizeof(uint32_t));
}

/* Of pages the times, too, and which of their lines are in slots. */
uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages)
{
	return sets_size(lines) + all_room(lines) * sizeof(uint16_t) + sets_size(pages) +
	       2 * all_room(pages) * sizeof(uint64_t) +
	       (all_room(pages) << NEAR_LINES) * sizeof(uint16_t);
}

/* Returns what lies behind it. */
static uint8_t *place_sets(struct near_sets *sets, const struct machine_cache *cache,
			   uint64_t *times, uint8_t *memory)
{
	const uint64_t all = all_room(cache);

	sets->mask = cache->sets - 1;
	sets->bits = (uint32_t)__builtin_ctz(cache->sets);
	sets->room = room_for(cache->ways);
	sets->times = times;
	sets->keys = (uint64_t *)memory;
	sets->tags = (uint32_t *)(sets->keys + all);
	for (uint64_t i = 0; i < all; i++)
		if (i % sets->room >= cache->ways)
			sets->times[i] = NO_WAY;
	return memory + sets_size(cache);
}

uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint64_t *times, uint64_t first,
		    uint8_t *memory)
{
	uint64_t *page_times = (uint64_t *)place_sets(&near->lines, lines, times, memory);

	near->first = first;
	near->slots_of = page_times + all_room(pages);
	near->ways_of = (uint16_t *)place_sets(&near->pages, pages, page_times,
					       (uint8_t *)(near->slots_of + all_room(pages)));
	near->page_of = near->ways_of + (all_room(pages) << NEAR_LINES);
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

/* Each bit of @lines, as its number. */
#define for_each_line(lines, line)                                                                 \
	for (uint64_t left_ = (lines), line;                                                       \
	     left_ && (line = (uint64_t)__builtin_ctzl(left_), true); left_ &= left_ - 1)

/* When the page that has @way was used last; or some time after @limit, if that is later. */
static uint64_t last_use(const struct near *near, uint64_t way, uint64_t limit)
{
	const uint16_t *ways = near->ways_of + (way << NEAR_LINES);
	uint64_t last = near->pages.times[way];

	for_each_line(near->slots_of[way], line) {
		const uint64_t time = near->lines.times[ways[line]];

		last = time > last ? time : last;
		if (last > limit)
			break;
	}
	return last;
}

/* The two least times of a set, with their ways. */
struct least {
	uint64_t first, second;
};

static struct least two_oldest(const uint64_t *times, uint32_t room)
{
	struct least least = {NO_WAY, NO_WAY};

	for (uint64_t way = 0; way < room; way++) {
		const uint64_t time = times[way] + way;
		const uint64_t later = time > least.first ? time : least.first;

		least.first = near_lesser(time, least.first);
		least.second = near_lesser(later, least.second);
	}
	return least;
}

/* The way of the page of a set whose use is the longest ago: the least of the times that are kept,
 * once that is when its page was used last. */
static uint64_t oldest_page(const struct near *near, uint64_t set)
{
	uint64_t *times = near->pages.times + set;

	for (;;) {
		const struct least least = two_oldest(times, near->pages.room);
		const uint64_t way = least.first % NEAR_TICK;

		times[way] = last_use(near, set + way, least.second);
		if (times[way] <= least.second)
			return set + way;
	}
}

/* Its lines are in no slot then. */
static void evict_page(const struct near *near, uint64_t way)
{
	const uint64_t first = near->pages.keys[way] << NEAR_LINES;

	for_each_line(near->slots_of[way], line)
		*near_slot(near, first | line) = 0;
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
	near_settle(near, line, way, page_way, now);
	return missed ? NEAR_LINE_MISSED : 0;
}

unsigned int near_find_page(struct near *near, uint64_t line, uint64_t now)
{
	bool missed;
	const uint64_t page_way = take_page(near, line >> NEAR_LINES, &missed);
	const uint32_t ways = near_ways(&near->lines, near_set(&near->lines, line), line);

	return near_find_line(near, line, now, page_way, ways) | (missed ? NEAR_PAGE_MISSED : 0);
}
