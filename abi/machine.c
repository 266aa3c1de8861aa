// SPDX-License-Identifier: MIT
#include "abi/machine.h"

const struct machine tly_machine_reference = {
	.l1i = {64, 8},	    /* 32 KiB */
	.l1d = {64, 8},	    /* 32 KiB */
	.l2 = {1024, 16},   /* 1 MiB */
	.llc = {16384, 16}, /* 16 MiB */
	.itlb = {8, 8},	    /* 64 pages */
	.dtlb = {16, 4},    /* 64 pages */
	.stlb = {128, 12},  /* 1536 pages */
	.prefetches = 1,
	.width = 4,
	.window = 256,
	.mispredict = 16,
	.l2_hit = 14,
	.llc_hit = 50,
	.memory = 250,
	.stlb_hit = 7,
	.walk = 30,
	.ref_num = 1,
	.ref_den = 1,
	.bus = 30,
};

static bool valid_cache(const struct machine_cache *cache, uint32_t most_sets, bool optional)
{
	if (!cache->sets)
		return optional;
	return !(cache->sets & (cache->sets - 1)) && cache->sets <= most_sets && cache->ways &&
	       cache->ways <= MACHINE_MAX_WAYS;
}

bool tly_machine_valid(const struct machine *m)
{
	return valid_cache(&m->l1i, MACHINE_MAX_L1_SETS, false) &&
	       valid_cache(&m->l1d, MACHINE_MAX_L1_SETS, false) &&
	       valid_cache(&m->itlb, MACHINE_MAX_L1_SETS, false) &&
	       valid_cache(&m->dtlb, MACHINE_MAX_L1_SETS, false) &&
	       valid_cache(&m->l2, MACHINE_MAX_SETS, true) &&
	       valid_cache(&m->llc, MACHINE_MAX_SETS, true) &&
	       valid_cache(&m->stlb, MACHINE_MAX_SETS, true) && m->width && m->width <= 64 &&
	       m->window && m->ref_num && m->ref_den && m->bus;
}

struct machine_cache tly_machine_cache(uint64_t size, uint32_t ways, uint32_t unit)
{
	uint64_t sets = 1;

	if (!size || !unit || size / unit == 0)
		return (struct machine_cache){0};
	if (!ways || ways > MACHINE_MAX_WAYS)
		ways = 8;
	if (ways > size / unit)
		ways = size / unit;
	while (2 * sets * ways <= size / unit && sets < MACHINE_MAX_SETS)
		sets *= 2;
	return (struct machine_cache){sets, ways};
}
