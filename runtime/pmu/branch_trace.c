// SPDX-License-Identifier: MIT
#include "runtime/pmu/branch_trace.h"

#include <stdbool.h>
#include <stddef.h>

#include "core/core.h"
#include "runtime/model/block.h"

enum { TOGETHER = 128 };

/* A condition that leads to the instruction behind it either way is not taken, as to the model. */
static bool leads_away(const struct block *block, uint64_t to)
{
	return block->end != BLOCK_ON &&
	       (block->end != BLOCK_CONDITIONAL || to != block->pc + block->length);
}

/*
 * Most records are one word. Where that is guessed, by a branch, the next one need not wait for
 * what tells of this one, which lies in two lines that nobody has touched for long.
 */
static const uint64_t *behind(const uint64_t *record, const struct block *block)
{
	if (__builtin_expect(block->words != 1, 0)) {
		__asm__ volatile("");
		return record + block->words;
	}
	return record + 1;
}

void branch_trace(struct core_task *task, const uint64_t *record, const uint64_t *end, uint64_t pc)
{
	const struct block *block = record < end ? record_block(*record) : NULL;
	struct core_branch branches[TOGETHER];
	unsigned int nr = 0;

	while (block) {
		const uint64_t *next = behind(record, block);
		const struct block *then = next < end ? record_block(*next) : NULL;
		const uint64_t to = then ? then->pc : pc;

		if (leads_away(block, to)) {
			branches[nr++] = (struct core_branch){block->pc + block->last, to, 0};
			if (nr == TOGETHER) {
				core_trace(task, branches, nr);
				nr = 0;
			}
		}
		record = next;
		block = then;
	}
	if (nr)
		core_trace(task, branches, nr);
}
