/* SPDX-License-Identifier: MIT */
/* Hardware breakpoints: mem:addr[/len][:rwx]. */
#ifndef LIB_EVENT_BREAKPOINT_H
#define LIB_EVENT_BREAKPOINT_H

#include "lib/event/parse.h"

/*
 * Appends the breakpoint at *@cursor, which is behind "mem:", and moves *@cursor to what follows
 * it: modifiers after a ':', or the end of the event.
 */
int tly_breakpoint_add(struct tly_parse *parse, const char **cursor);

/* "mem:0x1000/8:w" of an attr of PERF_TYPE_BREAKPOINT; returns the length it would need. */
int tly_breakpoint_name(const struct perf_event_attr *attr, char *buf, size_t size);

#endif
