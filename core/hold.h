/* SPDX-License-Identifier: MIT */
/*
 * An event, held while something is done to it that somebody asked for by a descriptor. Another
 * thread may have closed that since it was looked up, and the slot may be another event's by now:
 * which it is can only be said with a lock without which the slot cannot change hands.
 */
#ifndef CORE_HOLD_H
#define CORE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"
#include "core/task.h"

struct core_hold {
	struct core_event *event;
	struct core_task *task; /* whose lock is held; NULL: it has ended */
	bool tree; /* its lock is held, too: the event's task has ended, or there may be copies */
};

/* False: the event of that name (core.h) is closed, and nothing is held. */
bool core_hold(struct core_hold *hold, uint64_t name);

/* Of its task alone: what is left to be done is up to the tree. */
void core_hold_leave_task(struct core_hold *hold);

void core_hold_end(struct core_hold *hold);

/* Whether it is the one of that name: with the lock of its task, of its ring or of the tree. */
static inline bool core_is_named(const struct core_event *event, uint64_t name)
{
	const uint32_t generation = (uint32_t)(name >> 32);

	return __atomic_load_n(&event->state, __ATOMIC_ACQUIRE) != CORE_FREE &&
	       (!generation || event->generation == generation);
}

#endif
