/* SPDX-License-Identifier: MIT */
/* A call of perf_event_open(2), as it is being looked at. */
#ifndef RUNTIME_LINUX_EVENT_REQUEST_H
#define RUNTIME_LINUX_EVENT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/event_attr.h"
#include "runtime/linux/syscalls.h"

struct event_request {
	union event_attr attr;
	int pid, cpu, group_fd;
	unsigned long flags;
	struct core_rights rights;
	struct core_target target;
	uint64_t group; /* its name */
};

/* event_open.c: makes it one of ours, once it has been checked: a descriptor or an errno value. */
int64_t event_open(struct thread *thread, struct event_request *request);

/* ---- event_passed.c: events that are the kernel's own ---- */

/*
 * Gives the call to the kernel if that counts such events, and better: the descriptor, or an errno
 * value, or EVENT_CALL_OTHER when the event is to be one of ours.
 */
int64_t event_pass(struct thread *thread, struct syscall *call,
		   const struct event_request *request);

/*
 * @fd is to lead a group with an event that is ours: if it is one that was passed, that becomes
 * ours, too, and all of its group, under the numbers that they have. Or an errno value, when it
 * cannot: as its task has ended.
 */
int64_t event_take_back(struct thread *thread, int fd);

/* The same for the group that @fd is in, because of a ring: whether @fd is ours now. */
bool event_take_back_group(struct thread *thread, int fd);

/*
 * The BPF program at @program is to run when @event, at @fd, overflows, which it does in the
 * kernel: so the event becomes the kernel's under its number. EINVAL when the kernel has no such
 * event.
 */
int64_t event_hand_over(struct thread *thread, int fd, uint64_t event, uint64_t program);

bool event_passed_any(void);

/* Of the units that have numbers of their own: those that the run has, whatever the kernel has. */
bool event_is_own_unit(uint32_t type);

/* prctl(2) has switched on or off those that @thread has opened. */
void event_passed_switched(const struct thread *thread, bool on);

/* mmap(2) and ioctl(2) of what may be such an event. */
int64_t event_passed_mmap(struct thread *thread, struct syscall *call);
int64_t event_passed_ioctl(struct thread *thread, struct syscall *call);

/* @event, at descriptor @own, shall write to the ring of the kernel's event at @fd. */
int64_t event_passed_output(struct thread *thread, int fd, int own, uint64_t event);

/* The program has closed these numbers, which it may have got anew since @before
 * (event_fds_now()). */
void event_passed_closed(uint32_t first, uint32_t last, uint64_t before);

#endif
