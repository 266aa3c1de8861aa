/* SPDX-License-Identifier: MIT */
/*
 * The list of events that the kernel counts (event_passed.c), by descriptor, with what each was
 * opened with: of that the kernel tells nothing. Descriptors are those of this process.
 */
#ifndef RUNTIME_LINUX_EVENT_PASSED_LIST_H
#define RUNTIME_LINUX_EVENT_PASSED_LIST_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/event_request.h"
#include "runtime/linux/fork_locks.h"

struct passed {
	int fd;		/* -1: unused */
	uint64_t since; /* event_fds_now() */
	int group_fd, pid, cpu;
	unsigned long flags;
	union event_attr attr;
	uint64_t target;      /* as of core_event; 0: everybody, or nobody of the run */
	uint32_t creator;     /* the page of who opened it, */
	uint64_t created_by;  /* and its id: the page may be another's by now */
	uint64_t start, size; /* where it was mapped last; 0: nowhere */
	bool stays;	      /* the kernel's: one of ours could not take its place */
	bool has_more; /* of what only the kernel has: a filter, a program, another one's ring */
};

/* With event_passed_lock: the event, or NULL. */
struct passed *passed_find(int fd);

/* Likewise the one behind @is in the list; the first one behind NULL. */
struct passed *passed_next(struct passed *is);

#define passed_for_each(is) for (struct passed *is = NULL; (is = passed_next(is));)

/* Likewise the leader of the group that @fd is in: itself, if it is by itself. */
int passed_leader(int fd);

static inline bool passed_in_group(const struct passed *is, int leader)
{
	return is->fd == leader || is->group_fd == leader;
}

/* The others take the lock themselves. @is becomes a copy. */
bool passed_look_up(int fd, struct passed *is);
bool passed_is(int fd);

/* The number by which the event is known that @fd is another number for; or @fd. */
int passed_number(int fd);

/* Whether @fd is the same file of the kernel's as @of. */
bool passed_is_copy(int fd, int64_t of);

/* Room for one more: without it nothing is passed that could come to lead a group. */
bool passed_room(void);
void passed_add(const struct passed *event);

/* Whether it is on, for when it becomes ours. */
static inline void passed_note_state(struct passed *is, bool on)
{
	is->attr.attr.disabled = !on;
}

static inline bool passed_is_software(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE;
}

#endif
