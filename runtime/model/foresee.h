/* SPDX-License-Identifier: MIT */
/*
 * What taking in records will add to the counters, when all that they access is in the first level:
 * then that is known without taking them in. Most records are of that kind.
 */
#ifndef RUNTIME_MODEL_FORESEE_H
#define RUNTIME_MODEL_FORESEE_H

#include <stdbool.h>

#include "runtime/model/model.h"

/* Sums of records. */
struct foreseen {
	uint64_t insns, loads, stores, branches, lines, slots;
	uint64_t wrong; /* branches that may not be predicted */
	/* Conditions, and what the last ones will have done. */
	uint64_t conditions, history;
	/* Towards which direction they correct which counters, by branch and by history: bits for
	 * places, of which several share one. */
	uint64_t corrected[2][2];
};

/*
 * Adds those of @record, one of @block, to @sums. False: it accesses something that is farther
 * away, or that takes longer to find out than to do.
 */
bool model_foresee(const struct model *model, const uint64_t *record, const struct block *block,
		   uint64_t fs_base, struct foreseen *sums);

/* The branch at the end of that @block, if there is any, leads to @pc: takes it from @sums->wrong
 * again if that is what will be predicted. @first: the block is the first one of @sums. */
void model_foresee_branch(const struct model *model, const struct block *block, uint64_t pc,
			  bool first, struct foreseen *sums);

/* At most so much more of @kind will have been counted. */
uint64_t model_foreseen(const struct model *model, const struct foreseen *sums,
			enum core_kind kind);

#endif
