/* SPDX-License-Identifier: MIT */
/* Records of one event about itself, besides samples. With the lock of its task. */
#ifndef CORE_SIDEBAND_H
#define CORE_SIDEBAND_H

#include <stdint.h>

#include "core/event.h"
#include "core/task.h"

/* @type: PERF_RECORD_THROTTLE or _UNTHROTTLE. */
void core_tell_throttle(struct core_event *event, uint32_t type);

/* Of what traces: that it has begun to, for @task, and what lies in the AUX area since. */
void core_tell_itrace_start(struct core_event *event, const struct core_task *task);
void core_tell_aux(struct core_event *event, const struct core_task *task, uint64_t offset,
		   uint64_t size, uint64_t flags);

/* Samples that were due and have not been taken. */
void core_tell_lost_samples(struct core_event *event, uint64_t lost);

#endif
