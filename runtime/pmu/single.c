// SPDX-License-Identifier: MIT
/*
 * A record's block becomes parts, each a block of its own that the model takes in:
 *
 *	fetch		the lines, and nothing else
 *	access		an operand, or the two of a string instruction, and its instruction's slots
 *	instruction	the slots of one that has no operand, when cycles are waited for
 *	end		the branch, the rest of the slots, and all that is counted by the block
 *
 * Behind the fetch a part lies at the last byte of the block: there fetching changes nothing, and
 * the branch is where the model knows it. Instructions are counted at the end, since waiting goes
 * by how many there were before the block.
 */
#include "runtime/pmu/single.h"

#include <linux/perf_event.h>

#include "runtime/string.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

struct walk {
	struct single *s;
	struct block *part; /* with room for two accesses */
	const struct block *block;
	const uint64_t *record;
	uint64_t next;
	uint32_t insns, number;	       /* that there are, and which one is at hand */
	uint32_t slots, loads, stores; /* that no part has had yet */
};

/* ---- instructions ---- */

static uint32_t count_at(const struct block *block, unsigned int place)
{
	return block->counts >> 16 * place & 0xffff;
}

/* Decodes the instruction at offset @at of the block; its code may be there no longer. */
static bool decode(const struct walk *w, uint64_t at, struct insn *insn)
{
	uint8_t code[INSN_MAX];

	return at < w->block->length &&
	       insn_decode(insn, code, linux_code(code, w->block->pc + at, sizeof(code)));
}

/* Where instruction @number of the block begins; the last that could be found. */
static uint64_t offset_of(const struct walk *w, uint32_t number)
{
	struct insn insn;
	uint64_t at = 0;

	for (; number && decode(w, at, &insn); number--)
		at += insn.length;
	return at;
}

/* ---- causes ---- */

/* What the model has counted of misses, to see what a part adds. */
struct misses {
	int64_t l1, far, memory, page, walk;
};

static struct misses misses_now(const int64_t *counter)
{
	return (struct misses){
		.l1 = counter[CORE_L1D_LOAD_MISSES] + counter[CORE_L1D_STORE_MISSES],
		.far = counter[CORE_LLC_REFERENCES],
		.memory = counter[CORE_LLC_MISSES],
		.page = counter[CORE_DTLB_LOAD_MISSES] + counter[CORE_DTLB_STORE_MISSES],
		.walk = counter[CORE_DTLB_WALKS],
	};
}

static uint64_t level_source(const struct misses *before, const struct misses *now)
{
	if (now->l1 == before->l1)
		return PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L1) | PERF_MEM_S(LVLNUM, L1);
	if (now->far == before->far)
		return PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L2) | PERF_MEM_S(LVLNUM, L2);
	if (now->memory == before->memory)
		return PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L3) | PERF_MEM_S(LVLNUM, L3);
	return PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, LOC_RAM) | PERF_MEM_S(LVLNUM, RAM);
}

static uint64_t page_source(const struct misses *before, const struct misses *now)
{
	if (now->page == before->page)
		return PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, L1);
	if (now->walk == before->walk)
		return PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, L2);
	return PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, WK);
}

static uint32_t latency(const struct machine *machine, const struct misses *before,
			const struct misses *now)
{
	uint32_t cycles = now->l1 == before->l1		  ? MACHINE_L1_HIT
			  : now->far == before->far	  ? machine->l2_hit
			  : now->memory == before->memory ? machine->llc_hit
							  : machine->memory;

	if (now->page != before->page)
		cycles += now->walk != before->walk ? machine->walk : machine->stlb_hit;
	return cycles;
}

#define KINDS_OF_STORES                                                                            \
	(CORE_KIND_BIT(CORE_STORES) | CORE_KIND_BIT(CORE_L1D_STORE_MISSES) |                       \
	 CORE_KIND_BIT(CORE_LLC_STORES) | CORE_KIND_BIT(CORE_LLC_STORE_MISSES) |                   \
	 CORE_KIND_BIT(CORE_DTLB_STORE_MISSES))

