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

uint64_t near_place(struct near_sets *sets, const struct machine_cache *cache, uint8_t *memory)
{
	*sets = (struct near_sets){
		.mask = cache->sets - 1,
		.ways = cache->ways,
		.rest = (uint64_t *)memory,
	};
	return sizeof(uint64_t) * cache->sets * (cache->ways - 1);
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
