// SPDX-License-Identifier: MIT
#include "runtime/pmu/branch_trace.h"

#include <stdbool.h>

#include "core/core.h"
#include "runtime/model/block.h"

enum { TOGETHER = 128 };

/* A condition that leads to the instruction behind it either way is not taken, as to the model. */
static bool leads_away(const struct block *block, uint64_t to)
{
	return block->end != BLOCK_ON &&
	       (block->end != BLOCK_CONDITIONAL || to != block->pc + block->length);
}

void branch_trace(struct core_task *task, const uint64_t *record, const uint64_t *end, uint64_t pc)
{
	struct core_branch branches[TOGETHER];
	unsigned int nr = 0;

	while (record < end) {
		const struct block *block = record_block(*record);

		record += block->words;
		const uint64_t to = record < end ? record_block(*record)->pc : pc;

		if (!leads_away(block, to))
			continue;
		branches[nr++] = (struct core_branch){block->pc + block->last, to, 0};
		if (nr == TOGETHER) {
			core_trace(task, branches, nr);
			nr = 0;
		}
	}
	if (nr)
		core_trace(task, branches, nr);
}
