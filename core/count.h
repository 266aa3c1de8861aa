/* SPDX-License-Identifier: MIT */
/*
 * What an event has counted: its value and its times.
 *
 *	value	= count.value + the task's counter - start	while it is active
 *	enabled = count.enabled + the task's clock - stamp	while it and its leader are enabled
 *	running = count.running + the task's clock - stamp	while it is active
 *
 * All wants the lock of the event's task, and core_look() since it was taken: what begins and ends
 * together does so at one time.
 */
#ifndef CORE_COUNT_H
#define CORE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "core/event.h"
#include "core/still.h"
#include "core/sum.h"
#include "core/task.h"

/* Brings task->now and the counters of software events up to date. */
void core_look(struct core_task *task);
/* task->now alone. */
void core_look_at_clock(struct core_task *task);

static inline bool core_enabled(const struct core_event *event)
{
	return event->state == CORE_INACTIVE || event->state == CORE_ACTIVE;
}

/* Whether there are, or may be, copies to be thought of: then the tree's lock is needed. */
static inline bool core_may_have_copies(const struct core_event *event)
{
	return event->attr.inherit || event->everybody;
}

/* Where @event's counter stands. */
static inline uint64_t core_count_counter(const struct core_task *task,
					  const struct core_event *event)
{
	if (event->kind < CORE_COUNTED_KINDS)
		return core_still_counter(task, (enum core_kind)event->kind);
	return core_is_sum(event->kind) ? core_sum_read(task, event->kind) : 0;
}

/* It counts, and stops to; those of a group that are enabled begin, and those that count stop, to
 * be in @state. */
void core_count_out(const struct core_task *task, struct core_event *event, enum core_state state);
void core_count_group_in(const struct core_task *task, struct core_event *leader);
void core_count_group_out(const struct core_task *task, struct core_event *leader,
			  enum core_state state);

/* From one state that does not count to another. */
void core_count_state(const struct core_task *task, struct core_event *event,
		      enum core_state state);

/*
 * A group goes with its leader: while that is disabled, in error or elsewhere, no time passes for
 * its members either.
 */
bool core_count_time_passes(const struct core_event *event);

/* Times of @event alone; before something changes by which they go. */
void core_count_times_passed(const struct core_task *task, struct core_event *event);
static inline void core_count_times(const struct core_task *task, struct core_event *event)
{
	if (!core_enabled(event))
		event->stamp = task->now; /* none has passed for it */
	else if (event->stamp != task->now)
		core_count_times_passed(task, event);
}

/* Back to 0. The times go on, and so does what has been counted towards the next sample. */
void core_count_reset(const struct core_task *task, struct core_event *event);

/* What @event has counted by itself, as of the last look. */
struct core_count core_count_own(const struct core_event *event);

/* What of that counts for the event that @copy is a copy of. */
struct core_count core_count_of_copy(const struct core_event *copy);

/* What @event has counted by itself, and its copies until their tasks ended. */
struct core_count core_count_with_ended(const struct core_event *event);

static inline void core_count_add(struct core_count *to, const struct core_count *count)
{
	to->value += count->value;
	to->enabled += count->enabled;
	to->running += count->running;
}

/* A clock that is looked at from elsewhere may go back a little, when its task ceases to run:
 * what is told of it does not. */
static inline void core_count_never_less(uint64_t *time, uint64_t *told)
{
	if (*time < *told)
		*time = *told;
	*told = *time;
}

#endif
