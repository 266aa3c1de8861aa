/* SPDX-License-Identifier: MIT */
/*
 * Set-associative memories with true LRU: caches by lines, TLBs by pages.
 *
 * The first level is asked all the time, by code that is made for that (compile.c): so a line that
 *is in the cache, and whose page is in the TLB, has a slot in a table, found by some bits of its
 *key, which tells where the times of their last uses are. To be in the slot is a hit in both, and
 *to write the two times is all that a hit does. Slots are many times as many as lines, so that two
 * hardly ever want the same; who is not in a slot is looked for in his set.
 *
 *	slots	| key, time, time | ...		by the low bits of the key
 *			 |
 *	times	| time | time | ... |		one a way, of each set
 *	keys	| key  | key  | ... |
 *
 * Further down a set is an array in the order of use.
 *
 * Keys of the first level are whole; they are never 0, since neither the first line nor the first
 * page of an address space can be used. Further down 32 bits do: the key without the bits of the
 * set, plus one.
 */
#ifndef RUNTIME_MODEL_SETS_H
#define RUNTIME_MODEL_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/machine.h"

struct near_sets {
	uint64_t mask; /* of keys that choose the set */
	uint32_t ways;
	uint64_t *keys, *times;
};

struct near_slot {
	uint64_t key;	     /* of a line; 0: free */
	uint32_t line, page; /* where their times are, in bytes from `base` */
};

/* A cache and the TLB that goes with it. */
struct near {
	struct near_slot *slots;
	uint64_t slots_mask;
	uint32_t fold; /* the upper bits of a key choose its slot, too: from this one on */
	struct near_sets lines, pages;
	uint64_t *slots_of; /* of each page of the TLB: the lines that may be in slots, as bits */
	uint8_t *base;
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
unsigned int near_use(struct near *near, uint64_t line, uint64_t now);

struct far_sets {
	uint32_t *keys; /* NULL: there is no such cache */
	uint64_t mask;
	uint32_t ways, shift, bits;
};

/* It will be asked for @key before long. */
static inline void far_expect(const struct far_sets *sets, uint64_t key)
{
	if (sets->keys)
		__builtin_prefetch(sets->keys + ((key & sets->mask) << sets->shift), 1);
}

static inline bool far_use(const struct far_sets *sets, uint64_t key)
{
	uint32_t *set = sets->keys + ((key & sets->mask) << sets->shift);
	const uint32_t short_key = (uint32_t)(key >> sets->bits) + 1;
	uint32_t moved = short_key;

	for (uint32_t i = 0; i < sets->ways; i++) {
		const uint32_t old = set[i];

		set[i] = moved;
		if (old == short_key)
			return true;
		moved = old;
	}
	return false;
}

/* The part of the state that a cache takes from @memory on; slots are not among it. Returns how
 * much that is. */
uint64_t near_size(const struct machine_cache *lines, const struct machine_cache *pages);
uint64_t near_place(struct near *near, const struct machine_cache *lines,
		    const struct machine_cache *pages, uint8_t *memory);
/* @memory may be NULL, to be told the size. */
uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory);

#endif
