/* SPDX-License-Identifier: MIT */
/* What a call of poll(2) or select(2) waits for, where events are among it: event_poll.c. */
#ifndef RUNTIME_LINUX_EVENT_LIST_H
#define RUNTIME_LINUX_EVENT_LIST_H

#include <asm/poll.h>

#include "runtime/linux/event_poll.h"

#define EVENT_SECOND 1000000000

struct event_list {
	struct pollfd *fds;
	uint64_t *events; /* their names; 0: it is none */
	uint16_t *wanted; /* of events: the kernel is asked for something else */
	uint32_t nr;
	uint32_t nr_events;
};

/* For @nr descriptors. */
bool event_list_make(struct event_list *list, uint32_t nr);
void event_list_free(struct event_list *list, uint32_t nr);

/* Finds the events in it, and hides what is to be hidden. */
void event_list_look_up(struct event_list *list);

/*
 * Waits under @mask, which the kernel reads, until something is there or @deadline has come. How
 * many descriptors there is something of, or what the system call was interrupted with.
 */
int64_t event_list_poll(struct thread *thread, struct event_list *list,
			const struct event_deadline *deadline, uint64_t mask, uint64_t mask_size);

#endif
