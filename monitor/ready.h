/* SPDX-License-Identifier: MIT */
/* What epoll(7) tells the monitor of the tree's events, between events.c and watches.c. */
#ifndef MONITOR_READY_H
#define MONITOR_READY_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* What is ready: one of these, and which. */
enum { READY_SOCKET, READY_SPARE, READY_PIPE, READY_WATCH, READY_TURN, READY_FEED };
#define READY(kind, index) ((uint64_t)(kind) << 32 | (index))

/*
 * What epoll(7) has said may be about a descriptor that has been closed since, and whose place has
 * been given to another one: so look again.
 */
static inline bool ready_is_there(int fd, short revents)
{
	struct pollfd look = {fd, revents, 0};

	return fd >= 0 && poll(&look, 1, 0) == 1 && look.revents & revents;
}

#endif
