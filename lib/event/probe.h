/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes: kprobe:func[+offset], kretprobe:func, uprobe:path:symbol[+offset],
 * uprobe:path:0xoffset and uretprobe, through the kernel's units of these names.
 */
#ifndef LIB_EVENT_PROBE_H
#define LIB_EVENT_PROBE_H

#include "lib/event/parse.h"

/* Whether @text starts with one of the four prefixes. */
bool tly_probe_is(const char *text);

/* Appends the probe at *@cursor and moves *@cursor behind it: to ':', ',', '}' or the end. */
int tly_probe_add(struct tly_parse *parse, const char **cursor);

/* Fills in the error for a kernel that lacks the unit "kprobe" or "uprobe". */
int tly_probe_no_unit(struct tally_error *err, const char *unit);

/*
 * Where in the file @path the function @symbol begins: the offset that a uprobe takes. Reports
 * what is wrong with the position @at.
 */
int tly_probe_symbol(struct tly_parse *parse, const char *at, const char *path, const char *symbol,
		     uint64_t *offset, uint64_t *size);

#endif
