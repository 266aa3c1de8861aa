/* SPDX-License-Identifier: MIT */
/* Watches of processes with events: a pidfd each, or a timer, of which @epoll tells as
 * READY_WATCH. */
#ifndef MONITOR_WATCHES_H
#define MONITOR_WATCHES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct control_message;

void watches_open(int epoll);
void watches_close(void);
/* At most so many descriptors of theirs are waited for. */
size_t watches_nr(void);

/* CONTROL_WATCH, of @sender: when the process that it names is gone its tasks end. @fd, a pidfd
 * of it or -1, is taken over. */
void watch_task(const struct control_message *message, int fd, pid_t sender);

/* When @process is gone, with all others of which that was said, so are the mappings of @owner. */
void watch_owner(pid_t process, uint32_t owner);

/* Watch @index may have something to tell. */
void watch_ready(uint32_t index);

/* Those that a timer looks after are looked after now. */
void watches_look(void);

#endif