/* Of a string instruction's two, the second is the one that is written. */
static const struct block_access *access_of(const struct block *part, bool store)
{
	return &part->accesses[store ? part->nr_accesses - 1 : 0];
}

static bool is_locked(const struct walk *w, uint64_t at)
{
	struct insn insn;

	return decode(w, at, &insn) && insn.prefixes & PREFIX_LOCK;
}

static void tell_access(const struct walk *w, const struct misses *before, bool store,
			struct core_cause *cause)
{
	const struct block_access *a = access_of(w->part, store);
	const struct misses now = misses_now(w->s->counter);

	cause->address = w->record[a->word];
	if (!(a->what & BLOCK_STRING))
		cause->address = (a->word ? w->record[a->word] : (uint64_t)w->part) +
				 (a->base ? w->s->fs_base : 0) + (uint64_t)(int64_t)a->delta;
	cause->latency = latency(w->s->machine, before, &now);
	cause->source =
		PERF_MEM_S(SNOOP, NONE) | level_source(before, &now) | page_source(before, &now);
	cause->source |=
		store || a->what & BLOCK_STORE ? PERF_MEM_S(OP, STORE) : PERF_MEM_S(OP, LOAD);
	cause->source |= is_locked(w, cause->ip - w->block->pc) ? PERF_MEM_S(LOCK, LOCKED)
								: PERF_MEM_S(LOCK, NA);
}

static struct core_cause *find(const struct walk *w, uint64_t kind)
{
	struct core_cause *cause = &w->s->causes[kind];

	w->s->found |= CORE_KIND_BIT(kind);
	*cause = (struct core_cause){.ip = w->block->pc + offset_of(w, w->number)};
	return cause;
}

static void look_for(const struct walk *w, const struct misses *before)
{
	const struct single *s = w->s;

	for (uint64_t kinds = s->watched & ~s->found; kinds; kinds &= kinds - 1) {
		const uint64_t kind = (uint64_t)__builtin_ctzl(kinds);
		struct core_cause *cause;

		if (s->counter[kind] < 0)
			continue;
		cause = find(w, kind);
		if (w->part->nr_accesses)
			tell_access(w, before, KINDS_OF_STORES >> kind & 1, cause);
	}
}

/* ---- parts ---- */

static void run_part(const struct walk *w, uint64_t next)
{
	const struct misses before = misses_now(w->s->counter);

	model_run_part(w->s->model, w->record, w->part, next, w->s->fs_base, w->s->counter);
	look_for(w, &before);
}

static uint32_t some(uint32_t *left, uint32_t wanted)
{
	if (wanted > *left)
		wanted = *left;
	*left -= wanted;
	return wanted;
}

static void run_fetch(const struct walk *w)
{
	*w->part = (struct block){
		.pc = w->block->pc,
		.length = w->block->length,
		.cost = BLOCK_COST(0, w->block->cost >> 32),
	};
	run_part(w, w->block->pc);
}

static struct block *begin_behind(const struct walk *w, uint32_t slots)
{
	*w->part = (struct block){
		.pc = w->block->pc + w->block->length - 1,
		.length = 1,
		.cost = BLOCK_COST(slots, 0),
	};
	return w->part;
}

/* The access at @a, with the one behind it where both are of one string instruction; how many. */
static unsigned int run_access(struct walk *w, const struct block_access *a, bool more,
			       uint32_t slots)
{
	const bool string = a->what & BLOCK_STRING;
	const unsigned int nr = string && more && a[1].what & BLOCK_STRING ? 2 : 1;
	struct block *part = begin_behind(w, some(&w->slots, slots));

	part->nr_accesses = (uint8_t)nr;
	for (unsigned int i = 0; i < nr; i++) {
		const bool store = a[i].what & BLOCK_STORE;

		part->accesses[i] = a[i];
		if (!a[i].word) /* it is told relative to its block */
			part->accesses[i].delta += (int32_t)((intptr_t)w->block - (intptr_t)part);
		part->counts += BLOCK_COUNT(some(&w->loads, !store), BLOCK_LOAD_OPERANDS) +
				BLOCK_COUNT(some(&w->stores, store || a[i].insn & BLOCK_MODIFIES),
					    BLOCK_STORE_OPERANDS);
	}
	run_part(w, w->block->pc);
	return nr;
}

