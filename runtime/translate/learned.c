// SPDX-License-Identifier: MIT
#include "runtime/translate/learned.h"

#include "runtime/translate/caches.h"
#include "runtime/translate/tables.h"

/*
 *	seen	who comes by an address for the first time leaves a trace of it here, in a row
 *		that the address tells, and whose last one goes
 *	code	who is the second to do so writes down:
 *
 *	63 62 61             56 55                                                 0
 *	+-----+----------------+----------------------------------------------------+
 *	| how | which cache    | address                                            |
 *	+-----+----------------+----------------------------------------------------+
 *
 * at the next place, by which @nr grows first; where it is 0 somebody is about to. Any of it is a
 * hint: to translate what is never executed takes memory and no more.
 */
enum { ROWS = 4096, ROW = 4, CODE = 16384 };

/* Of an address, in `seen`: the last bit says that it has been written down. */
enum { TOLD = 1 };

/* So many a fork takes in, at most: a parent of many children is not to keep one waiting. */
enum { AT_ONCE = 1024 };

struct learned {
	uint32_t nr;
	uint32_t seen[ROWS][ROW];
	uint64_t code[CODE];
};

enum { CACHE_SHIFT = 56, ARRIVAL_SHIFT = 62 };

#define ADDRESS ((1UL << CACHE_SHIFT) - 1)

static struct learned *learned; /* of this process's forebears that have executed the same */
static uint32_t nr_taken;	/* of what is there, this process has those before */
static bool is_child;

static uint64_t hint(const struct cache *cache, uint64_t pc, enum arrival arrival)
{
	return (uint64_t)arrival << ARRIVAL_SHIFT | (uint64_t)cache_inside(cache) << CACHE_SHIFT |
	       pc;
}

/* Leaves @trace in @row, first. */
static void leave(uint32_t *row, uint32_t trace)
{
	for (int i = 0; i < ROW && trace; i++)
		trace = __atomic_exchange_n(&row[i], trace, __ATOMIC_RELAXED);
}

/* Whether the caller is the second to come by, as far as is known. */
static bool is_second(uint64_t hint)
{
	const uint64_t mixed = hint * 0x9e3779b97f4a7c15;
	uint32_t *row = learned->seen[mixed >> 32 & (ROWS - 1)];
	uint32_t trace = (uint32_t)(mixed >> 40) & ~(uint32_t)TOLD;

	trace = trace ? trace : 2;
	for (int i = 0; i < ROW; i++) {
		const uint32_t is = __atomic_load_n(&row[i], __ATOMIC_RELAXED);

		if ((is & ~(uint32_t)TOLD) == trace)
			return !(__atomic_exchange_n(&row[i], trace | TOLD, __ATOMIC_RELAXED) &
				 TOLD);
	}
	leave(row, trace);
	return false;
}

void learned_forked(void)
{
	is_child = true;
}

/*
 * What is soon left again is not worth it. And code that comes out behind each instruction does so
 * at jumps as they find no arrivals: it must not get any, of whatever the cache with the same
 * number is in another process.
 */
static bool learns(const struct cache *cache)
{
	return !cache_is_slow(cache) && !cache_stops(cache) &&
	       !(cache->does.extras & INSTRUMENT_FINE);
}

void learned_add(const struct cache *cache, uint64_t pc, enum arrival arrival)
{
	const uint64_t new = hint(cache, pc, arrival);
	uint32_t place;

	if (!is_child || !learned || pc > ADDRESS || !learns(cache) || !is_second(new))
		return;
	if (__atomic_load_n(&learned->nr, __ATOMIC_RELAXED) >= CODE)
		return;
	place = __atomic_fetch_add(&learned->nr, 1, __ATOMIC_RELAXED);
	if (place < CODE)
		__atomic_store_n(&learned->code[place], new, __ATOMIC_RELAXED);
}

static void take(struct cache *cache, uint64_t pc, enum arrival arrival)
{
	struct build_fault fault;
	uint32_t id;

	if (arrival > ARRIVE_RETURN || !memory_look_ahead(pc))
		return;
	cache_populate(cache);
	id = build(cache, pc, arrival, &fault);
	memory_looked_ahead();
	if (id)
		fill_tables(cache, arrival, id);
}

void learned_begin(void)
{
	struct learned *nobody = NULL, *new;

	if (__atomic_load_n(&learned, __ATOMIC_RELAXED))
		return;
	new = memory_common(sizeof(*new));
	if (new && !__atomic_compare_exchange_n(&learned, &nobody, new, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
		memory_less(new, sizeof(*new));
}

void learned_take(struct cache *cache)
{
	const uint32_t nr = learned ? __atomic_load_n(&learned->nr, __ATOMIC_RELAXED) : 0;

	if (!learns(cache))
		return;
	for (unsigned int n = 0;
	     n < AT_ONCE && nr_taken < nr && nr_taken < CODE && cache_room(cache);
	     n++, nr_taken++) {
		const uint64_t next = __atomic_load_n(&learned->code[nr_taken], __ATOMIC_RELAXED);
		const uint64_t pc = next & ADDRESS;

		if (next && next == hint(cache, pc, next >> ARRIVAL_SHIFT))
			take(cache, pc, next >> ARRIVAL_SHIFT);
	}
}
