/* SPDX-License-Identifier: MIT */
/*
 * Which of a task's events count now: those that are enabled, in groups whose leader is, as far as
 * there are counters, and as processor and cgroup are theirs.
 */
#ifndef CORE_SCHEDULE_H
#define CORE_SCHEDULE_H

#include "core/event.h"
#include "core/task.h"

/* The lock of a task, and a look at its counters. Unlocking kicks its thread if that has to know
 * of what was done. */
void core_task_lock(struct core_task *task);
void core_task_unlock(struct core_task *task);

/* Whether it is the caller's own, wherever that is mapped. */
bool core_is_callers(const struct core_task *task);

/*
 * Locks the task of @event. NULL when that has ended: the event does not change any more. May be
 * called with the tree's lock or without.
 */
struct core_task *core_event_lock(const struct core_event *event);

/* After any change of an event's state, and when turn, processor or cgroup have changed. */
void core_schedule(struct core_task *task);
/* The same when only the states of @leader and of its members have. */
void core_schedule_group(struct core_task *task, struct core_event *leader);
/* The same when @leader, or a member, has just come: without a look at all others. */
void core_schedule_more(struct core_task *task, struct core_event *leader);

/*
 * Puts a whole group, or a member, off. @event is in @state then, at once: were it enabled in
 * between, its page would tell of time in which it did not run.
 */
void core_schedule_off(const struct core_task *task, struct core_event *event,
		       enum core_state state);

/* Disables @event: with a leader its group stops. core_schedule() is to follow. */
void core_switch_off(const struct core_task *task, struct core_event *event);

/* The caller's, or everybody's: the group that was first comes last now. */
void core_take_turn(struct core_task *task);

/* Of events for every task, of which there are copies: after core_schedule(core_everybody()), with
 * the tree's lock, everywhere else. */
void core_schedule_all(void);

#endif
