/* SPDX-License-Identifier: MIT */
/*
 * Kinds that are several counters together, for vendors' events that tell less apart than ours. As
 * nothing of theirs overflows they can be counted, not sampled.
 */
#ifndef CORE_SUM_H
#define CORE_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/kinds.h"
#include "core/task.h"

static inline bool core_is_sum(unsigned int kind)
{
	return kind >= CORE_FIRST_SUM && kind < CORE_KINDS;
}

/* The kinds that are counted for it. */
uint64_t core_sum_kinds(unsigned int sum);

uint64_t core_sum_read(const struct core_task *task, unsigned int sum);

#endif
