// SPDX-License-Identifier: MIT
#include "core/sum.h"

#include "core/core.h"

/* Kinds that are added, and kinds that are taken off. */
struct sum {
	uint64_t plus, minus;
};

#define BIT(kind) CORE_KIND_BIT(CORE_##kind)
#define FLOPS	  (BIT(FLOPS_ADD) | BIT(FLOPS_MULTIPLY) | BIT(FLOPS_DIVIDE) | BIT(FLOPS_FMA))

/*
 * L2 is asked for what L1 has not, and the last level for what L2 has not, which tells hits from
 * misses. Only conditions are not taken.
 */
static const struct sum sums[] = {
#define SUM(kind) [CORE_##kind - CORE_FIRST_SUM]
	SUM(BRANCHES_NOT_TAKEN) = {BIT(BRANCHES), BIT(BRANCHES_TAKEN)},
	SUM(CONDITIONS_TAKEN) = {BIT(BRANCHES_CONDITIONAL) | BIT(BRANCHES_TAKEN), BIT(BRANCHES)},
	SUM(OPERANDS) = {BIT(LOADS) | BIT(STORES), 0},
	SUM(L1D_LOAD_HITS) = {BIT(LOADS), BIT(L1D_LOAD_MISSES)},
	SUM(L1D_MISSES) = {BIT(L1D_LOAD_MISSES) | BIT(L1D_STORE_MISSES), 0},
	SUM(L2_LOAD_HITS) = {BIT(L1D_LOAD_MISSES), BIT(LLC_LOADS)},
	SUM(L2_STORE_HITS) = {BIT(L1D_STORE_MISSES), BIT(LLC_STORES)},
	SUM(LLC_LOAD_HITS) = {BIT(LLC_LOADS), BIT(LLC_LOAD_MISSES)},
	SUM(L2_DATA_HITS) = {BIT(L1D_LOAD_MISSES) | BIT(L1D_STORE_MISSES),
			     BIT(LLC_LOADS) | BIT(LLC_STORES)},
	SUM(L2_DATA_MISSES) = {BIT(LLC_LOADS) | BIT(LLC_STORES), 0},
	SUM(L2_CODE_HITS) = {BIT(L1I_LOAD_MISSES) | BIT(LLC_LOADS) | BIT(LLC_STORES),
			     BIT(LLC_REFERENCES)},
	SUM(L2_CODE_MISSES) = {BIT(LLC_REFERENCES), BIT(LLC_LOADS) | BIT(LLC_STORES)},
	SUM(DTLB_MISSES) = {BIT(DTLB_LOAD_MISSES) | BIT(DTLB_STORE_MISSES), 0},
	SUM(DATA_READS) = {BIT(LLC_LOADS) | BIT(LLC_PREFETCHES), 0},
	SUM(FP_SCALAR) = {BIT(FP_SCALAR_DOUBLE) | BIT(FP_SCALAR_SINGLE), 0},
	SUM(FP_VECTOR) = {BIT(FP_128_DOUBLE) | BIT(FP_128_SINGLE) | BIT(FP_256_DOUBLE) |
				  BIT(FP_256_SINGLE) | BIT(FP_512_DOUBLE) | BIT(FP_512_SINGLE),
			  0},
	SUM(FP_VECTOR_HALF) = {BIT(FP_128_HALF) | BIT(FP_256_HALF) | BIT(FP_512_HALF), 0},
	SUM(FP_4_FLOPS) = {BIT(FP_128_SINGLE) | BIT(FP_256_DOUBLE), 0},
	SUM(FP_8_FLOPS) = {BIT(FP_256_SINGLE) | BIT(FP_512_DOUBLE), 0},
	SUM(FLOPS) = {FLOPS, 0},
	SUM(FLOPS_AND_BFLOAT) = {FLOPS | BIT(FLOPS_BFLOAT), 0},
#undef SUM
};

uint64_t core_sum_kinds(unsigned int sum)
{
	return sums[sum - CORE_FIRST_SUM].plus | sums[sum - CORE_FIRST_SUM].minus;
}

static uint64_t read_all(const struct core_task *task, uint64_t kinds)
{
	uint64_t total = 0;

	for (; kinds; kinds &= kinds - 1)
		total += core_counter_read(task, (enum core_kind)__builtin_ctzl(kinds));
	return total;
}

uint64_t core_sum_read(const struct core_task *task, unsigned int sum)
{
	return read_all(task, sums[sum - CORE_FIRST_SUM].plus) -
	       read_all(task, sums[sum - CORE_FIRST_SUM].minus);
}
