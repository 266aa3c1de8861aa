/* SPDX-License-Identifier: MIT */
/*
 * The first level: a cache, by lines, and the TLB that goes with it, by pages, both set-associative
 * with true LRU.
 *
 * It is asked all the time, by code that is made for that (compile.c): so a line that is in the
 * cache, and whose page is in the TLB, has a slot in a table, found by some bits of its key, which
 * tells where the time of its last use is. To be in the slot is a hit in both, and to write that
 * time is all that a hit does. Slots are many times as many as lines, so that two hardly ever want
 * the same; who is not in a slot is looked for in his set.
 *
 *	slots	| key, time, page | ...		by the low bits of the key
 *			 |
 *	times	| time | time | ... |		one a way, of each set
 *	keys	| key  | key  | ... |
 *	tags	| tag  | tag  | ... |
 *
 * A tag is the key without the bits that have chosen the set, as far as it fits: it says where to
 * look. Keys are never 0, since neither the first line nor the first page of an address space can
 *be used.
 *
 * A page is used when a line of it is. So what is kept of a page is a time at which it was used,
 *and it was used last at the latest of this one and of the times of its lines in slots: that is
 *looked for when a page has to go (near.c). A line that leaves its slot leaves its time to its
 *page.
 */
#ifndef RUNTIME_MODEL_NEAR_H
#define RUNTIME_MODEL_NEAR_H

#include <stdint.h>

#include "abi/machine.h"
#include "runtime/model/scan.h"

struct near_sets {
	uint64_t mask; /* of keys that choose the set */
	uint32_t bits;
	uint32_t room; /* of a set: ways and those that fill the last four */
	uint64_t *times, *keys;
	uint32_t *tags;
};

/* Times are multiples of this, so that the way fits below. */
#define NEAR_TICK MACHINE_MAX_WAYS

struct near_slot {
	uint64_t key;  /* of a line; 0: free */
	uint32_t line; /* where its time is, in bytes from `base` */
	uint32_t page; /* which way its page has, among all */
};

enum { NEAR_GUESSES = 256 };

struct near {
	struct near_slot *slots;
	uint64_t slots_mask;
	uint32_t fold; /* the upper bits of a key choose its slot, too: from this one on */
	struct near_sets lines, pages;
	uint64_t *slots_of; /* of each page of the TLB: the lines that are in slots, as bits */
	uint8_t *base;
	uint16_t page_ways[NEAR_GUESSES]; /* where a page with such low bits was found last */
};

/* Keys have fewer bits: nothing is folded. */
#define NEAR_WHOLE 63

/* By how many bits the key of a line is longer than that of its page. */
#define NEAR_LINES (MACHINE_PAGE_SHIFT - MACHINE_LINE_SHIFT)

static inline struct near_slot *near_slot(const struct near *near, uint64_t key)
{
	return &near->slots[(key ^ key >> near->fold) & near->slots_mask];
}

static inline uint64_t *near_time(const struct near *near, const struct near_slot *slot)
{
	return (uint64_t *)(near->base + slot->line);
}

/* Of a line among those of its page. */
static inline uint64_t near_bit(uint64_t line)
{
	return 1UL << (line & ((1u << NEAR_LINES) - 1));
}

/* The slot's line is not in it any more. */
static inline void near_leave(const struct near *near, struct near_slot *slot)
{
	uint64_t *page = &near->pages.times[slot->page];
	const uint64_t time = *near_time(near, slot);

	*page = *page > time ? *page : time;
	near->slots_of[slot->page] &= ~near_bit(slot->key);
	slot->key = 0;
}

static inline uint64_t near_set(const struct near_sets *sets, uint64_t key)
{
	return (key & sets->mask) * sets->room;
}

/* In which ways of the set that begins at @set @key may be: a bit for each. */
static inline uint32_t near_ways(const struct near_sets *sets, uint64_t set, uint64_t key)
{
	return scan_for(sets->tags + set, sets->room * sizeof(uint32_t),
			(uint32_t)(key >> sets->bits));
}

static inline uint64_t near_lesser(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* Which way of a set has the least time. */
static inline uint64_t near_oldest(const uint64_t *times, uint32_t room)
{
	uint64_t even = UINT64_MAX, odd = UINT64_MAX;

	for (uint64_t i = 0; i < room; i += 4) {
		even = near_lesser(even, near_lesser(times[i] + i, times[i + 2] + i + 2));
		odd = near_lesser(odd, near_lesser(times[i + 1] + i + 1, times[i + 3] + i + 3));
	}
	return near_lesser(even, odd) % NEAR_TICK;
}

static inline void near_take(const struct near_sets *sets, uint64_t way, uint64_t key)
{
	sets->keys[way] = key;
	sets->tags[way] = (uint32_t)(key >> sets->bits);
}

/* The way of the line whose use is the longest ago becomes @line's. */
static inline uint64_t near_replace(const struct near *near, uint64_t set, uint64_t line)
{
	const struct near_sets *sets = &near->lines;
	const uint64_t way = set + near_oldest(sets->times + set, sets->room);
	const uint64_t old = sets->keys[way];
	struct near_slot *slot = near_slot(near, old);

	if (old && slot->key == old)
		near_leave(near, slot);
	near_take(sets, way, line);
	return way;
}

/* A line that is in the cache gets a slot, its page, too, as they are used. */
static inline void near_settle(const struct near *near, struct near_slot *slot, uint64_t line,
			       uint64_t way, uint64_t page_way, uint64_t now)
{
	if (slot->key)
		near_leave(near, slot);
	near->lines.times[way] = now;
	near->pages.times[page_way] = now;
	near->slots_of[page_way] |= near_bit(line);
	*slot = (struct near_slot){
		.key = line,
		.line = (uint32_t)((uint8_t *)&near->lines.times[way] - near->base),
		.page = (uint32_t)page_way,
	};
}

#define NEAR_LINE_MISSED 1
#define NEAR_PAGE_MISSED 2

/* The rest of near_find(): the page is not where its like was found last; the line may be in
 * @ways. */
unsigned int near_find_page(struct near *near, uint64_t line, uint64_t now);
unsigned int near_find_line(struct near *near, uint64_t line, uint64_t now, uint64_t page_way,
			    uint32_t ways);

/*
 * Uses a line that is in no slot, and its page, at a time that is later than all before; which of
 * them were not there. Mostly the line is not, and the page is.
 */
static inline unsigned int near_find(struct near *near, uint64_t line, uint64_t now)
{
	const uint64_t page = line >> NEAR_LINES, set = near_set(&near->lines, line);
	const uint64_t page_way = near->page_ways[page % NEAR_GUESSES];
	uint32_t ways;

	if (__builtin_expect(near->pages.keys[page_way] != page, 0))
		return near_find_page(near, line, now);
	ways = near_ways(&near->lines, set, line);
	if (__builtin_expect(ways, 0))
		return near_find_line(near, line, now, page_way, ways);
	near_settle(near, near_slot(near, line), line, near_replace(near, set, line), page_way,
		    now);
	return NEAR_LINE_MISSED;
}

/* The part of the state that a cache takes from @memory on; slots are not among it. Returns how
 * much that is. */
uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages);
uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint8_t *memory);

#endif
