/* SPDX-License-Identifier: MIT */
/*
 * Set-associative memories with true LRU: caches by lines, TLBs by pages. Each way has the time of
 * its last use, and who is missing takes the one of which that is the longest ago.
 *
 * The first level is asked all the time, by code that is made for that (compile.c): so a line that
 * is in the cache, and whose page is in the TLB, has a slot in a table, found by some bits of its
 * key, which tells where the times of their last uses are. To be in the slot is a hit in both, and
 * to write the two times is all that a hit does. Slots are many times as many as lines, so that two
 * hardly ever want the same; who is not in a slot is looked for in his set.
 *
 *	slots	| key, time, time | ...		by the low bits of the key
 *			 |
 *	times	| time | time | ... |		one a way, of each set
 *	keys	| key  | key  | ... |
 *	tags	| tag  | tag  | ... |
 *
 * A tag is the key without the bits that have chosen the set, as far as it fits. In the first level
 * it says where to look: keys are never 0, since neither the first line nor the first page of an
 * address space can be used. Further down there is nothing else, and it is never 0.
 *
 * Who was the oldest when something was last missed in a set, and has not been used since, still
 *is: so who misses next need not wait until he is found.
 *
 * Further down times are of 31 bits. When they run out, each set's become the order in which its
 * ways were used.
 */
#ifndef RUNTIME_MODEL_SETS_H
#define RUNTIME_MODEL_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/machine.h"

struct near_sets {
	uint64_t mask; /* of keys that choose the set */
	uint32_t bits;
	uint32_t room; /* of a set: ways and those that fill the last four */
	uint64_t *times, *keys;
	uint32_t *tags;
	uint64_t *oldest; /* of each set: the least time that there was lately, and whose */
};

/* Times of the first level are multiples of this, so that the way fits below. */
#define NEAR_TICK MACHINE_MAX_WAYS

struct near_slot {
	uint64_t key;	     /* of a line; 0: free */
	uint32_t line, page; /* where their times are, in bytes from `base` */
};

enum { NEAR_GUESSES = 256 };

/* A cache and the TLB that goes with it. */
struct near {
	struct near_slot *slots;
	uint64_t slots_mask;
	uint32_t fold; /* the upper bits of a key choose its slot, too: from this one on */
	struct near_sets lines, pages;
	uint64_t *slots_of; /* of each page of the TLB: the lines that may be in slots, as bits */
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

#define NEAR_LINE_MISSED 1
#define NEAR_PAGE_MISSED 2

/* Uses a line and its page, at a time that is later than all before; which of them were not there.
 */
unsigned int near_find(struct near *near, uint64_t line, uint64_t now);

static inline unsigned int near_use(struct near *near, uint64_t line, uint64_t now)
{
	const struct near_slot *slot = near_slot(near, line);

	if (slot->key != line)
		return near_find(near, line, now);
	*(uint64_t *)(near->base + slot->line) = now;
	*(uint64_t *)(near->base + slot->page) = now;
	return 0;
}

#define FAR_TIME_END ((1u << 31) - 1)

/* In which way a key with such low bits was found last. */
enum { FAR_GUESSES = 16384 };

struct far_sets {
	uint32_t *tags; /* of each set, and behind them its times; NULL: there is no such cache */
	uint8_t *guesses;
	uint64_t mask;
	uint32_t ways, shift, bits;
	uint32_t now;
	_Alignas(16) uint32_t
		no_ways[4]; /* those of the last four that there are not: the latest time */
};

static inline uint32_t *far_set(const struct far_sets *sets, uint64_t key)
{
	return sets->tags + ((key & sets->mask) << (sets->shift + 1));
}

/* It will be asked for @key before long. */
static inline void far_expect(const struct far_sets *sets, uint64_t key)
{
	const uint32_t *set;

	if (!sets->tags)
		return;
	set = far_set(sets, key);
	__builtin_prefetch(set, 1);
	__builtin_prefetch(set + (1u << sets->shift), 1);
}

bool far_find(struct far_sets *sets, uint64_t key);

/* Uses @key; whether it was there. */
static inline bool far_use(struct far_sets *sets, uint64_t key)
{
	const uint32_t tag = (uint32_t)(key >> sets->bits) + 1, now = sets->now + 1;
	uint32_t *set = far_set(sets, key);
	const uint32_t way = sets->guesses[key % FAR_GUESSES];

	if (set[way] != tag || now == FAR_TIME_END)
		return far_find(sets, key);
	set[(1u << sets->shift) + way] = sets->now = now;
	return true;
}

/* The part of the state that a cache takes from @memory on; slots are not among it. Returns how
 * much that is. */
uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages);
uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint8_t *memory);
/* @memory may be NULL, to be told the size. */
uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory);

#endif
