// SPDX-License-Identifier: MIT
#include "core/sum.h"

#include "core/still.h"

enum { TERMS = 6 };

/* A kind that is added so many times, or taken off. */
struct term {
	uint8_t kind;
	int8_t times; /* 0: there are no more terms */
};

#define PLUS(kind)  TIMES(1, kind)
#define MINUS(kind) TIMES(-1, kind)
#define TIMES(times, kind)                                                                         \
	{                                                                                          \
		CORE_##kind, times                                                                 \
	}

/* Of the reference machine's pipeline, which is the same on all (abi/machine.h). */
enum { WIDTH = 4, MISPREDICT = 16 };

#define FLOPS PLUS(FLOPS_ADD), PLUS(FLOPS_MULTIPLY), PLUS(FLOPS_DIVIDE), PLUS(FLOPS_FMA)

/*
 * L2 is asked for what L1 has not, and the last level for what L2 has not, which tells hits from
 * misses. Only conditions are not taken. A cycle in which nothing is waited for has slots that are
 * used; a wrong prediction is waited for in front.
 */
static const struct term sums[][TERMS] = {
#define SUM(kind) [CORE_##kind - CORE_FIRST_SUM]
	SUM(BRANCHES_NOT_TAKEN) = {PLUS(BRANCHES), MINUS(BRANCHES_TAKEN)},
	SUM(BRANCHES_UNCONDITIONAL) = {PLUS(BRANCHES), MINUS(BRANCHES_CONDITIONAL)},
	SUM(CONDITIONS_TAKEN) = {PLUS(BRANCHES_CONDITIONAL), PLUS(BRANCHES_TAKEN), MINUS(BRANCHES)},
	SUM(OPERANDS) = {PLUS(LOADS), PLUS(STORES)},
	SUM(L1D_LOAD_HITS) = {PLUS(LOADS), MINUS(L1D_LOAD_MISSES)},
	SUM(L1D_MISSES) = {PLUS(L1D_LOAD_MISSES), PLUS(L1D_STORE_MISSES)},
	SUM(L1I_HITS) = {PLUS(L1I_LOADS), MINUS(L1I_LOAD_MISSES)},
	SUM(L2_LOAD_HITS) = {PLUS(L1D_LOAD_MISSES), MINUS(LLC_LOADS)},
	SUM(L2_STORE_HITS) = {PLUS(L1D_STORE_MISSES), MINUS(LLC_STORES)},
	SUM(LLC_LOAD_HITS) = {PLUS(LLC_LOADS), MINUS(LLC_LOAD_MISSES)},
	SUM(L2_DATA_HITS) = {PLUS(L1D_LOAD_MISSES), PLUS(L1D_STORE_MISSES), MINUS(LLC_LOADS),
			     MINUS(LLC_STORES)},
	SUM(L2_DATA_MISSES) = {PLUS(LLC_LOADS), PLUS(LLC_STORES)},
	SUM(L2_CODE_HITS) = {PLUS(L1I_LOAD_MISSES), PLUS(LLC_LOADS), PLUS(LLC_STORES),
			     MINUS(LLC_REFERENCES)},
	SUM(L2_CODE_MISSES) = {PLUS(LLC_REFERENCES), MINUS(LLC_LOADS), MINUS(LLC_STORES)},
	SUM(L2_HITS) = {PLUS(L2_REFERENCES), MINUS(L2_MISSES)},
	SUM(L2_PREFETCH_HITS) = {PLUS(L1D_PREFETCHES), MINUS(LLC_PREFETCHES)},
	SUM(L2_CODE_AND_PREFETCHES) = {PLUS(L1I_LOAD_MISSES), PLUS(L1D_PREFETCHES)},
	SUM(L2_ALL_REFERENCES) = {PLUS(L2_REFERENCES), PLUS(L1D_PREFETCHES)},
	SUM(LLC_DATA_HITS) = {PLUS(LLC_LOADS), PLUS(LLC_STORES), MINUS(LLC_LOAD_MISSES),
			      MINUS(LLC_STORE_MISSES)},
	SUM(LLC_DATA_MISSES) = {PLUS(LLC_LOAD_MISSES), PLUS(LLC_STORE_MISSES)},
	SUM(CACHES_DATA_HITS) = {PLUS(L1D_LOAD_MISSES), PLUS(L1D_STORE_MISSES),
				 MINUS(LLC_LOAD_MISSES), MINUS(LLC_STORE_MISSES)},
	SUM(DTLB_MISSES) = {PLUS(DTLB_LOAD_MISSES), PLUS(DTLB_STORE_MISSES)},
	SUM(STLB_DATA_HITS) = {PLUS(DTLB_LOAD_MISSES), PLUS(DTLB_STORE_MISSES), MINUS(DTLB_WALKS)},
	SUM(ITLB_HITS) = {PLUS(ITLB_LOADS), MINUS(ITLB_LOAD_MISSES)},
	SUM(DATA_READS) = {PLUS(LLC_LOADS), PLUS(LLC_PREFETCHES)},
	SUM(FP_SCALAR) = {PLUS(FP_SCALAR_DOUBLE), PLUS(FP_SCALAR_SINGLE)},
	SUM(FP_VECTOR) = {PLUS(FP_128_DOUBLE), PLUS(FP_128_SINGLE), PLUS(FP_256_DOUBLE),
			  PLUS(FP_256_SINGLE), PLUS(FP_512_DOUBLE), PLUS(FP_512_SINGLE)},
	SUM(FP_VECTOR_HALF) = {PLUS(FP_128_HALF), PLUS(FP_256_HALF), PLUS(FP_512_HALF)},
	SUM(FP_4_FLOPS) = {PLUS(FP_128_SINGLE), PLUS(FP_256_DOUBLE)},
	SUM(FP_8_FLOPS) = {PLUS(FP_256_SINGLE), PLUS(FP_512_DOUBLE)},
	SUM(FLOPS) = {FLOPS},
	SUM(FLOPS_AND_BFLOAT) = {FLOPS, PLUS(FLOPS_BFLOAT)},
	SUM(SLOTS) = {TIMES(WIDTH, CYCLES)},
	SUM(SLOTS_RETIRING) = {TIMES(WIDTH, CYCLES), TIMES(-WIDTH, STALLED_FRONTEND),
			       TIMES(-WIDTH, STALLED_BACKEND)},
	SUM(SLOTS_BAD_SPECULATION) = {TIMES(WIDTH * MISPREDICT, BRANCH_MISSES)},
	SUM(SLOTS_FRONTEND) = {TIMES(WIDTH, STALLED_FRONTEND),
			       TIMES(-WIDTH *MISPREDICT, BRANCH_MISSES)},
	SUM(SLOTS_BACKEND) = {TIMES(WIDTH, STALLED_BACKEND)},
	SUM(RECOVERY_CYCLES) = {TIMES(MISPREDICT, BRANCH_MISSES)},
#undef SUM
};

#define for_each_term(term, sum)                                                                   \
	for (const struct term *term = sums[(sum)-CORE_FIRST_SUM], *const end_ = term + TERMS;     \
	     term < end_ && term->times; term++)

uint64_t core_sum_kinds(unsigned int sum)
{
	uint64_t kinds = 0;

	for_each_term(term, sum) kinds |= CORE_KIND_BIT(term->kind);
	return kinds;
}

uint64_t core_sum_read(const struct core_task *task, unsigned int sum)
{
	uint64_t total = 0;

	for_each_term(term, sum) total +=
		(uint64_t)(int64_t)term->times * core_still_counter(task, term->kind);
	return total;
}
