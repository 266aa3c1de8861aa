/* SPDX-License-Identifier: MIT */
/*
 * Which of the process's descriptors are events. An event's descriptor is the read end of a pipe,
 * so the kernel keeps it through fork, exec, dup and SCM_RIGHTS; here is only remembered what the
 * numbers are that were looked at. A number that is not known is looked up by the inode of its
 * pipe.
 */
#ifndef RUNTIME_LINUX_EVENT_FDS_H
#define RUNTIME_LINUX_EVENT_FDS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* The name (core_name()) of the event that descriptor @fd is, or 0. Quick where there are no events
 * at all. */
uint64_t event_of_fd(uint64_t fd);

/* The same of a number that was looked at before; 0 of others, too. */
uint64_t event_known(uint64_t fd);

/*
 * Makes the descriptor of the event of that name, closed on exec if @cloexec, and tells the
 * monitor. Returns it or a negative errno value; then the event is still to be closed.
 */
int64_t event_fd_make(uint64_t event, bool cloexec);

/*
 * A number that grows: what is noted of a descriptor has the one of then, and who closes takes one
 * before, as another thread may get the number that is closed before it can be forgotten.
 */
uint64_t event_fds_now(void);

/* A number by which this process has the event of that name; @guess may be one. Or negative. */
int64_t event_fd_of(uint64_t event, int64_t guess);

/* The number @fd is about to be @event's: from now on calls about it are. */
void event_fd_becomes(uint64_t fd, uint64_t event);

/* Another process has the same table of descriptors from now on: nothing is remembered any more. */
void event_fds_shared(void);

/* The number @fd, or those from @first to @last, are no longer what they were. */
void event_fds_forget(uint64_t first, uint64_t last);

/* Takes out of the pipe what makes it readable; false when there was nothing. */
bool event_fd_drain(uint64_t fd, uint64_t event);

#endif
