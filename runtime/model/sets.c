// SPDX-License-Identifier: MIT
/* Nothing depends on the order in a set by a branch: that is at random. */
#include "runtime/model/sets.h"

#include <stddef.h>

#include "runtime/model/scan.h"

/* Sets begin at powers of two, and at what is looked at together. */
static uint32_t log2_up(uint32_t n)
{
	uint32_t bits = 0;

	while (1u << bits < n)
		bits++;
	return bits;
}

static uint32_t room_for(uint32_t ways)
{
	return (ways + 3) & ~3u;
}

/* ---- the first level ---- */

/* Later than all. */
#define NO_WAY (UINT64_MAX - 2 * NEAR_TICK)

static uint64_t all_room(const struct machine_cache *cache)
{
	return (uint64_t)cache->sets * room_for(cache->ways);
}

static uint64_t sets_size(const struct machine_cache *cache)
{
	return all_room(cache) * (2 * sizeof(uint64_t) + sizeof(uint32_t)) +
	       (cache->sets + 1) / 2 * 2 * sizeof(uint64_t);
}

/* And of a page which of its lines may be in slots. */
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
	sets->bits = log2_up(cache->sets);
	sets->room = room_for(cache->ways);
	sets->times = (uint64_t *)memory;
	sets->keys = sets->times + all;
	sets->tags = (uint32_t *)(sets->keys + all);
	sets->oldest = (uint64_t *)(sets->tags + all);
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

static void leave_slot(const struct near *near, uint64_t line)
{
	struct near_slot *slot = near_slot(near, line);

	slot->key = slot->key == line ? 0 : slot->key;
}

