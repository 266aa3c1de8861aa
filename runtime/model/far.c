// SPDX-License-Identifier: MIT
/* Nothing depends on the order in a set by a branch: that is at random. */
#include "runtime/model/far.h"

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
	return (ways + SCAN_WORDS - 1) & ~(SCAN_WORDS - 1);
}

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
