// SPDX-License-Identifier: MIT
#include "runtime/model/near.h"

#include <stddef.h>

/* Later than all, with every way. */
#define NO_WAY (-2UL * NEAR_TICK)

/* Of a set, with those that fill the last four. */
static uint32_t room_for(uint32_t ways)
{
	return (ways + SCAN_KEYS - 1) & ~(SCAN_KEYS - 1);
}

static uint64_t all_room(const struct machine_cache *cache)
{
	return (uint64_t)cache->sets * room_for(cache->ways);
}

uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages)
{
	return all_room(lines) * sizeof(uint64_t) + all_room(pages) * sizeof(struct near_page);
}

static struct near_sets sets_of(const struct machine_cache *cache)
{
	return (struct near_sets){.mask = cache->sets - 1, .room = room_for(cache->ways)};
}

static bool is_filling(const struct machine_cache *cache, uint64_t way)
{
	return way % room_for(cache->ways) >= cache->ways;
}

uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint64_t *times, uint64_t first,
		    uint8_t *memory)
{
	near->first = first;
	near->line_sets = sets_of(lines);
	near->page_sets = sets_of(pages);
	near->times = times;
	near->keys = (uint64_t *)memory;
	near->pages = (struct near_page *)(near->keys + all_room(lines));
	for (uint64_t way = 0; way < all_room(lines); way++)
		if (is_filling(lines, way))
			times[way] = NO_WAY;
	for (uint64_t way = 0; way < all_room(pages); way++)
		if (is_filling(pages, way))
			near->pages[way].time = NO_WAY;
	return near_size(lines, pages);
}

/* ---- pages ---- */

/* Each bit of @lines, as its number. */
#define for_each_line(lines, line)                                                                 \
	for (uint64_t left_ = (lines), line;                                                       \
	     left_ && (line = (uint64_t)__builtin_ctzl(left_), true); left_ &= left_ - 1)

static uint64_t *slot_of(const struct near *near, const struct near_page *page, uint64_t line)
{
	return near_slot(near, page->key << NEAR_LINES | line);
}

static uint64_t line_time(const struct near *near, const struct near_page *page, uint64_t line)
{
	return near->times[near_way(near, *slot_of(near, page, line))];
}

/*
 * When @page was used last; or some time after @limit, if that is later. Begins with the line that
 * said so the last time: programs come back to it.
 */
static uint64_t last_use(const struct near *near, struct near_page *page, uint64_t limit)
{
	const uint64_t from = page->recent;
	uint64_t last = page->time;

	for_each_line(page->lines >> from | page->lines << (-from & 63), after) {
		const uint64_t line = near_line(from + after);
		const uint64_t time = line_time(near, page, line);

		last = time > last ? time : last;
		if (last > limit) {
			page->recent = line;
			break;
		}
	}
	return last;
}

/* The two least times of some pages, with their ways. */
struct least {
	uint64_t first, second;
};

static inline struct least least_of(struct least one, struct least other)
{
	return (struct least){
		near_lesser(one.first, other.first),
		near_lesser(near_greater(one.first, other.first),
			    near_lesser(one.second, other.second)),
	};
}

static inline struct least two(const struct near_page *pages, uint64_t way)
{
	const uint64_t one = pages[way].time + way, other = pages[way + 1].time + way + 1;

	return (struct least){near_lesser(one, other), near_greater(one, other)};
}

static inline struct least four(const struct near_page *pages, uint64_t way)
{
	return least_of(two(pages, way), two(pages, way + 2));
}

static inline struct least two_oldest(const struct near_page *pages, uint32_t room)
{
	struct least least = four(pages, 0);

	for (uint64_t way = SCAN_KEYS; __builtin_expect(way < room, 0); way += SCAN_KEYS)
		least = least_of(least, four(pages, way));
	return least;
}

/* The page of a set whose use is the longest ago: the least of the times that are kept, once that
 * is when its page was used last. */
static struct near_page *oldest_page(const struct near *near, struct near_page *set)
{
	for (;;) {
		const struct least least = two_oldest(set, near->page_sets.room);
		struct near_page *page = &set[least.first % NEAR_TICK];

		page->time = last_use(near, page, least.second);
		if (page->time <= least.second)
			return page;
	}
}

/* Its lines are in no slot then. */
static void evict_page(const struct near *near, struct near_page *page)
{
	for_each_line(page->lines, line)
		*slot_of(near, page, line) = 0;
	page->lines = 0;
}

static struct near_page *find_page(const struct near *near, struct near_page *set, uint64_t key)
{
	for (uint32_t way = 0; way < near->page_sets.room; way++)
		if (set[way].key == key)
			return &set[way];
	return NULL;
}

/* Finds the way of page @key, or gives it one. */
static uint64_t take_page(struct near *near, uint64_t key, bool *missed)
{
	struct near_page *set = near->pages + near_set(&near->page_sets, key);
	struct near_page *page = find_page(near, set, key);
	uint64_t way;

	*missed = !page;
	if (*missed) {
		page = oldest_page(near, set);
		evict_page(near, page);
		page->key = key;
	}
	way = (uint64_t)(page - near->pages);
	near->page_ways[key % NEAR_GUESSES] = (uint16_t)way;
	return way;
}

/* ---- lines ---- */

/* Which of @ways of the set that begins at @set @line has, among all; UINT64_MAX: none. */
static uint64_t way_of(const struct near *near, uint64_t set, uint32_t ways, uint64_t line)
{
	for (; ways; ways &= ways - 1) {
		const uint64_t way = set + (uint64_t)__builtin_ctz(ways);

		if (!((near->keys[way] ^ line) << (64 - NEAR_KEY_BITS)))
			return way;
	}
	return UINT64_MAX;
}

unsigned int near_find_line(struct near *near, uint64_t line, uint64_t now, uint64_t page_way,
			    uint32_t ways)
{
	const uint64_t set = near_set(&near->line_sets, line);
	uint64_t way = way_of(near, set, ways, line);
	const bool missed = way == UINT64_MAX;

	if (missed)
		way = near_evict(near, set);
	near_settle(near, line, way, page_way, now);
	return missed ? NEAR_LINE_MISSED : 0;
}

unsigned int near_find_page(struct near *near, uint64_t line, uint64_t now)
{
	bool missed;
	const uint64_t page_way = take_page(near, line >> NEAR_LINES, &missed);
	const uint32_t ways = near_ways(near, near_set(&near->line_sets, line), line);

	return near_find_line(near, line, now, page_way, ways) | (missed ? NEAR_PAGE_MISSED : 0);
}
