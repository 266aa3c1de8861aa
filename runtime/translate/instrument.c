// SPDX-License-Identifier: MIT
/*
 * The choice of a cache for what a thread's events need.
 *
 * Each set of instrumentation has its own, as long as there are few. Then one that nobody uses
 * becomes another; where all are in use, and where there is no memory for more, there are some that
 * do everything.
 *
 * A thread that finds a cache says first that it may use it (lookup_next), and then looks whether
 * it may be about to become another; who makes it another says that first (cache->changes), and
 * then looks who may use it. So one of both sees the other at least.
 */
#include "runtime/translate/instrument.h"

#include "runtime/lock.h"
#include "runtime/pmu/tracer.h"
#include "runtime/sys.h"
#include "runtime/translate/caches.h"
#include "runtime/translate/filter.h"
#include "runtime/translate/inside.h"

/* Of who makes a cache, or makes one another; before the translator's. */
static struct lock making = {.kind = LOCK_MAKING};

/* How often one has been made. */
static uint64_t times;

/* ---- sets ---- */

/*
 * The last caches do everything, for whoever comes too late for his own: all that is counted
 * without the model, seldom looked at and finely; every kind and every extra, but for breakpoints,
 * and with them; and the same slowly, for single steps, and for what may touch something.
 */
#define ALL_KINDS (CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1)

enum { EXACT, EXACT_FINE, MODELLED, FILTERED, SLOW, LAST_CACHES };

static const struct instrumentation everything[LAST_CACHES] = {
	[EXACT] = {CORE_KINDS_EXACT, CORE_KINDS_EXACT, 0},
	[EXACT_FINE] = {CORE_KINDS_EXACT, CORE_KINDS_EXACT, INSTRUMENT_FINE},
	[MODELLED] = {ALL_KINDS, ALL_KINDS, CORE_EXTRAS & ~CORE_EXTRA_BREAKPOINTS},
	[FILTERED] = {ALL_KINDS, ALL_KINDS, CORE_EXTRAS},
	[SLOW] = {ALL_KINDS, 0, CORE_EXTRAS | INSTRUMENT_STEPS},
};

static bool steps(const struct instrumentation *does)
{
	return does->extras & INSTRUMENT_STEPS;
}

static bool filters(const struct instrumentation *does)
{
	return does->extras & CORE_EXTRA_BREAKPOINTS && !steps(does);
}

static bool traces(const struct instrumentation *does)
{
	return does->counted & CORE_KINDS_MODEL;
}

static const struct instrumentation *everything_of(const struct instrumentation *does)
{
	if (steps(does))
		return &everything[SLOW];
	if (filters(does))
		return &everything[FILTERED];
	if (traces(does) || does->extras & ~INSTRUMENT_FINE)
		return &everything[MODELLED];
	return &everything[does->extras ? EXACT_FINE : EXACT];
}

static bool is_everything(const struct instrumentation *does)
{
	for (unsigned int i = 0; i < LAST_CACHES; i++)
		if (caches_same(&everything[i], does))
			return true;
	return false;
}

/*
 * Of one instruction that may touch what is watched, where code does what @does says: there are
 * few, and none takes flags for it where the code does not.
 */
static struct instrumentation alone(const struct instrumentation *does)
{
	const bool floating = does->counted & CORE_KINDS_FLOATING;

	if (traces(does))
		return everything[SLOW];
	return (struct instrumentation){
		.counted = !does->counted ? 0
			   : floating	  ? CORE_KINDS_EXACT
					  : CORE_KINDS_EXACT & ~CORE_KINDS_FLOATING,
		.extras = CORE_EXTRA_BREAKPOINTS | CORE_EXTRA_STOPS | INSTRUMENT_STEPS,
	};
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

	if (!traces(does))
		return *does;
	return (struct instrumentation){
		.counted = ALL_KINDS & ~apart,
		.checked = does->checked ? ALL_KINDS & ~operands : 0,
		.extras = does->extras,
	};
}

/* What can be done at speed is. */
static struct instrumentation possible(const struct instrumentation *wanted)
{
	struct instrumentation does = usual(wanted);

	if (filters(&does) && !filter_possible())
		does.extras |= INSTRUMENT_STEPS;
	return does;
}

/* ---- what there is ---- */

/* Whether @cache does just that, and is not about to become another. */
static bool is_for(const struct cache *cache, const struct instrumentation *does)
{
	const uint32_t changes = __atomic_load_n(&cache->changes, __ATOMIC_SEQ_CST);

	return !(changes & 1) && caches_same(&cache->does, does) &&
	       __atomic_load_n(&cache->changes, __ATOMIC_SEQ_CST) == changes;
}

static struct cache *find(const struct instrumentation *does)
{
	struct cache *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (is_for(cache, does))
			return cache;
	return NULL;
}

