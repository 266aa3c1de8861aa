/* SPDX-License-Identifier: MIT */
/*
 * The model of one thread's core: caches, TLBs, branch predictor, cycles. What it computes, and how
 * far that is from anything else, is told in docs/model.md.
 *
 * It is told of blocks that have been executed (block.h) and adds to counters. Everything happens
 * in the order of the trace: the counts do not depend on how often it is told. Integers only, no
 * calls of anything but the code of blocks, no memory but what it is given.
 */
#ifndef RUNTIME_MODEL_MODEL_H
#define RUNTIME_MODEL_MODEL_H

#include <stddef.h>

#include "abi/machine.h"
#include "core/kinds.h"
#include "runtime/model/block.h"
#include "runtime/model/compile.h"

struct model;

/* Bytes for a model of @machine, which is valid. */
size_t model_size(const struct machine *machine);

/* @memory is zeroed, page-aligned, and that large. Pages that are never used are never touched. */
struct model *model_make(void *memory, const struct machine *machine);

/* The most that may be taken in at once. */
#define MODEL_MAX_WORDS (4096 + BLOCK_MAX_WORDS)

/*
 * Takes in the records from @trace to @end, behind which there is room for one more word. @pc is
 * where the program goes on, or is: of the last record's branch that is the outcome. Adds to
 * counter[] of every hardware kind. @behind is made by model_compile_end(), for this one model.
 */
void model_run(struct model *model, const uint64_t *trace, uint64_t *end,
	       struct compiled_end *behind, uint64_t pc, uint64_t fs_base, int64_t *counter);

/* The same of a single record, as if it were one of @part, which has no code. */
void model_run_part(struct model *model, const uint64_t *record, const struct block *part,
		    uint64_t pc, uint64_t fs_base, int64_t *counter);

#endif
