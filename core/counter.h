/* SPDX-License-Identifier: MIT */
/* The counters of a task. core_counter_read() is in core/core.h. */
#ifndef CORE_COUNTER_H
#define CORE_COUNTER_H

#include "core/task.h"

/* All at 0, of a task that begins. */
void core_counters_init(struct core_task *task);

/* For core_host_software(): the counter is at @value, or was beyond it already. */
void core_counter_raise(struct core_task *task, enum core_kind kind, uint64_t value);

/*
 * The caller's, with its lock: makes the counters of the kinds that are sampled reach 0 when the
 * nearest event is due.
 */
void core_counters_program(struct core_task *task);

#endif
