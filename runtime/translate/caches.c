// SPDX-License-Identifier: MIT
#include "runtime/translate/caches.h"

#include "runtime/lock.h"
#include "runtime/translate/snapshot.h"

static struct cache caches[CACHES_MAX];

/* Whoever sees the number sees the caches. */
static uint32_t nr_caches;
static struct lock making;

/*
 * The last caches do everything, for whoever comes too late for his own: all that is counted without
 * the model, seldom looked at and finely; every kind and every extra; and the same slowly, for
 * breakpoints and for single steps.
 */
#define ALL_KINDS (CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1)

enum { EXACT, EXACT_FINE, MODELLED, SLOW, LAST_CACHES };

static const struct instrumentation everything[LAST_CACHES] = {
	[EXACT] = {CORE_KINDS_EXACT, CORE_KINDS_EXACT, 0},
	[EXACT_FINE] = {CORE_KINDS_EXACT, CORE_KINDS_EXACT, INSTRUMENT_FINE},
	[MODELLED] = {ALL_KINDS, ALL_KINDS, CORE_EXTRAS & ~CORE_EXTRA_BREAKPOINTS},
	[SLOW] = {ALL_KINDS, 0, CORE_EXTRAS | INSTRUMENT_STEPS},
};

static const struct instrumentation *everything_of(const struct instrumentation *does)
{
	if (does->extras & (CORE_EXTRA_BREAKPOINTS | INSTRUMENT_STEPS))
		return &everything[SLOW];
	if (does->counted & ~CORE_KINDS_EXACT || does->extras & ~INSTRUMENT_FINE)
		return &everything[MODELLED];
	return &everything[does->extras ? EXACT_FINE : EXACT];
}

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

	cache->does = *does;
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

/* Whoever was making one is not here; what he had made is lost. */
void caches_forked(void)
{
	making = (struct lock){0};
	for (unsigned int n = 0; n < nr_caches; n++)
		caches[n].populated = 0;
}

static bool covers(const struct instrumentation *has, const struct instrumentation *wants)
{
	return !(wants->counted & ~has->counted) && !(wants->checked & ~has->checked) &&
	       !(wants->extras & ~has->extras);
}

static unsigned int bits(uint64_t mask)
{
	unsigned int n = 0;

	for (; mask; mask &= mask - 1)
		n++;
	return n;
}

static unsigned int weight(const struct instrumentation *does)
{
	const unsigned int heavy = does->extras & INSTRUMENT_STEPS ? 1000 : 0;

	return heavy + bits(does->counted) + bits(does->checked) + bits(does->extras);
}

static struct cache *exact(const struct instrumentation *does)
{
	struct cache *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (caches_same(&cache->does, does))
			return cache;
	return NULL;
}

static struct cache *lightest(const struct instrumentation *does)
{
	struct cache *best = NULL, *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (covers(&cache->does, does) &&
		    (!best || weight(&cache->does) < weight(&best->does)))
			best = cache;
	return best;
}

/* With `making` held. */
static struct cache *make(const struct instrumentation *does)
{
	struct translate_memory memory;

	if (nr_caches >= CACHES_MAX - LAST_CACHES)
		does = everything_of(does);
	if (nr_caches == CACHES_MAX || exact(does) ||
	    !memory_translator(&memory, does->counted & CORE_KINDS_MODEL))
		return exact(does);
	add(&memory, does);
	return &caches[nr_caches - 1];
}

/*
 * The model counts everything at once, but for floating point, and looks for overflows itself: one
 * cache does for all who count, and one for who waits for a counter, and so has to see each record
 * (pmu/tracer.h). Where nobody asks for what operands are needed for, one does that tells of none.
 */
static struct instrumentation usual(const struct instrumentation *does)
{
	const uint64_t operands = does->counted & CORE_KINDS_OPERANDS ? 0 : CORE_KINDS_OPERANDS;
	const uint64_t apart = (CORE_KINDS_FLOATING & ~does->counted) | operands;

	if (!(does->counted & CORE_KINDS_MODEL))
		return *does;
	return (struct instrumentation){
		.counted = ALL_KINDS & ~apart,
		.checked = does->checked ? ALL_KINDS & ~operands : 0,
		.extras = does->extras,
	};
}

struct cache *caches_for(const struct instrumentation *wanted)
{
	const struct instrumentation does = usual(wanted);
	struct cache *cache = exact(&does);

	if (cache)
		return cache;
	lock_take(&making);
	cache = exact(&does);
	if (!cache)
		cache = make(&does);
	lock_give(&making);
	return cache ? cache : lightest(&does);
}
