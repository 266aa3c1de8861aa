/* SPDX-License-Identifier: MIT */
/*
 * The names that need no sysfs: generic hardware and software events, one row each, and the cache
 * events, which are made of three small tables.
 */
#ifndef LIB_EVENT_NAMES_H
#define LIB_EVENT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tly_generic {
	const char *name;
	const char *alias; /* its other name, or "" */
	uint32_t type;	   /* PERF_TYPE_HARDWARE or PERF_TYPE_SOFTWARE */
	uint64_t config;
	const char *desc;
};

/* Ends with a row whose name is NULL. */
extern const struct tly_generic tly_generics[];

const struct tly_generic *tly_generic_find(const char *name, size_t length);
const struct tly_generic *tly_generic_of(uint32_t type, uint64_t config);

/*
 * CACHE[-OP][-RESULT] with all aliases; what is left out is a load and an access. False when it is
 * no such name, or when that cache has no such operation.
 */
bool tly_cache_parse(const char *name, size_t length, uint64_t *config);

/* The usual name of a cache event; false when @config is none. @size 32 is enough for all. */
bool tly_cache_name(uint64_t config, char *buf, size_t size);
/* One line that says what it counts; @size 64 is enough. */
void tly_cache_describe(uint64_t config, char *buf, size_t size);

/* Walks all cache events: the next valid config after @config (start with -1), or -1. */
int64_t tly_cache_next(int64_t config);

#endif
