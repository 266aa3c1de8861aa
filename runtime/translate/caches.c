// SPDX-License-Identifier: MIT
#include "runtime/translate/caches.h"

#include "runtime/translate/inside.h"
#include "runtime/translate/snapshot.h"

static struct cache caches[CACHES_MAX];

/* Whoever sees the number sees the caches. */
static uint32_t nr_caches;

struct cache *cache_number(unsigned int n)
{
	return n < __atomic_load_n(&nr_caches, __ATOMIC_ACQUIRE) ? &caches[n] : NULL;
}

uint32_t cache_inside(const struct cache *cache)
{
	return 1 + (uint32_t)(cache - caches);
}

struct cache *cache_at(uint64_t address)
{
	struct cache *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (address - (uint64_t)cache->lookup.code < TRANSLATE_CODE_SIZE)
			return cache;
	return NULL;
}

/* Whether returns to @pc arrive at @offset. */
static bool is_pad(const struct cache *cache, uint32_t offset, uint64_t pc)
{
	const struct fragment *f = cache_fragment_at(cache, offset);

	if (!f)
		return false;
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++)
		if (cache->lookup.entries[id].pad == offset)
			return cache->lookup.entries[id].pc == pc;
	return f->flags & FRAGMENT_PAD && f->pc == pc;
}

bool translate_has_returned(const struct thread *thread, uint64_t trace, uint64_t pc)
{
	const struct cache *cache = cache_at(trace);
	bool arrived = false;

	if (!cache)
		return false;
	translate_lock();
	arrived = is_pad(cache, (uint32_t)(trace - (uint64_t)cache->lookup.code), pc);
	translate_unlock();
	return arrived || thread->target == pc;
}

bool translate_has_emitted(uint64_t address)
{
	return cache_at(address);
}

/* Whether there is anything in it. */
static bool add(const struct translate_memory *memory, const struct instrumentation *does)
{
	struct cache *cache = &caches[nr_caches];
	bool spoiled = false, kept;

	*cache = (struct cache){.does = *does};
	cache_init(cache, memory);
	/* What is kept goes by the memory map, and is told what changes there once it is known. */
	translate_lock();
	kept = memory_kept(cache, &spoiled);
	if (!kept && spoiled)
		cache_init(cache, memory);
	if (!kept)
		cache_begin(cache);
	__atomic_store_n(&nr_caches, nr_caches + 1, __ATOMIC_RELEASE);
	translate_unlock();
	return kept;
}

bool caches_init(const struct translate_memory *memory)
{
	return add(memory, &(struct instrumentation){0});
}

struct cache *caches_add(const struct instrumentation *does)
{
	struct translate_memory memory;

	if (nr_caches == CACHES_MAX ||
	    !memory_translator(&memory, does->counted & CORE_KINDS_MODEL))
		return NULL;
	add(&memory, does);
	return &caches[nr_caches - 1];
}

bool caches_change(struct cache *cache, const struct instrumentation *does)
{
	if (does->counted & CORE_KINDS_MODEL && !cache->blocks.memory)
		cache->blocks.memory = memory_more(TRANSLATE_BLOCKS_SIZE, true);
	if (does->counted & CORE_KINDS_MODEL && !cache->blocks.memory)
		return false;
	translate_lock();
	inside_empty(cache);
	memory_forget_kept(cache);
	cache_become(cache, does);
	translate_unlock();
	return true;
}

/* What has been asked for of their memory its parent has asked for. */
void caches_forked(void)
{
	for (unsigned int n = 0; n < nr_caches; n++)
		caches[n].populated = 0;
}
