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
};

/*
 * Adds those of @record, one of @block, to @sums. False: it accesses something that is farther
 * away, or that takes longer to find out than to do.
 */
bool model_foresee(const struct model *model, const uint64_t *record, const struct block *block,
		   uint64_t fs_base, struct foreseen *sums);

/* Whether the branch at the end of @block, if there is any, leads to @pc as predicted. To be asked
 * when all before it has been taken in. */
bool model_foresee_branch(const struct model *model, const struct block *block, uint64_t pc);

/* At most so much more of @kind will have been counted. */
uint64_t model_foreseen(const struct model *model, const struct foreseen *sums,
			enum core_kind kind);

#endif
