/* SPDX-License-Identifier: MIT */
/*
 * Where the event parser looks for what the machine has. Tests point it at folders of their own.
 */
#ifndef LIB_EVENT_ROOTS_H
#define LIB_EVENT_ROOTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tly_roots {
	const char *sysfs;   /* "/sys" */
	const char *procfs;  /* "/proc" */
	const char *tracefs; /* NULL: where procfs says that it is mounted */
};

extern const struct tly_roots tly_roots_default;

/*
 * Reads a small file into @buf, terminated, without trailing white space. Returns its length or a
 * negative errno; -EFBIG when it does not fit.
 */
ssize_t tly_read_file(const char *path, char *buf, size_t size);

/* The same, for a file that holds one decimal or 0x number. */
int tly_read_number(const char *path, uint64_t *value);

/* The directory of the tracepoints ("/sys/kernel/tracing/events"), or -ENOTSUP: not mounted. */
int tly_tracefs_events(const struct tly_roots *roots, char *buf, size_t size);

/*
 * The names in a directory but . and .., sorted, in one allocation to be freed with free();
 * returns how many, or a negative errno.
 */
ssize_t tly_read_folder(const char *path, char ***names);

#endif