static uint64_t lesser(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* The least time of a set, and whose. */
static inline uint64_t find_oldest(const uint64_t *times, uint32_t room)
{
	uint64_t even = UINT64_MAX, odd = UINT64_MAX;

	for (uint64_t i = 0; i < room; i += 4) {
		even = lesser(even, lesser(times[i] + i, times[i + 2] + i + 2));
		odd = lesser(odd, lesser(times[i + 1] + i + 1, times[i + 3] + i + 3));
	}
	return lesser(even, odd);
}

/* Which way of its set @key has, among all; UINT64_MAX: none. */
static inline uint64_t find_key(const struct near_sets *sets, uint64_t key)
{
	const uint64_t set = (key & sets->mask) * sets->room;
	uint32_t found = scan_for(sets->tags + set, sets->room * sizeof(uint32_t),
				  (uint32_t)(key >> sets->bits));

	for (; found; found &= found - 1) {
		const uint64_t way = set + (uint64_t)__builtin_ctz(found);

		if (sets->keys[way] == key)
			return way;
	}
	return UINT64_MAX;
}

/* The way of the one whose use is the longest ago becomes @key's; *@evicted is who had it. */
static inline uint64_t replace(const struct near_sets *sets, uint64_t key, uint64_t now,
			       uint64_t *evicted)
{
	const uint64_t which = key & sets->mask, set = which * sets->room;
	uint64_t oldest = sets->oldest[which], way = set + oldest % NEAR_TICK;

	if (sets->times[way] != (oldest & -(uint64_t)NEAR_TICK))
		way = set + find_oldest(sets->times + set, sets->room) % NEAR_TICK;
	*evicted = sets->keys[way];
	sets->keys[way] = key;
	sets->tags[way] = (uint32_t)(key >> sets->bits);
	sets->times[way] = now;
	sets->oldest[which] = find_oldest(sets->times + set, sets->room);
	return way;
}

/* The lines of a page that has been evicted. */
static void leave_slots(const struct near *near, uint64_t page, uint64_t lines)
{
	for (; lines; lines &= lines - 1)
		leave_slot(near, page << NEAR_LINES | (uint64_t)__builtin_ctzl(lines));
}

/* Most lines that are missing are in a page that is not. */
static inline uint64_t use_page(struct near *near, uint64_t page, uint64_t now, bool *missed)
{
	uint16_t *guess = &near->page_ways[page % NEAR_GUESSES];
	uint64_t way = *guess, old;

	*missed = false;
	if (near->pages.keys[way] != page)
		way = find_key(&near->pages, page);
	if (way == UINT64_MAX) {
		*missed = true;
		way = replace(&near->pages, page, now, &old);
		leave_slots(near, old, near->slots_of[way]);
		near->slots_of[way] = 0;
	}
	*guess = (uint16_t)way;
	near->pages.times[way] = now;
	return way;
}

static uint32_t place_of(const struct near *near, const uint64_t *time)
{
	return (uint32_t)((const uint8_t *)time - near->base);
}

unsigned int near_find(struct near *near, uint64_t line, uint64_t now)
{
	bool line_missed = false, page_missed;
	const uint64_t page_way = use_page(near, line >> NEAR_LINES, now, &page_missed);
	uint64_t way = find_key(&near->lines, line), old;

	if (way == UINT64_MAX) {
		line_missed = true;
		way = replace(&near->lines, line, now, &old);
		leave_slot(near, old);
	}
	near->lines.times[way] = now;
	near->slots_of[page_way] |= 1UL << (line & ((1u << NEAR_LINES) - 1));
	*near_slot(near, line) = (struct near_slot){
		.key = line,
		.line = place_of(near, &near->lines.times[way]),
		.page = place_of(near, &near->pages.times[page_way]),
	};
	return (line_missed ? NEAR_LINE_MISSED : 0) | (page_missed ? NEAR_PAGE_MISSED : 0);
}

/* ---- further down ---- */

uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory)
{
	uint64_t size;

	*sets = (struct far_sets){.bits = 0};
	if (!cache->sets)
		return 0;
	*sets = (struct far_sets){
		.tags = (uint32_t *)memory,
		.mask = cache->sets - 1,
		.ways = cache->ways,
		.shift = log2_up(room_for(cache->ways)),
		.bits = log2_up(cache->sets),
	};
	for (uint32_t i = 0; i < 4; i++)
		if (room_for(cache->ways) - 4 + i >= cache->ways)
			sets->no_ways[i] = FAR_TIME_END;
	size = 2 * sizeof(uint32_t) * cache->sets << sets->shift;
	if (memory)
		sets->guesses = memory + size;
	return size + FAR_GUESSES;
}

/* Times become the order of ways, from 1; of what was never used it stays 0. */
static void renew_set(uint32_t *times, uint32_t ways)
{
	uint32_t order[MACHINE_MAX_WAYS];

	for (uint32_t i = 0; i < ways; i++) {
		order[i] = times[i] != 0;
		for (uint32_t j = 0; j < ways; j++)
			order[i] += times[j] && times[j] < times[i];
	}
	for (uint32_t i = 0; i < ways; i++)
		times[i] = order[i];
}

static void renew_far(struct far_sets *sets)
{
	for (uint64_t set = 0; set <= sets->mask; set++)
		renew_set(far_set(sets, set) + (1u << sets->shift), sets->ways);
	sets->now = MACHINE_MAX_WAYS + 1;
}

bool far_find(struct far_sets *sets, uint64_t key)
{
	uint32_t *tags = far_set(sets, key), *times = tags + (1u << sets->shift);
	const uint64_t bytes = room_for(sets->ways) * sizeof(uint32_t);
	const uint32_t tag = (uint32_t)(key >> sets->bits) + 1;
	uint32_t ways = scan_for(tags, bytes, tag), way;
	const bool found = ways;

	if (++sets->now == FAR_TIME_END)
		renew_far(sets);
	if (!found)
		ways = scan_for(times, bytes, scan_least(times, bytes, sets->no_ways));
	way = (uint32_t)__builtin_ctz(ways);
	sets->guesses[key % FAR_GUESSES] = (uint8_t)way;
	tags[way] = tag;
	times[way] = sets->now;
	return found;
}
