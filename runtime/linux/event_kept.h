/* SPDX-License-Identifier: MIT */
/*
 * Events of the kernel's that count for ours, so that a group can have both (core_event.is_kept):
 * tracepoints, and units that the kernel lets into any group.
 *
 *	our event, in its group  <--core_event.kept--  the monitor, which has the kernel's: by itself,
 *						       on while ours and its leader are
 *
 * Who has a descriptor of ours may be any process; so the monitor is asked each time that one of
 * the group is read, switched or reset (core_host_kept()). Samples are forwarded as those of what feeds
 * ours (event_joined.h).
 */
#ifndef RUNTIME_LINUX_EVENT_KEPT_H
#define RUNTIME_LINUX_EVENT_KEPT_H

#include <stdbool.h>
#include <stdint.h>

struct event_request;
struct perf_event_attr;

/* Whether the kernel would let what @attr asks for into a group with events of hardware, and we
 * can. */
bool event_is_kept(const struct perf_event_attr *attr);

/* The kernel's event for @event, a name, which has just been opened so; or a negative errno
 * value. */
int64_t event_kept_open(const struct event_request *request, uint64_t event);

/* Gives it away to who keeps it, now that @event has its descriptor. 0 or an errno value. */
int64_t event_keep(int64_t kernels, uint64_t event);

/*
 * ioctl(2) of @event that is for the kernel's: with @argument, or @fd, which SET_BPF is about and
 * from which SET_FILTER reads.
 */
int64_t event_kept_ioctl(uint64_t event, uint32_t request, uint64_t argument, int fd);

#endif
