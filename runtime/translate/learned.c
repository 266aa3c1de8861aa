// SPDX-License-Identifier: MIT
#include "runtime/translate/learned.h"

#include "runtime/translate/caches.h"
#include "runtime/translate/tables.h"

/*
 *	seen	who comes by an address for the first time leaves a trace of it here, in a row
 *		that the address tells, and whose last one goes
 *	code	who finds his there writes down:
 *
 *	63 62 61             56 55                                                 0
 *	+-----+----------------+----------------------------------------------------+
 *	| how | which cache    | address                                            |
 *	+-----+----------------+----------------------------------------------------+
 *
 * from the front on, and 0 is where nobody has been. Any of it is a hint: to translate what is never
 * executed takes memory and no more.
 */
enum { ROWS = 4096, ROW = 4, CODE = 16384 };

struct learned {
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

/* Whether another has come by; now somebody has. */
static bool was_seen(uint64_t hint)
{
	const uint64_t mixed = hint * 0x9e3779b97f4a7c15;
	uint32_t *row = learned->seen[mixed >> 32 & (ROWS - 1)];
	const uint32_t trace = (uint32_t)(mixed >> 41) | 1;
	uint32_t moved = trace;

	for (int i = 0; i < ROW && moved; i++) {
		moved = __atomic_exchange_n(&row[i], moved, __ATOMIC_RELAXED);
		if (moved == trace)
			return true;
	}
	return false;
}

void learned_forked(void)
{
	is_child = true;
}

void learned_add(const struct cache *cache, uint64_t pc, enum arrival arrival)
{
	const uint64_t new = hint(cache, pc, arrival);

	if (!is_child || !learned || pc > ADDRESS || cache_is_slow(cache) ||
	    cache->does.extras & INSTRUMENT_FINE || !was_seen(new))
		return;
	for (uint32_t n = nr_taken; n < CODE; n++) {
		uint64_t there = 0;

		if (__atomic_compare_exchange_n(&learned->code[n], &there, new, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
		    there == new)
			return;
	}
}

static void take(struct cache *cache, uint64_t pc, enum arrival arrival)
{
	struct code_range range;
	struct build_fault fault;
	uint32_t id;

	if (memory_code(pc, &range) || range.writable)
		return;
	cache_populate(cache);
	id = build(cache, pc, arrival, &fault);
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
	for (; learned && nr_taken < CODE && cache_room(cache); nr_taken++) {
		const uint64_t next = __atomic_load_n(&learned->code[nr_taken], __ATOMIC_RELAXED);
		const uint64_t pc = next & ADDRESS;

		if (!next)
			break;
		if (next == hint(cache, pc, next >> ARRIVAL_SHIFT))
			take(cache, pc, next >> ARRIVAL_SHIFT);
	}
}