/* Whoever comes out behind each instruction looks there at all counters. */
static bool covers(const struct instrumentation *has, const struct instrumentation *wants)
{
	return !(wants->counted & ~has->counted) &&
	       (steps(has) || !(wants->checked & ~has->checked)) && !(wants->extras & ~has->extras);
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
	return (steps(does) ? 1000 : 0) + bits(does->counted) + bits(does->checked) +
	       bits(does->extras);
}

/* What filters needs another beside it. */
static struct cache *lightest(const struct instrumentation *does)
{
	struct cache *best = NULL, *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (covers(&cache->does, does) && !filters(&cache->does) &&
		    (!best || weight(&cache->does) < weight(&best->does)))
			best = cache;
	return best;
}

/* ---- making caches ---- */

/* What is found alone where code filters is never another as long as somebody may run in that
 * code. */
static bool needs(const struct lookup *lookup, const struct cache *cache)
{
	const struct cache *uses = (const struct cache *)lookup;
	struct instrumentation beside;

	if (uses == cache)
		return true;
	if (!filters(&uses->does))
		return false;
	beside = alone(&uses->does);
	return caches_same(&beside, &cache->does);
}

/* With the translator's lock. A thread that goes to what it may use next has said so before. */
static bool is_used(const struct cache *cache)
{
	for (const struct thread *t = inside_threads(); t; t = t->next)
		if (needs(__atomic_load_n(&t->lookup_next, __ATOMIC_SEQ_CST), cache) ||
		    needs(__atomic_load_n(&t->lookup_home, __ATOMIC_SEQ_CST), cache))
			return true;
	return false;
}

static void end_change(struct cache *cache)
{
	__atomic_add_fetch(&cache->changes, 1, __ATOMIC_SEQ_CST);
}

/* If it is odd already somebody was killed there: instrument_interrupted(). */
static bool begin_change(struct cache *cache)
{
	__atomic_or_fetch(&cache->changes, 1, __ATOMIC_SEQ_CST);
	if (!is_used(cache))
		return true;
	end_change(cache);
	return false;
}

/* Whether @a had better become what @does says than @b: it has memory for what it may trace, or is
 * wanted least. */
static bool suits_better(const struct cache *a, const struct cache *b,
			 const struct instrumentation *does)
{
	const bool a_suits = !a->blocks.memory == !traces(does);
	const bool b_suits = !b->blocks.memory == !traces(does);

	return a_suits == b_suits ? a->chosen < b->chosen : a_suits;
}

/* One that nobody uses, and is not @spared: about to become another. With the translator's lock. */
static struct cache *take_unused(const struct instrumentation *does, const struct cache *spared)
{
	struct cache *best, *cache;

	do {
		best = NULL;
		for (unsigned int n = 1; (cache = cache_number(n)); n++)
			if (cache != spared && !caches_same(&cache->does, &everything[SLOW]) &&
			    !is_used(cache) && (!best || suits_better(cache, best, does)))
				best = cache;
	} while (best && !begin_change(best));
	return best;
}

/* What follows is done with `making`. */
static struct cache *change(const struct instrumentation *does, const struct cache *spared)
{
	struct cache *cache;
	bool changed;

	translate_lock();
	cache = take_unused(does, spared);
	translate_unlock();
	if (!cache)
		return NULL;
	changed = caches_change(cache, does);
	end_change(cache);
	return changed ? cache : NULL;
}

static unsigned int number_of(bool (*is)(const struct instrumentation *does))
{
	const struct cache *cache;
	unsigned int nr = 0;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		nr += is(&cache->does);
	return nr;
}

static bool is_own(const struct instrumentation *does)
{
	return !is_everything(does);
}

/* There is memory for some caches that trace. What all can fall back to is among the first. */
static void keep_room(const struct instrumentation *does)
{
	if (traces(does) && number_of(traces) >= 2 && !caches_same(does, &everything[SLOW]) &&
	    !find(&everything[SLOW]))
		caches_add(&everything[SLOW]);
}

static struct cache *make(const struct instrumentation *does, const struct cache *spared)
{
	const bool own = is_own(does);
	struct cache *cache = find(does);

	if (cache)
		return cache;
	keep_room(does);
	if (!own || number_of(is_own) < CACHES_MAX - LAST_CACHES)
		cache = caches_add(does);
	return cache ? cache : change(does, spared);
}

/* And what it needs beside it. */
static struct cache *make_filtering(const struct instrumentation *does)
{
	const struct instrumentation beside = alone(does);
	const struct cache *slow = make(&beside, find(does));

	return slow ? make(does, slow) : NULL;
}

static struct cache *try_make(const struct instrumentation *does)
{
	return filters(does) ? make_filtering(does) : make(does, NULL);
}

