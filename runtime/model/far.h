/* SPDX-License-Identifier: MIT */
/*
 * Set-associative memories behind the first level (near.h), with true LRU: caches by lines, the
 * second TLB by pages.
 *
 *	set	| tag, tag, ... | time, time, ... |
 *
 * A tag is the key without the bits that have chosen the set, and one more, so that it is never 0.
 * Each way has the time of its last use, and who is missing takes the one of which that is the
 * longest ago. Times are of 31 bits. When they run out, each set's become the order in which its
 * ways were used.
 */
#ifndef RUNTIME_MODEL_FAR_H
#define RUNTIME_MODEL_FAR_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/machine.h"

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

/* What it takes from @memory on, which may be NULL, to be told the size. */
uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory);

#endif
