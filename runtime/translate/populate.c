// SPDX-License-Identifier: MIT
/*
 * The arrays of the cache are used from one end on. What the next fragment may need of each is
 * there before it is made, and something for the ones behind it: pages that are asked for together
 * take less time than a fault for each, and are no faults to those who count them.
 */
#include "runtime/translate/cache.h"
#include "runtime/translate/kept.h"
#include "runtime/translate/translate.h"

/* From when on there is a page more than may be needed. It is never used where little is built, as
 * by most children of fork(2), and what was there of the parent's is copied. */
#define LITTLE (64UL << 10)

#define PAGE_DOWN(at) ((uint64_t)(at) & -(uint64_t)PAGE_SIZE)
#define PAGE_UP(at)   PAGE_DOWN((uint64_t)(at) + PAGE_SIZE - 1)

static uint64_t surplus(const struct cache *cache)
{
	return cache->populated < LITTLE ? 0 : PAGE_SIZE;
}

static void populate(struct cache *cache, uint64_t start, uint64_t end)
{
	memory_populate(start, end);
	cache->populated += end - start;
}

/* Of an array that is used up to @next. */
static void ahead(struct cache *cache, enum cache_array array, const void *next, size_t more)
{
	uint64_t *there = &cache->there[array];
	const uint64_t start = PAGE_DOWN(next);
	uint64_t end = PAGE_UP((uint64_t)next + more);

	if (end <= *there)
		return;
	end += surplus(cache);
	populate(cache, *there > start ? *there : start, end);
	*there = end;
}

/* Of one that is used from its end on, down to @next. */
static void ahead_below(struct cache *cache, enum cache_array array, const void *next, size_t more)
{
	uint64_t *there = &cache->there[array];
	const uint64_t end = PAGE_UP(next);
	uint64_t start = PAGE_DOWN((uint64_t)next - more);

	if (*there && start >= *there)
		return;
	start -= surplus(cache);
	populate(cache, start, *there && *there < end ? *there : end);
	*there = start;
}

#define AHEAD(cache, array, base, nr, more)                                                        \
	ahead(cache, array, (base) + (nr), (more) * sizeof(*(base)))

void cache_populate(struct cache *cache)
{
	AHEAD(cache, ARRAY_CODE, cache->lookup.code, cache->code_next, FRAGMENT_BYTES);
	ahead(cache, ARRAY_STUBS, cache->lookup.code + stub_of(cache, cache->nr_targets),
	      FRAGMENT_EXITS * STUB_BYTES);
	AHEAD(cache, ARRAY_FRAGMENTS, cache->fragments, cache->nr_fragments, 1);
	AHEAD(cache, ARRAY_ENTRIES, cache->lookup.entries, cache->nr_entries, FRAGMENT_ENTRIES);
	if (cache->lookup.looks)
		AHEAD(cache, ARRAY_LEVELS, cache->levels, cache->nr_entries, FRAGMENT_ENTRIES);
	AHEAD(cache, ARRAY_TARGETS, cache->targets, cache->nr_targets, FRAGMENT_EXITS);
	AHEAD(cache, ARRAY_EXITS, cache->exits, cache->nr_exits, FRAGMENT_EXITS);
	/* Of most programs no code can change, and few fragments have several pages. */
	if (cache->nr_kept > 1)
		AHEAD(cache, ARRAY_KEPT, cache->kept, cache->nr_kept, KEPT_BYTES);
	if (!cache_traces(cache))
		return;
	AHEAD(cache, ARRAY_BLOCKS, cache->blocks.memory, cache->blocks.next, FRAGMENT_BYTES);
	ahead(cache, ARRAY_HOT, cache->blocks.compiled.hot, FRAGMENT_BYTES);
	ahead_below(cache, ARRAY_COLD, cache->blocks.compiled.cold, FRAGMENT_BYTES);
}
