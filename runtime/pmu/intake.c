// SPDX-License-Identifier: MIT
#include "runtime/pmu/intake.h"

#include <stddef.h>

#include "runtime/model/foresee.h"

/* What a block is up to its first @insns instructions, behind which the program is at @pc. It lies
 * elsewhere than the block itself, to which its operands may be relative. */
static void cut_block(struct block *to, const struct block *block, unsigned int insns, uint64_t pc)
{
	unsigned int loads = 0, stores = 0;

	*to = *block;
	to->end = BLOCK_ON;
	to->length = pc - block->pc;
	to->cost = BLOCK_COST(insns, 1);
	to->nr_accesses = 0;
	for (unsigned int i = 0; i < block->nr_accesses; i++) {
		struct block_access a = block->accesses[i];

		if ((a.insn & ~BLOCK_MODIFIES) >= insns)
			break;
		if (!a.word)
			a.delta += (int32_t)((intptr_t)block - (intptr_t)to);
		loads += !(a.what & BLOCK_STORE);
		stores += a.what & BLOCK_STORE || a.insn & BLOCK_MODIFIES;
		to->accesses[to->nr_accesses++] = a;
	}
	to->counts = BLOCK_COUNT(insns, BLOCK_INSTRUCTIONS) |
		     BLOCK_COUNT(loads, BLOCK_LOAD_OPERANDS) |
		     BLOCK_COUNT(stores, BLOCK_STORE_OPERANDS);
}

static bool is_time(uint64_t kind)
{
	return kind == CORE_CYCLES || kind == CORE_REF_CYCLES || kind == CORE_BUS_CYCLES ||
	       kind == CORE_STALLED_FRONTEND || kind == CORE_STALLED_BACKEND;
}

/*
 * So many of a kind are in a record, all but the odd one: a wait for memory, or as many operands as
 * there can be. Where there are more, nobody has looked for what brought the counter to 0.
 */
static uint64_t most_of(const struct machine *machine, uint64_t kind)
{
	const uint64_t wait = machine->memory + machine->walk + machine->mispredict;

	if (is_time(kind))
		return kind == CORE_BUS_CYCLES ? wait / machine->bus + 1 : wait;
	return kind <= CORE_STORES ? BLOCK_MAX_INSNS : 2;
}

/*
 * How many records bring no counter to 0 that somebody waits for. Time goes on by what is usual,
 * far from the most that there can be, and the trace is an eighth of the way: so for time all of
 * it, unless the end is near.
 */
static uint64_t records_without(const struct single *s)
{
	uint64_t records = UINT64_MAX;

	core_for_each_kind(kind, s->watched & ~s->found) {
		const uint64_t some = (uint64_t)(-s->counter[kind] - 1) / most_of(s->machine, kind);

		if (some < records && !(some && is_time(kind)))
			records = some;
	}
	return records;
}

static uint64_t *behind_records(uint64_t *record, const uint64_t *end, uint64_t records)
{
	if (records > (uint64_t)(end - record))
		return record + (end - record);
	for (; records && record < end; records--)
		record += record_block(*record)->words;
	return record;
}

static bool are_quiet(const struct single *s, const struct foreseen *sums)
{
	core_for_each_kind(kind, s->watched & ~s->found) {
		const uint64_t more = model_foreseen(s->model, sums, (enum core_kind)kind);

		if (s->counter[kind] + (int64_t)more >= 0)
			return false;
	}
	return true;
}

/*
 * The same where the end is near: records that access nothing but what is at hand bring few
 * surprises. They go on at @pc.
 */
static uint64_t *behind_quiet(const struct single *s, uint64_t *record, const uint64_t *end,
			      uint64_t pc)
{
	const uint64_t *first = record;
	struct foreseen sums = {0};

	while (record < end) {
		const struct block *block = record_block(*record);
		uint64_t *next = record + block->words;

		if (!model_foresee(s->model, record, block, s->fs_base, &sums))
			break;
		model_foresee_branch(s->model, block, next < end ? record_block(*next)->pc : pc,
				     record == first, &sums);
		if (!are_quiet(s, &sums))
			break;
		record = next;
	}
	return record;
}

static enum core_since since(const struct block *block, bool last)
{
	if (!last)
		return CORE_SINCE_MORE;
	return block->end == BLOCK_RETURN ? CORE_SINCE_RETURNED : CORE_SINCE_NOTHING;
}

static void take_single(struct single *s, const struct block *block, const uint64_t *record,
			uint64_t next, bool last)
{
	const uint64_t before = s->found;

	single_run(s, block, record, next);
	core_for_each_kind(kind, s->found & ~before)
		s->causes[kind].since = since(block, last);
}

/* To begin with the model and to end takes as long as looking at so many words. */
enum { WORTHWHILE = 64 };

void intake_records(struct intake *intake, uint64_t *record, uint64_t *end, uint64_t pc, bool last)
{
	struct single *s = &intake->single;

	while (record < end) {
		uint64_t *to = behind_records(record, end, records_without(s));
		uint64_t *quiet, word, next;
		bool single;

		if (to < end && to - record < WORTHWHILE) {
			quiet = behind_quiet(s, record, end, pc);
			to = quiet > to ? quiet : to;
		}
		single = to == record;
		if (single)
			to = behind_records(record, end, 1);
		word = *to;
		next = to < end ? record_block(word)->pc : pc;
		if (single)
			take_single(s, record_block(*record), record, next, last && to == end);
		else
			model_run(s->model, record, to, intake->end, next, s->fs_base, s->counter);
		*to = word;
		record = to;
	}
}

void intake_part(struct intake *intake, const uint64_t *record, unsigned int insns, uint64_t pc)
{
	struct single *s = &intake->single;

	cut_block(intake->part, record_block(*record), insns, pc);
	if (records_without(s))
		model_run_part(s->model, record, intake->part, pc, s->fs_base, s->counter);
	else
		take_single(s, intake->part, record, pc, true);
}
