/* SPDX-License-Identifier: MIT */
/*
 * What the core keeps for the whole tree, at ARENA_CORE of the arena's header, and how events and
 * tasks name each other.
 */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/arena.h"
#include "core/core.h"
#include "core/event.h"
#include "core/task.h"

struct core_tree {
	struct core_settings settings;
	/*
	 * Of what connects events, tasks and rings: lists, groups, copies. Taken before the locks
	 * of tasks, which are taken in the order of their pages.
	 */
	uint32_t lock;
	uint32_t events;     /* that exist */
	uint32_t made;	     /* slots of the array that were ever used */
	uint32_t spare;	     /* the first of those that are free again: core_event.next */
	uint32_t live;	     /* the first of the tasks that live: core_task.next_live */
	uint32_t pages;	     /* the highest page of a task that ever lived */
	uint32_t mark;	     /* core/repair.c: the last one given */
	bool torn;	     /* somebody was killed with the lock */
	bool crowded;	     /* some group of some task waits for counters */
	uint32_t last_owner; /* core/views.h: the last number given, */
	uint32_t views;	     /* and how many places were ever used */
	uint64_t last_id, last_task;
};

_Static_assert(offsetof(struct core_tree, settings) == 0, "core_settings()");
_Static_assert(ARENA_CORE + sizeof(struct core_tree) <= ARENA_TASK, "");

static inline struct core_tree *core_tree(void)
{
	return core_arena(ARENA_CORE);
}

/* Page 0: events of every task are attached to it. */
static inline struct core_task *core_everybody(void)
{
	return core_task(0);
}

static inline uint32_t core_index(const struct core_event *event)
{
	return (uint32_t)(event - core_event(0));
}

/* A zeroed slot with an id, or NULL: there are no more. It stays free until it is attached
 * (core/attach.h). With the tree's lock. */
struct core_event *core_event_make(void);
void core_event_free(struct core_event *event);

/* The event that @event is a copy of, or itself. */
static inline struct core_event *core_opened(struct core_event *event)
{
	return event->parent ? core_event(event->parent) : event;
}

static inline const struct core_event *core_opened_const(const struct core_event *event)
{
	return event->parent ? core_event(event->parent) : event;
}

static inline struct core_event *core_leader(const struct core_event *event)
{
	return core_event(event->leader);
}

/* Walks: an index of 0 is the end. */
#define core_for_each_event(event, task)                                                           \
	for (struct core_event *event = core_event_or_null((task)->events); event;                 \
	     event = core_event_or_null(event->next))
#define core_for_each_in_group(event, first)                                                       \
	for (struct core_event *event = (first); event;                                            \
	     event = core_event_or_null(event->next_member))
#define core_for_each_copy(copy, event)                                                            \
	for (struct core_event *copy = core_event_or_null((event)->children); copy;                \
	     copy = core_event_or_null(copy->next_child))

static inline struct core_event *core_event_or_null(uint32_t index)
{
	return index ? core_event(index) : NULL;
}

#endif
