/* SPDX-License-Identifier: MIT */
/*
 * The code caches of a process: one for each set of instrumentation that a thread of it has needed,
 * so that to begin or to stop counting costs a pointer, and flushes nothing. The first has none.
 * Which of them there are, and who is in which, is up to instrument.c.
 */
#ifndef RUNTIME_TRANSLATE_CACHES_H
#define RUNTIME_TRANSLATE_CACHES_H

#include "runtime/translate/cache.h"

enum { CACHES_MAX = 16 };

bool caches_init(const struct translate_memory *memory);

/* In a forked child. */
void caches_forked(void);

/* Of the caches there are, the @n'th, or NULL; from a signal handler, too. */
struct cache *cache_number(unsigned int n);

/* Its number, which is not 0: what a thread that is inside has in thread->inside. */
uint32_t cache_inside(const struct cache *cache);

/* One more, by one caller at a time, without the translator's lock. NULL: there is no memory, or
 * there are CACHES_MAX. */
struct cache *caches_add(const struct instrumentation *does);

/* @cache, which nobody uses, is one that does what @does says. The same; false: there is no
 * memory. */
bool caches_change(struct cache *cache, const struct instrumentation *does);

static inline bool caches_same(const struct instrumentation *a, const struct instrumentation *b)
{
	return a->counted == b->counted && a->checked == b->checked && a->extras == b->extras;
}

/* The one with code at @address, or NULL. From a signal handler, too. */
struct cache *cache_at(uint64_t address);

#endif
