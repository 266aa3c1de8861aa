/* SPDX-License-Identifier: MIT */
/* Waiting for events: event_poll.c, event_select.c, event_epoll.c. */
#ifndef RUNTIME_LINUX_EVENT_POLL_H
#define RUNTIME_LINUX_EVENT_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/event_calls.h"
#include "runtime/linux/syscalls.h"

struct __kernel_timespec;

/* These return EVENT_CALL_OTHER when the call is not about events. */
syscall_handler event_poll, event_select; /* poll, ppoll; select, pselect6 */
syscall_handler event_epoll_ctl, event_epoll_wait;

/* What is to be seen of @event, a name, of POLL... bits @wanted; takes it. */
uint32_t event_look(uint64_t fd, uint64_t event, uint32_t wanted);

/* Until when to wait. */
struct event_deadline {
	bool forever;
	int64_t at; /* 0: not at all */
};
struct event_deadline event_deadline(int64_t ns); /* negative: forever */
int64_t event_remaining(const struct event_deadline *deadline);

/* A relative time as calls take it, in nanoseconds; false when it is none. */
bool event_timeout(const struct __kernel_timespec *timeout, int64_t *ns);

#endif
