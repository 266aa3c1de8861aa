// SPDX-License-Identifier: MIT
#include "core/newest.h"

#include <string.h>

#include "core/arena.h"

/* The last events before walk->end: a long list is gone through once for each piece of it. */
static void write_down(struct core_newest *walk)
{
	const uint32_t half = CORE_NEWEST_LENGTH / 2;
	uint32_t n = 0;

	for (uint32_t index = walk->task->events; index != walk->end;
	     index = core_event(index)->next) {
		if (n == CORE_NEWEST_LENGTH) { /* the older half is for the next time */
			memcpy(walk->events, walk->events + half, half * sizeof(walk->events[0]));
			n = half;
		}
		walk->events[n++] = index;
	}
	walk->left = n;
	if (n)
		walk->end = walk->events[0];
}

struct core_event *core_newest_next(struct core_newest *walk)
{
	if (!walk->left)
		write_down(walk);
	return walk->left ? core_event(walk->events[--walk->left]) : NULL;
}
