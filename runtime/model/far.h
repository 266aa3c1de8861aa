/* SPDX-License-Identifier: MIT */
/*
 * Set-associative memories behind the first level (near.h), with true LRU: caches by lines, the
 * second TLB by pages.
 *
 *	tags	| 16 or 32 | ...	of each set
 *	ranks	| 16 or 32 | ...	bytes, each xor'ed with the number of its way
 *
 * A tag is the key without the bits that have chosen the set, and one more, so that it is never 0.
 * A rank says how many of the other ways have been used since: who is missing takes the last one.
 * Where nothing has been used yet it is the number of the way: so memory begins as zero, and those
 * that there are not keep ranks that nobody looks for.
 */
#ifndef RUNTIME_MODEL_FAR_H
#define RUNTIME_MODEL_FAR_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/machine.h"

enum { FAR_WAYS = 16 }; /* that are looked at together */

struct far_sets {
	uint32_t *tags; /* NULL: there is no such cache */
	uint8_t *ranks;
	uint64_t mask;
	uint32_t shift; /* of the ways that a set has room for: */
	bool wide;	/* twice as many as are looked at together */
	uint32_t bits;
	uint32_t last;				    /* rank */
	_Alignas(16) uint8_t victims[2 * FAR_WAYS]; /* what it is like in each way */
};

/* Uses @key; whether it was there. */
bool far_use(struct far_sets *sets, uint64_t key);

/* What it takes from @memory on, aligned to 16, or to be told the size NULL. */
uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory);

#endif
