/* SPDX-License-Identifier: MIT */
/*
 * The machine whose caches, TLBs and pipeline the model computes (runtime/model/, docs/model.md).
 * `tally run` says once for a tree which one it is; the same counts on every machine need the same
 * machine here.
 */
#ifndef ABI_MACHINE_H
#define ABI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_LINE_SHIFT 6 /* all lines are of 64 bytes */
#define MACHINE_PAGE_SHIFT 12

struct machine_cache {
	uint32_t sets; /* a power of two; 0: there is no such cache */
	uint32_t ways;
};

struct machine {
	/* Lines; of TLBs pages. L1 caches and TLBs are always there. */
	struct machine_cache l1i, l1d, l2, llc;
	struct machine_cache itlb, dtlb, stlb;

	/* 1: misses of L1D that go on line by line are fetched in advance, into L2. */
	uint32_t prefetches;

	/* The pipeline: instructions a cycle, and how many of them are under way at most. */
	uint32_t width, window;

	/* Cycles that it takes to get on */
	uint32_t mispredict;		  /* after a wrong prediction, */
	uint32_t l2_hit, llc_hit, memory; /* with what was not in L1, */
	uint32_t stlb_hit, walk;	  /* and where the translation was not in the first TLB */

	/* Reference cycles tick `ref_num / ref_den` times a cycle, bus cycles once in `bus`. */
	uint32_t ref_num, ref_den, bus;
};

/* Cycles that a load takes from L1. Nothing waits for it, so it belongs to no machine. */
#define MACHINE_L1_HIT 4u

#define MACHINE_MAX_SETS    (1u << 17)
#define MACHINE_MAX_L1_SETS 256u
#define MACHINE_MAX_WAYS    32u

/* The one that counts are compared on unless asked otherwise: docs/model.md describes it. */
extern const struct machine tly_machine_reference;

/* Whether the model can compute it. */
bool tly_machine_valid(const struct machine *machine);

/*
 * A cache of @size bytes (a TLB: of @size entries, with @unit 1) as the model computes it: sets are
 * rounded down to a power of two, ways to what there can be. A fully associative TLB becomes one of
 * 8 ways.
 */
struct machine_cache tly_machine_cache(uint64_t size, uint32_t ways, uint32_t unit);

#endif
