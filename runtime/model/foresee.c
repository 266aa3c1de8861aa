// SPDX-License-Identifier: MIT
#include "runtime/model/foresee.h"

#include "runtime/model/state.h"

static bool are_near(const struct near *near, uint64_t address, uint64_t last)
{
	last >>= MACHINE_LINE_SHIFT;
	for (uint64_t line = address >> MACHINE_LINE_SHIFT; line <= last; line++)
		if (!near_has(*near_slot(near, line), line))
			return false;
	return true;
}

static bool accesses_are_near(const struct model *m, const uint64_t *record, const struct block *b,
			      uint64_t fs_base)
{
	for (const struct block_access *a = b->accesses; a < b->accesses + b->nr_accesses; a++) {
		uint64_t address = a->word ? record[a->word] : (uint64_t)b;

		if (a->what & BLOCK_STRING)
			return false;
		address += (a->base ? fs_base : 0) + (uint64_t)(int64_t)a->delta;
		if (!are_near(&m->data, address, address + (a->what & BLOCK_SIZE)))
			return false;
	}
	return true;
}

/* Whether it ends in a branch that is predicted. */
static bool is_predicted(const struct block *b)
{
	return b->end == BLOCK_CONDITIONAL || b->end == BLOCK_RETURN ||
	       b->end == BLOCK_JUMP_INDIRECT || b->end == BLOCK_CALL_INDIRECT;
}

bool model_foresee(const struct model *m, const uint64_t *record, const struct block *b,
		   uint64_t fs_base, struct foreseen *sums)
{
	if (!are_near(&m->code, b->pc, b->pc + b->length - 1) ||
	    !accesses_are_near(m, record, b, fs_base))
		return false;
	sums->insns += BLOCK_PART(b->counts, BLOCK_INSTRUCTIONS);
	sums->loads += BLOCK_PART(b->counts, BLOCK_LOAD_OPERANDS);
	sums->stores += BLOCK_PART(b->counts, BLOCK_STORE_OPERANDS);
	sums->branches += BLOCK_PART(b->counts, BLOCK_BRANCHES);
	sums->lines += b->cost >> 32;
	sums->slots += (uint32_t)b->cost;
	sums->wrong += is_predicted(b);
	return true;
}

static uint64_t bit(uint32_t place)
{
	return UINT64_C(1) << place % 64;
}

/*
 * What the first condition will be predicted is known. Those before a later one correct counters,
 * which makes no difference where both predictors say what comes true, and none of the counters
 * that they say it by is corrected towards the other direction before.
 */
static bool foresee_condition(const struct predictor *p, uint64_t history, uint64_t branch,
			      bool taken, struct foreseen *sums)
{
	const uint32_t one = predict_branch_place(branch);
	const uint32_t two = (predict_history_place(branch) ^ (uint32_t)history) &
			     ((1 << PREDICT_HISTORY_BITS) - 1);
	bool sure;

	if (!sums->conditions)
		sure = predicts_condition(p, history, branch, taken);
	else
		sure = predicts_by_branch(p, one) == taken &&
		       predicts_by_history(p, two) == taken &&
		       !(sums->corrected[!taken][0] & bit(one)) &&
		       !(sums->corrected[!taken][1] & bit(two));
	sums->corrected[taken][0] |= bit(one);
	sums->corrected[taken][1] |= bit(two);
	sums->history = history << 1 | taken;
	sums->conditions++;
	return sure;
}

void model_foresee_branch(const struct model *m, const struct block *b, uint64_t pc, bool first,
			  struct foreseen *sums)
{
	const uint64_t behind = b->pc + b->length;

	if (b->end == BLOCK_CONDITIONAL)
		sums->wrong -= foresee_condition(&m->predictor,
						 sums->conditions ? sums->history : m->history,
						 behind, pc != behind, sums);
	else if (first && b->end == BLOCK_RETURN)
		sums->wrong -=
			m->predictor.returns[m->predictor.depth % PREDICT_RETURNS] == (uint32_t)pc;
}

/* Parts of a cycle that are left from before may make up one more. */
static uint64_t cycles(const struct model *m, const struct foreseen *sums)
{
	return sums->slots / m->machine.width + 1 + sums->wrong * m->machine.mispredict;
}

uint64_t model_foreseen(const struct model *m, const struct foreseen *sums, enum core_kind kind)
{
	switch (kind) {
	case CORE_INSTRUCTIONS:
		return sums->insns;
	case CORE_BRANCHES:
	case CORE_BRANCHES_CONDITIONAL:
	case CORE_BRANCHES_TAKEN:
	case CORE_CALLS:
	case CORE_RETURNS:
	case CORE_BRANCHES_INDIRECT:
		return sums->branches;
	case CORE_LOADS:
		return sums->loads;
	case CORE_STORES:
		return sums->stores;
	case CORE_BRANCH_MISSES:
	case CORE_BRANCH_MISSES_CONDITIONAL:
		return sums->wrong;
	case CORE_CYCLES:
		return cycles(m, sums);
	case CORE_REF_CYCLES:
		return cycles(m, sums) * m->machine.ref_num / m->machine.ref_den + 1;
	case CORE_BUS_CYCLES:
		return cycles(m, sums) / m->machine.bus + 1;
	case CORE_STALLED_FRONTEND:
		return sums->wrong * m->machine.mispredict;
	case CORE_L1I_LOADS:
	case CORE_ITLB_LOADS:
		return sums->lines;
	default:
		return 0;
	}
}
