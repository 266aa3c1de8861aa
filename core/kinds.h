/* SPDX-License-Identifier: MIT */
/*
 * What can be counted of a task, each with a number: its place in struct core_task's counters, to
 * which translated code adds, and its bit in masks of kinds.
 *
 * How the events of perf_event_open(2) lead here is core/encoding.c's to know, what the numbers
 * mean is told in docs/model.md.
 */
#ifndef CORE_KINDS_H
#define CORE_KINDS_H

#include <stdint.h>

enum core_kind {
	/* Exact: counted in translated code, or by the model from the same facts. */
	CORE_INSTRUCTIONS,
	CORE_BRANCHES, /* every jump, call and return, taken or not */
	CORE_BRANCHES_CONDITIONAL,
	CORE_BRANCHES_TAKEN,
	CORE_CALLS,
	CORE_RETURNS,
	CORE_BRANCHES_INDIRECT, /* jumps and calls, not returns */
	CORE_LOADS,		/* memory operands that are read, */
	CORE_STORES,		/* and written */

	/* Arithmetic of SSE and AVX by instructions, of which an FMA is two. */
	CORE_FP_SCALAR_DOUBLE,
	CORE_FP_SCALAR_SINGLE,
	CORE_FP_128_DOUBLE,
	CORE_FP_128_SINGLE,
	CORE_FP_256_DOUBLE,
	CORE_FP_256_SINGLE,
	CORE_FP_512_DOUBLE,
	CORE_FP_512_SINGLE,

	/* By operations on elements. */
	CORE_FLOPS_ADD, /* and subtractions */
	CORE_FLOPS_MULTIPLY,
	CORE_FLOPS_DIVIDE, /* and square roots */
	CORE_FLOPS_FMA,	   /* two for each element */
	CORE_FLOPS_BFLOAT, /* products of bfloat16, two for each */

	/* By instructions again: of half precision, complex ones among them. */
	CORE_FP_SCALAR_HALF,
	CORE_FP_128_HALF,
	CORE_FP_256_HALF,
	CORE_FP_512_HALF,

	/* Computed by the model (runtime/model/). */
	CORE_BRANCH_MISSES,
	CORE_CYCLES,
	CORE_REF_CYCLES,
	CORE_BUS_CYCLES,
	CORE_STALLED_FRONTEND,
	CORE_STALLED_BACKEND,
	CORE_L1D_LOAD_MISSES,
	CORE_L1D_STORE_MISSES,
	CORE_L1D_PREFETCHES,
	CORE_L1I_LOADS,
	CORE_L1I_LOAD_MISSES,
	CORE_L2_REFERENCES,
	CORE_L2_MISSES,
	CORE_LLC_LOADS,
	CORE_LLC_LOAD_MISSES,
	CORE_LLC_STORES,
	CORE_LLC_STORE_MISSES,
	CORE_LLC_REFERENCES, /* loads, stores and instruction fetches: cache-references */
	CORE_LLC_MISSES,     /* of these: cache-misses */
	CORE_DTLB_LOAD_MISSES,
	CORE_DTLB_STORE_MISSES,
	CORE_DTLB_WALKS, /* missed both levels */
	CORE_ITLB_LOADS,
	CORE_ITLB_LOAD_MISSES,
	CORE_BRANCH_MISSES_CONDITIONAL,
	CORE_LLC_PREFETCHES, /* lines of prefetches that L2 had not */

	CORE_HARDWARE_KINDS,

	/* Software events: the task's own thread brings them up to date (core/host.h). */
	CORE_TASK_CLOCK = CORE_HARDWARE_KINDS, /* ns */
	CORE_CPU_CLOCK,			       /* ns */
	CORE_PAGE_FAULTS,
	CORE_PAGE_FAULTS_MIN,
	CORE_PAGE_FAULTS_MAJ,
	CORE_CONTEXT_SWITCHES,
	CORE_CPU_MIGRATIONS,
	CORE_CGROUP_SWITCHES,

	CORE_COUNTED_KINDS,

	/* Has a counter of its own in the event, or none. */
	/* dummy, alignment and emulation faults, bpf-output; and what the kernel counts
	   (core_event.is_kept) */
	CORE_ZERO = CORE_COUNTED_KINDS,
	CORE_BREAKPOINT,
	CORE_TRACE, /* nothing is counted: branches go to the AUX area (core/aux.c) */
	CORE_PROBE, /* an instruction of a file, or the return from a function (core/probe.c) */

