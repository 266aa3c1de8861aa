/* SPDX-License-Identifier: MIT */
/* Every branch of the program, from the trace that the model is fed with. */
#ifndef RUNTIME_PMU_BRANCH_TRACE_H
#define RUNTIME_PMU_BRANCH_TRACE_H

#include <stdint.h>

#include "core/task.h"

/* Tells the core of those in the whole records up to @end; what follows them begins at @pc. */
void branch_trace(struct core_task *task, const uint64_t *record, const uint64_t *end, uint64_t pc);

#endif
