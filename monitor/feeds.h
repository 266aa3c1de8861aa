/* SPDX-License-Identifier: MIT */
/*
 * Events of the kernel's that events of ours have: whose records go on to them (core/forward.h), of
 * which @epoll tells as READY_FEED, or which count for them as well (core_host_kept()).
 */
#ifndef MONITOR_FEEDS_H
#define MONITOR_FEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/host.h"

struct control_message;

void feeds_open(int epoll);
void feeds_close(void);
/* At most so many descriptors of theirs are waited for. */
size_t feeds_nr(void);

/* CONTROL_FED, CONTROL_KEEP, of an event that is there: @fd is taken over. */
void feed_add(const struct control_message *message, int fd);
/* Nobody has a descriptor of the event any more: it has ended, unless it is mapped. */
void feeds_closed(uint32_t event, uint32_t generation);

/* Feed @index may have something to forward. */
void feed_ready(uint32_t index);

/* CONTROL_KEPT, and what core_host_kept() says. */
void feeds_kept(uint64_t event, bool group, enum core_kept what);

/* @leader is gone: its members are by themselves now, and on if they were. */
void feeds_without_leader(uint32_t leader);

/* CONTROL_KEPT_IOCTL. */
void feed_ioctl(const struct control_message *message, int fd);

#endif
