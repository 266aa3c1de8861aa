/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_LISTING_H
#define RUNTIME_LINUX_LISTING_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the folder lists descriptors of a process of this run, or of a thread. */
bool listing_of_descriptors(uint64_t folder);

/* Whether @name is a number and nothing else, as entries there are. */
bool listing_number(const char *name, uint64_t *value);

/* Where names begin in entries of getdents(2) and getdents64(2), behind their lengths. */
enum { LISTING_OLD, LISTING_64 };

/*
 * Takes the entries whose names are @hidden out of what the kernel has listed, @size bytes at
 * @start, and returns how many bytes are left.
 */
int64_t listing_without(uint64_t start, int64_t size, unsigned int name,
			bool (*hidden)(const char *name, const void *with), const void *with);

#endif
