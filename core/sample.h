/* SPDX-License-Identifier: MIT */
/* PERF_RECORD_SAMPLE, with all that attr.sample_type can ask for. */
#ifndef CORE_SAMPLE_H
#define CORE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"

struct core_probe_met;

/* What is sampled: the caller, where it stands. */
struct core_hit {
	uint64_t period;  /* how many events the sample stands for */
	uint64_t number;  /* what its counter stood at, where that tells what it was */
	uint64_t address; /* of the datum, where the event itself knows it; 0: see
			     core_host_cause() */
	const struct core_probe_met *probe; /* or NULL */
};

/* Of the datum, as far as the event itself knows it, or the kernel knows it of a page fault; or
 * 0. */
uint64_t core_hit_address(const struct core_event *event, const struct core_hit *hit);

/* Writes a sample of @event to its ring, if it has one. With the lock of the caller's task. */
void core_sample(struct core_event *event, const struct core_hit *hit);

#endif
