/* SPDX-License-Identifier: MIT */
/*
 * What the state machine of events (the other files of core/) calls so that events are told of:
 * their mmap pages, their overflows, the records of what happens to tasks, and who waits for them.
 *
 * Locks are taken from left to right:	tree, tasks by page, ring
 * The lock of a ring is taken in here. All functions want the lock of the task that they are about
 * (task, or event->task) held.
 */
#ifndef CORE_OUTPUT_H
#define CORE_OUTPUT_H

#include <stdbool.h>

#include "core/event.h"
#include "core/task.h"

/* ---- rings ---- */

/* The count, the times or the state of @event have changed: its mmap page says so. */
void core_page_update(struct core_event *event);

/* The caller's: its clock goes on, after it stood. Takes its lock. */
void core_pages_update(struct core_task *task);

/* Whether the ring that @to has may be @event's, too. With the tree's lock. */
bool core_may_write_to(const struct core_event *event, const struct core_event *to);

/* @event is about to be freed: its mappings are gone, its ring is let go. With the tree's lock. */
void core_ring_leave(struct core_event *event);

/* Somebody who polls @event shall look again: it is in error, or its task has ended. */
void core_poll_wake(struct core_event *event);

/* ---- sampling: core/overflow.c ---- */

/* A new event, or a copy of one: period and first overflow as its attr says. */
void core_sampling_init(struct core_event *event);

/* PERF_EVENT_IOC_PERIOD: what has been counted towards the next sample is forgotten. */
void core_sampling_restart(const struct core_task *task, struct core_event *event);

/* It becomes active, or is no longer, while its task's counter is at @counter. */
static inline void core_sampling_in(struct core_event *event, uint64_t counter)
{
	event->due = counter + (uint64_t)event->left;
}

static inline void core_sampling_out(struct core_event *event, uint64_t counter)
{
	event->left = (int64_t)(event->due - counter);
}

/* The caller's, before it takes its lock: what its samples tell of is of now
 * (core_event.is_kept). */
void core_look_at_kept(const struct core_task *task);
/* And when it has given the lock back: what a leader of such held is off now, if that is. */
void core_stop_kept(struct core_task *task);

/* The caller's @event, which is active and has no counter that others count by, has happened. */
struct core_hit;
void core_happened(struct core_event *event, const struct core_hit *hit);

/* ---- what happens to tasks: core/sideband.c ---- */

/* @parent made @child; either is the caller's. */
void core_tell_fork(struct core_task *parent, const struct core_task *child);
/* @child, in the caller's name spaces, to its parent's events. */
void core_tell_begun(struct core_task *parent, const struct core_task *child);
/* @task runs for the first time. */
void core_tell_first_run(struct core_task *task);
/* Before its events leave it; and for each inherited one with inherit_stat its counts. */
void core_tell_exit(struct core_task *task);
void core_tell_read(struct core_event *event);
void core_tell_comm(struct core_task *task, const struct core_task *named, bool exec);

#endif
