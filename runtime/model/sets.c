// SPDX-License-Identifier: MIT
#include "runtime/model/sets.h"

#include <stddef.h>

/* Sets begin at powers of two. */
static uint32_t log2_up(uint32_t n)
{
	uint32_t bits = 0;

	while (1u << bits < n)
		bits++;
	return bits;
}

static uint64_t ways_of(const struct machine_cache *cache)
{
	return (uint64_t)cache->sets * cache->ways;
}

/* Times, keys; and of a page which of its lines may be in slots. */
uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages)
{
	return (2 * ways_of(lines) + 3 * ways_of(pages)) * sizeof(uint64_t);
}

/* Returns what lies behind it. */
static uint64_t *place_sets(struct near_sets *sets, const struct machine_cache *cache,
			    uint64_t *memory)
{
	sets->mask = cache->sets - 1;
	sets->ways = cache->ways;
	sets->times = memory;
	sets->keys = memory + ways_of(cache);
	return sets->keys + ways_of(cache);
}

uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint8_t *memory)
{
	near->slots_of = place_sets(&near->pages, pages,
				    place_sets(&near->lines, lines, (uint64_t *)memory));
	return near_size(lines, pages);
}

static void leave_slot(const struct near *near, uint64_t line)
{
	struct near_slot *slot = near_slot(near, line);

	if (slot->key == line)
		slot->key = 0;
}

/*
 * Which way of its set @key has, among all; if it has none, the one that was used the longest time
 * ago becomes its own, and *@evicted is who had it. Nothing depends on the order in the set by a
 * branch: that is at random.
 */
static uint64_t way_for(struct near_sets *sets, uint64_t key, uint64_t *evicted)
{
	const uint64_t set = (key & sets->mask) * sets->ways;
	uint64_t *keys = sets->keys + set, *times = sets->times + set, first = UINT64_MAX;
	uint32_t oldest = 0, way = sets->ways;

	for (uint32_t i = 0; i < sets->ways; i++) {
		way = keys[i] == key ? i : way;
		oldest = times[i] < first ? i : oldest;
		first = times[i] < first ? times[i] : first;
	}
	*evicted = key;
	if (way < sets->ways)
		return set + way;
	*evicted = keys[oldest];
	keys[oldest] = key;
	return set + oldest;
}

/* The lines of a page that has been evicted. */
static void leave_slots(const struct near *near, uint64_t page, uint64_t lines)
{
	for (; lines; lines &= lines - 1)
		leave_slot(near, page << NEAR_LINES | (uint64_t)__builtin_ctzl(lines));
}

static uint32_t place_of(const struct near *near, const uint64_t *time)
{
	return (uint32_t)((const uint8_t *)time - near->base);
}

static unsigned int find(struct near *near, uint64_t line, uint64_t now)
{
	const uint64_t page = line >> NEAR_LINES;
	uint64_t old_line, old_page;
	const uint64_t line_way = way_for(&near->lines, line, &old_line);
	const uint64_t page_way = way_for(&near->pages, page, &old_page);

	if (old_line != line)
		leave_slot(near, old_line);
	if (old_page != page) {
		leave_slots(near, old_page, near->slots_of[page_way]);
		near->slots_of[page_way] = 0;
	}
	near->slots_of[page_way] |= 1UL << (line & ((1u << NEAR_LINES) - 1));
	near->lines.times[line_way] = near->pages.times[page_way] = now;
	*near_slot(near, line) = (struct near_slot){
		.key = line,
		.line = place_of(near, &near->lines.times[line_way]),
		.page = place_of(near, &near->pages.times[page_way]),
	};
	return (old_line != line ? NEAR_LINE_MISSED : 0) |
	       (old_page != page ? NEAR_PAGE_MISSED : 0);
}

unsigned int near_use(struct near *near, uint64_t line, uint64_t now)
{
	const struct near_slot *slot = near_slot(near, line);

	if (slot->key != line)
		return find(near, line, now);
	*(uint64_t *)(near->base + slot->line) = now;
	*(uint64_t *)(near->base + slot->page) = now;
	return 0;
}

uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory)
{
	*sets = (struct far_sets){.bits = 0};
	if (!cache->sets)
		return 0;
	*sets = (struct far_sets){
		.keys = (uint32_t *)memory,
		.mask = cache->sets - 1,
		.ways = cache->ways,
		.shift = log2_up(cache->ways),
		.bits = log2_up(cache->sets),
	};
	return sizeof(uint32_t) * cache->sets << sets->shift;
}
