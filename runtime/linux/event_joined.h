/* SPDX-License-Identifier: MIT */
/*
 * Events of the kernel's whose records go to a ring of ours (core/forward.h), so that a program can
 * read them together with those of our events, as it does when PERF_EVENT_IOC_SET_OUTPUT has led
 * both to one ring. And those that nobody but the runtime knows, which write what only the kernel
 * can tell (event_feed.c), or count for ours (event_kept.c).
 *
 * Each process forwards for itself, at the end of its system calls: what it has done itself is
 * there when it looks. Of what feeds an event of ours the monitor forwards the rest.
 */
#ifndef RUNTIME_LINUX_EVENT_JOINED_H
#define RUNTIME_LINUX_EVENT_JOINED_H

#include <stdbool.h>
#include <stdint.h>

struct control_message;
struct perf_event_attr;
struct thread;

bool event_joined_is(int fd);

/* The kernel's event of @attr at @fd shall write to the ring of @event. 0 or an errno value. */
int64_t event_joined_to(int fd, const struct perf_event_attr *attr, uint64_t event);

/*
 * @event, at descriptor @own, shall write to the ring of the kernel's event at @fd, which the
 * program has mapped from @start on with @size bytes: from now on that mapping is a ring of ours.
 */
int64_t event_joined_by(struct thread *thread, int fd, const struct perf_event_attr *attr,
			uint64_t start, uint64_t size, int own, uint64_t event);

/*
 * The kernel's event of @attr at @fd, which the program does not see, feeds @event: what it writes
 * comes as if that had written it, while that is enabled. Its ring, of @pages of data at most,
 * keeps it open; @message gets what the monitor has to know of it. False: there can be none.
 */
bool event_joined_feed(int fd, const struct perf_event_attr *attr, uint64_t event,
		       unsigned int pages, struct control_message *message);

/* Whether there are any; what their rings have goes to ours. */
bool event_joined_any(void);
void event_joined_forward(void);

/* The program has closed these numbers, which it may have got anew since @before
 * (event_fds_now()). In a child of fork nothing is mapped any more. */
void event_joined_closed(uint32_t first, uint32_t last, uint64_t before);
void event_joined_forked(void);

#endif
