/* SPDX-License-Identifier: MIT */
/*
 * Where the event parser looks for what the machine has. Tests point it at folders of their own.
 */
#ifndef LIB_EVENT_ROOTS_H
#define LIB_EVENT_ROOTS_H

#include <stddef.h>

struct tly_roots {
	const char *sysfs;   /* "/sys" */
	const char *procfs;  /* "/proc" */
	const char *tracefs; /* NULL: where procfs says that it is mounted */
};

extern const struct tly_roots tly_roots_default;

/* The directory of the tracepoints ("/sys/kernel/tracing/events"), or -ENOTSUP: not mounted. */
int tly_tracefs_events(const struct tly_roots *roots, char *buf, size_t size);

#endif
