/* SPDX-License-Identifier: MIT */
/*
 * The AUX area: where the unit that traces writes every branch of a task. All want the lock of the
 * event's task.
 */
#ifndef CORE_AUX_H
#define CORE_AUX_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"
#include "core/ring.h"

/* Whether events like that are of the unit that traces. */
static inline bool core_aux_fills(const struct perf_event_attr *attr)
{
	return core_settings()->trace_type && attr->type == core_settings()->trace_type;
}

/* attr.aux_action, which <linux/perf_event.h> may be too old to have. */
static inline uint32_t core_aux_action(const struct core_event *event)
{
	uint32_t action;

	__builtin_memcpy(&action, event->attr_bytes + CORE_AT_AUX_ACTION, sizeof(action));
	return action;
}

/* The caller's task: traces for the event that is active now, or for none, takes its lock. And has
 * ended, with its lock. */
void core_trace_follow(struct core_task *task);
void core_trace_end(struct core_task *task);

/* attr.aux_pause or aux_resume of @event, which overflows: the event at the head of its group. */
void core_trace_pause(const struct core_event *event, bool paused);

/*
 * PERF_SAMPLE_AUX: how many of the last @size bytes that the event at the head of @event's group
 * has traced there are, in whole records, and writing them.
 */
size_t core_trace_last(const struct core_event *event, size_t size);
void core_trace_put(struct core_output *out, const struct core_event *event, size_t size);

#endif
