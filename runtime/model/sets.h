/* SPDX-License-Identifier: MIT */
/*
 * Set-associative memories with true LRU: caches by lines, TLBs by pages. A set is an array in the
 * order of use, so that what was used last is found by one comparison, and nothing changes when it
 * is used again: most accesses.
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

/* The first place of each set stands by itself: it is nearly all that is ever looked at. */
struct near_sets {
	uint64_t last[MACHINE_MAX_L1_SETS];
	uint64_t mask; /* of keys that choose the set */
	uint32_t ways;
	uint64_t *rest; /* ways - 1 of each set */
};

/* 0 if @key was the last one used of its set: several are asked for in one comparison. */
static inline uint64_t near_moved(const struct near_sets *sets, uint64_t key)
{
	return sets->last[key & sets->mask] ^ key;
}

/* Uses @key; whether it was there. */
static inline bool near_use(struct near_sets *sets, uint64_t key)
{
	const uint64_t set = key & sets->mask;
	uint64_t *rest = sets->rest + set * (sets->ways - 1), moved = sets->last[set];

	if (moved == key)
		return true;
	sets->last[set] = key;
	if (sets->ways > 1 && rest[0] == key) { /* two that take turns */
		rest[0] = moved;
		return true;
	}
	for (uint32_t i = 0; i < sets->ways - 1; i++) {
		const uint64_t old = rest[i];

		rest[i] = moved;
		if (old == key)
			return true;
		moved = old;
	}
	return false;
}

struct far_sets {
	uint32_t *keys; /* NULL: there is no such cache */
	uint64_t mask;
	uint32_t ways, shift, bits;
};

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

/* The part of the state that a cache takes from @memory on, of which NULL only tells the size. */
uint64_t near_place(struct near_sets *sets, const struct machine_cache *cache, uint8_t *memory);
uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory);

#endif