	/* Several of the above together (core/sum.h). */
	CORE_FIRST_SUM,
	CORE_BRANCHES_NOT_TAKEN = CORE_FIRST_SUM,
	CORE_BRANCHES_UNCONDITIONAL,
	CORE_CONDITIONS_TAKEN,
	CORE_OPERANDS, /* loads and stores */
	CORE_L1D_LOAD_HITS,
	CORE_L1D_MISSES,
	CORE_L1I_HITS,
	CORE_L2_LOAD_HITS,
	CORE_L2_STORE_HITS,
	CORE_LLC_LOAD_HITS,
	CORE_L2_DATA_HITS,
	CORE_L2_DATA_MISSES,
	CORE_L2_CODE_HITS,
	CORE_L2_CODE_MISSES,
	CORE_L2_HITS,
	CORE_L2_PREFETCH_HITS,
	CORE_L2_CODE_AND_PREFETCHES, /* asked for, */
	CORE_L2_ALL_REFERENCES,	     /* with prefetches */
	CORE_LLC_DATA_HITS,
	CORE_LLC_DATA_MISSES,
	CORE_CACHES_DATA_HITS, /* of L2 and the last level */
	CORE_DTLB_MISSES,
	CORE_STLB_DATA_HITS, /* of the second level */
	CORE_ITLB_HITS,
	CORE_DATA_READS, /* of the last level: loads and prefetches */
	CORE_FP_SCALAR,
	CORE_FP_VECTOR,
	CORE_FP_VECTOR_HALF,
	CORE_FP_4_FLOPS, /* of four elements each */
	CORE_FP_8_FLOPS,
	CORE_FLOPS,
	CORE_FLOPS_AND_BFLOAT,

	/* What becomes of the slots of issue ("top-down"), of which each cycle has four. */
	CORE_SLOTS,
	CORE_SLOTS_RETIRING,
	CORE_SLOTS_BAD_SPECULATION, /* lost to wrong predictions, */
	CORE_SLOTS_FRONTEND,	    /* to waiting for code, */
	CORE_SLOTS_BACKEND,	    /* and for data */
	CORE_RECOVERY_CYCLES,	    /* after wrong predictions */

	CORE_KINDS,
};

_Static_assert(CORE_FIRST_SUM <= 64, "kinds are bits of a mask");

#define CORE_KIND_BIT(kind) (1UL << (kind))

/* Of any kind: sums have no bit of their own. */
static inline uint64_t core_kind_bit(unsigned int kind)
{
	return kind < CORE_FIRST_SUM ? CORE_KIND_BIT(kind) : 0;
}

/* Those of the mask @kinds, from the lowest on. */
#define core_for_each_kind(kind, kinds)                                                            \
	for (unsigned long left_##kind = (kinds), kind;                                            \
	     left_##kind && (kind = (unsigned long)__builtin_ctzl(left_##kind), 1);                \
	     left_##kind &= left_##kind - 1)

/* Kinds that are counted without the model; of these, what only a look at the opcode tells. */
#define CORE_KINDS_EXACT    (CORE_KIND_BIT(CORE_FP_512_HALF + 1) - 1)
#define CORE_KINDS_FLOATING (CORE_KINDS_EXACT & ~(CORE_KIND_BIT(CORE_FP_SCALAR_DOUBLE) - 1))
#define CORE_KINDS_MODEL    ((CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1) & ~CORE_KINDS_EXACT)
/* What the model tells by where code goes, whatever its operands are. */
#define CORE_KINDS_CODE                                                                            \
	(CORE_KIND_BIT(CORE_BRANCH_MISSES) | CORE_KIND_BIT(CORE_BRANCH_MISSES_CONDITIONAL) |       \
	 CORE_KIND_BIT(CORE_L1I_LOADS) | CORE_KIND_BIT(CORE_L1I_LOAD_MISSES) |                     \
	 CORE_KIND_BIT(CORE_ITLB_LOADS) | CORE_KIND_BIT(CORE_ITLB_LOAD_MISSES))
#define CORE_KINDS_OPERANDS                                                                        \
	(CORE_KIND_BIT(CORE_LOADS) | CORE_KIND_BIT(CORE_STORES) |                                  \
	 (CORE_KINDS_MODEL & ~CORE_KINDS_CODE))
#define CORE_KINDS_CLOCKS (CORE_KIND_BIT(CORE_TASK_CLOCK) | CORE_KIND_BIT(CORE_CPU_CLOCK))
#define CORE_KINDS_FAULTS                                                                          \
	(CORE_KIND_BIT(CORE_PAGE_FAULTS) | CORE_KIND_BIT(CORE_PAGE_FAULTS_MIN) |                   \
	 CORE_KIND_BIT(CORE_PAGE_FAULTS_MAJ))
#define CORE_KINDS_SOFTWARE                                                                        \
	((CORE_KIND_BIT(CORE_COUNTED_KINDS) - 1) & ~(CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1))

#endif