static void run_plain(struct walk *w, uint32_t slots)
{
	begin_behind(w, some(&w->slots, slots));
	run_part(w, w->block->pc);
}

static void run_end(struct walk *w)
{
	const uint64_t places =
		BLOCK_COUNT(0xffff, BLOCK_INSTRUCTIONS) | BLOCK_COUNT(0xffff, BLOCK_BRANCHES);
	struct block *part = begin_behind(w, w->slots);

	part->end = w->block->end;
	part->counts = (w->block->counts & places) | BLOCK_COUNT(w->loads, BLOCK_LOAD_OPERANDS) |
		       BLOCK_COUNT(w->stores, BLOCK_STORE_OPERANDS);
	run_part(w, w->next);
}

/* ---- records ---- */

/* Of the instruction at hand, at offset @at: one in a block without slow ones. */
static uint32_t slots_of(const struct walk *w, uint64_t *at)
{
	struct insn insn;

	if ((uint32_t)w->block->cost == w->insns)
		return 1;
	if (!decode(w, *at, &insn))
		return 0;
	*at += insn.length;
	return insn_slots(&insn);
}

/* Instructions are counted together at the end; which one it is that counts is known before. */
static void look_for_instruction(struct walk *w)
{
	struct single *s = w->s;
	const int64_t left = -s->counter[CORE_INSTRUCTIONS];

	if (!(s->watched & ~s->found & CORE_KIND_BIT(CORE_INSTRUCTIONS)) || left > w->insns)
		return;
	w->number = (uint32_t)left - 1;
	find(w, CORE_INSTRUCTIONS);
}

static unsigned int run_accesses(struct walk *w, unsigned int access, uint32_t slots)
{
	const struct block *block = w->block;

	while (access < block->nr_accesses &&
	       (block->accesses[access].insn & ~BLOCK_MODIFIES) == w->number) {
		access += run_access(w, &block->accesses[access], access + 1 < block->nr_accesses,
				     slots);
		slots = 0;
	}
	return access;
}

/* Whether it matters in which instruction slots are used up. */
static bool watches_time(const struct single *s)
{
	const uint64_t time = CORE_KIND_BIT(CORE_CYCLES) | CORE_KIND_BIT(CORE_REF_CYCLES) |
			      CORE_KIND_BIT(CORE_BUS_CYCLES);

	return s->watched & ~s->found & time;
}

void single_run(struct single *s, const struct block *block, const uint64_t *record, uint64_t next)
{
	struct walk w = {
		.s = s,
		.part = s->room,
		.block = block,
		.record = record,
		.next = next,
		.insns = count_at(block, BLOCK_INSTRUCTIONS),
		.slots = (uint32_t)block->cost,
		.loads = count_at(block, BLOCK_LOAD_OPERANDS),
		.stores = count_at(block, BLOCK_STORE_OPERANDS),
	};
	const bool each = watches_time(s);
	unsigned int access = 0;
	uint64_t at = 0;

	look_for_instruction(&w);
	w.number = 0;
	run_fetch(&w);
	for (; w.number + 1 < w.insns; w.number++) {
		const unsigned int before = access;
		const uint32_t slots = each ? slots_of(&w, &at) : 0;

		access = run_accesses(&w, access, slots);
		if (access == before && slots)
			run_plain(&w, slots);
	}
	run_accesses(&w, access, 0);
	run_end(&w);
}