/* The cache that does what @does says, and as little else as can be. NULL: there is no memory. */
static struct cache *cache_for(const struct instrumentation *does)
{
	struct instrumentation slow = *does;
	struct cache *cache = try_make(does);

	if (!cache)
		cache = try_make(everything_of(does));
	if (cache || !filters(does))
		return cache ? cache : lightest(does);
	slow.extras |= INSTRUMENT_STEPS;
	return cache_for(&slow);
}

/* ---- of a thread ---- */

void instrument_begin(struct thread *thread)
{
	thread->lookup = thread->lookup_home = thread->lookup_next = &cache_number(0)->lookup;
	thread->lookup_before = NULL;
}

/* It has said that it may use @cache. */
static void settle(struct thread *thread, struct cache *cache)
{
	const uint64_t now = __atomic_load_n(&times, __ATOMIC_RELAXED);

	if (&cache->lookup != thread->lookup_home) {
		thread->lookup_before = thread->lookup_home;
		__atomic_store_n(&thread->lookup_home, &cache->lookup, __ATOMIC_RELEASE);
	}
	thread->lookup = thread->lookup_home;
	if (__atomic_load_n(&cache->chosen, __ATOMIC_RELAXED) != now)
		__atomic_store_n(&cache->chosen, now, __ATOMIC_RELAXED);
}

static void may_use(struct thread *thread, struct cache *cache)
{
	__atomic_store_n(&thread->lookup_next, &cache->lookup, __ATOMIC_SEQ_CST);
}

/* If there is @cache, and it is what it takes. */
static bool go_to(struct thread *thread, struct cache *cache, const struct instrumentation *does)
{
	struct instrumentation beside;

	if (!cache || !is_for(cache, does) || (traces(does) && !tracer_begin(thread)))
		return false;
	may_use(thread, cache);
	beside = alone(does);
	if (!is_for(cache, does) || (filters(does) && !find(&beside)))
		return false;
	settle(thread, cache);
	return true;
}

static void go(struct thread *thread, struct cache *cache)
{
	may_use(thread, cache);
	settle(thread, cache);
}

/* The memory that is missing may be that of the cache where it is, if nobody else is there. Else
 * it stays. */
static struct cache *cache_instead(struct thread *thread, const struct instrumentation *does)
{
	struct cache *home = instrument_home(thread), *first = cache_number(0), *cache;
	const struct instrumentation did = home->does;

	if (home == first)
		return NULL;
	go(thread, first);
	cache = cache_for(does);
	if (!cache && caches_same(&home->does, &did))
		go(thread, home);
	return cache;
}

/* Whether somebody has had to do with less than a cache of his own, or may have to: none has
 * been made yet. */
static bool is_short = true;

bool translate_is_short(void)
{
	return __atomic_load_n(&is_short, __ATOMIC_RELAXED);
}

static bool go_to_new(struct thread *thread, const struct instrumentation *does)
{
	struct cache *cache;
	bool there;

	lock_take(&making);
	__atomic_store_n(&times, times + 1, __ATOMIC_RELAXED);
	cache = try_make(does);
	__atomic_store_n(&is_short, !cache, __ATOMIC_RELAXED);
	if (!cache)
		cache = cache_for(does);
	if (!cache)
		cache = cache_instead(thread, does);
	there = cache && (!cache_traces(cache) || tracer_begin(thread));
	if (there)
		go(thread, cache);
	lock_give(&making);
	return there;
}

bool translate_instrument(struct thread *thread, const struct instrumentation *wanted)
{
	const struct instrumentation does = possible(wanted);
	/* Who starts and stops counting goes back and forth between two. */
	const bool there = go_to(thread, (struct cache *)thread->lookup_before, &does) ||
			   go_to(thread, find(&does), &does) || go_to_new(thread, &does);

	tracer_follow(thread);
	return there;
}

void translate_instrumented(const struct thread *thread, struct instrumentation *does)
{
	*does = instrument_home(thread)->does;
}

void instrument_go_away(struct thread *thread)
{
	const struct instrumentation beside = alone(&instrument_home(thread)->does);
	struct cache *cache;

	/* Who has said that it may become another is about to see that it is used. */
	while (!(cache = find(&beside)))
		sys(__NR_sched_yield);
	thread->lookup = &cache->lookup;
}

/* ---- for all of it ---- */

bool instrument_inherit(struct thread *gone)
{
	return lock_inherit(&making, gone);
}

void instrument_interrupted(void)
{
	struct cache *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++) {
		if (!(cache->changes & 1))
			continue;
		cache_become(cache, &cache->does);
		end_change(cache);
	}
}

void translate_lock_all(void)
{
	lock_take(&making);
	translate_lock();
}

void translate_unlock_all(void)
{
	translate_unlock();
	lock_give(&making);
}
