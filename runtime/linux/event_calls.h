/* SPDX-License-Identifier: MIT */
/*
 * System calls on descriptors that are events, wherever they differ from those on the pipes that
 * the kernel sees.
 */
#ifndef RUNTIME_LINUX_EVENT_CALLS_H
#define RUNTIME_LINUX_EVENT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/syscalls.h"

/* What event_call() returns for calls that are not about events. */
#define EVENT_CALL_OTHER ((int64_t)-0x40000002)

/* Whether any descriptor of this process may be an event, or was one: then it is to be asked. */
bool event_calls_any(void);

/*
 * Regions of programs begin and end with some calls on events, which make no system call and are
 * not to cost more than they must. True if the call that @thread->regs tell of was one of them, and
 * has been made; of all others event_call() is asked.
 */
bool event_call_quick(struct thread *thread);
int64_t event_call(struct thread *thread, struct syscall *call);

/* Calls that change the memory map where events are mapped: event_map.c. The same in a child of
 * fork, which has none of these mappings. */
int64_t event_map_call(struct thread *thread, struct syscall *call);
/* It has taken events' mappings out of the way of mmap(2): that is to be made now, and what it
 * returns to be given to event_map_release(), so that nothing stays there if it fails. */
#define EVENT_MAP_VACATED ((int64_t)-0x40000003)
int64_t event_map_release(struct thread *thread, const struct syscall *call, int64_t result);
void event_maps_forked(void);
/* What this memory is called where its mappings are written down (core/views.h); 0: it has none.
 */
uint32_t event_maps_owner(void);
/* The caller's memory has, or is about to have, another process, which may see the end of the
 * caller's: what either has mapped stays until both have ended. */
void event_maps_beside(void);

/* ioctl(2) of an event, by name: event_ioctl.c. fcntl(2): event_fcntl.c. mmap(2): event_map.c. */
typedef int64_t event_handler(struct thread *thread, struct syscall *call, uint64_t event);
event_handler event_ioctl, event_fcntl, event_mmap;

/* O_NONBLOCK as the program sees it. The pipe itself always has it: event_fds.c. */
int64_t event_set_nonblocking(uint64_t event, bool on);

/* What fcntl(2) has set of the kernel's event at @fd, for when it becomes ours. */
struct event_modes {
	uint32_t flags;
	int32_t signo;
	struct event_owner {
		int32_t type, pid;
	} owner; /* as F_SETOWN_EX has it */
};
void event_modes(int fd, struct event_modes *modes);
void event_set_modes(int fd, uint64_t event, const struct event_modes *modes);

/* Of event_call_quick(): what ioctl(2)'s @request does, or NULL. */
typedef int event_switch(uint64_t event, bool group);
event_switch *event_ioctl_switch(uint32_t request);

#endif
