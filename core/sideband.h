/* SPDX-License-Identifier: MIT */
/* Records of one event about itself, besides samples. With the lock of its task. */
#ifndef CORE_SIDEBAND_H
#define CORE_SIDEBAND_H

#include <stdint.h>

#include "core/event.h"

/* @type: PERF_RECORD_THROTTLE or _UNTHROTTLE. */
void core_tell_throttle(struct core_event *event, uint32_t type);

/* Samples that were due and have not been taken. */
void core_tell_lost_samples(struct core_event *event, uint64_t lost);

#endif
