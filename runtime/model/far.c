// SPDX-License-Identifier: MIT
/* Nothing depends on the order in a set by a branch: that is at random. */
#include "runtime/model/far.h"

#include <stddef.h>

#include "runtime/model/scan.h"

static const _Alignas(16) uint8_t ways[MACHINE_MAX_WAYS] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};

uint64_t far_place(struct far_sets *sets, const struct machine_cache *cache, uint8_t *memory)
{
	const bool wide = cache->ways > FAR_WAYS;
	uint64_t all;

	*sets = (struct far_sets){.bits = 0};
	if (!cache->sets)
		return 0;
	*sets = (struct far_sets){
		.tags = (uint32_t *)memory,
		.mask = cache->sets - 1,
		.shift = (uint32_t)__builtin_ctz(FAR_WAYS) + wide,
		.wide = wide,
		.bits = (uint32_t)__builtin_ctz(cache->sets),
		.last = cache->ways - 1,
	};
	for (uint32_t way = 0; way < 2 * FAR_WAYS; way++)
		sets->victims[way] = (uint8_t)(sets->last ^ way);
	all = (uint64_t)cache->sets << sets->shift;
	if (memory)
		sets->ranks = memory + all * sizeof(*sets->tags);
	return all * (sizeof(*sets->tags) + sizeof(*sets->ranks));
}

/* @way, of which the rank is @rank, is used. */
static inline void use(uint8_t *ranks, bool wide, uint32_t way, uint32_t rank)
{
	scan_increase(ranks, ways, rank);
	if (__builtin_expect(wide, 0))
		scan_increase(ranks + FAR_WAYS, ways + FAR_WAYS, rank);
	ranks[way] = (uint8_t)way;
}

static inline uint32_t find(const uint32_t *tags, bool wide, uint32_t tag)
{
	uint32_t found = scan_words_for(tags, tag);

	if (__builtin_expect(wide, 0))
		found |= scan_words_for(tags + FAR_WAYS, tag) << FAR_WAYS;
	return found;
}

static inline uint32_t find_last(const struct far_sets *sets, const uint8_t *ranks)
{
	uint32_t found = scan_bytes_for(ranks, sets->victims);

	if (__builtin_expect(sets->wide, 0))
		found |= scan_bytes_for(ranks + FAR_WAYS, sets->victims + FAR_WAYS) << FAR_WAYS;
	return found;
}

bool far_use(struct far_sets *sets, uint64_t key)
{
	const uint32_t tag = (uint32_t)(key >> sets->bits) + 1;
	const uint64_t set = (key & sets->mask) << sets->shift;
	uint32_t *tags = sets->tags + set;
	uint8_t *ranks = sets->ranks + set;
	uint32_t found = find(tags, sets->wide, tag), way;

	if (found) {
		way = (uint32_t)__builtin_ctz(found);
		use(ranks, sets->wide, way, ranks[way] ^ way);
		return true;
	}
	way = (uint32_t)__builtin_ctz(find_last(sets, ranks));
	use(ranks, sets->wide, way, sets->last);
	tags[way] = tag;
	return false;
}
