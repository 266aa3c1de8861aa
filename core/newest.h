/* SPDX-License-Identifier: MIT */
/*
 * A task's events, the newest first: the order in which the kernel tells them of what happens. The
 * list itself is by age, which is what scheduling wants.
 */
#ifndef CORE_NEWEST_H
#define CORE_NEWEST_H

#include <stdint.h>

#include "core/event.h"
#include "core/task.h"

#define CORE_NEWEST_LENGTH 64

struct core_newest {
	const struct core_task *task;
	uint32_t end; /* this one and those behind it have been seen; 0: none has */
	uint32_t left;
	uint32_t events[CORE_NEWEST_LENGTH]; /* the next to be seen are the first `left` */
};

/* NULL at the end. With the lock of the task; nothing may leave the list meanwhile. */
struct core_event *core_newest_next(struct core_newest *walk);

#define core_for_each_newest(event, whose)                                                         \
	for (struct core_newest walk = {.task = (whose)}; walk.task; walk.task = NULL)             \
		for (struct core_event *event = core_newest_next(&walk); event;                    \
		     event = core_newest_next(&walk))

#endif
