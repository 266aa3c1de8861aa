/* SPDX-License-Identifier: MIT */
/* The threads that are known, which of them are inside a cache, and how all get out of one. */
#ifndef RUNTIME_TRANSLATE_INSIDE_H
#define RUNTIME_TRANSLATE_INSIDE_H

#include "runtime/translate/cache.h"

/* With the translator's lock: the first one that is known, others by ->next. */
const struct thread *inside_threads(void);

/* Likewise: once nobody is inside @cache, it forgets everything. */
void inside_empty(struct cache *cache);

/* The cache that the thread runs in. */
static inline struct cache *cache_of(const struct thread *thread)
{
	return (struct cache *)thread->lookup;
}

/* Who sees that it is not inside has what he did before seen by the thread (stays_inside()). */
void say_inside(struct thread *thread, const struct cache *cache);

/* Nothing of what the thread did inside comes after that. */
void come_out(struct thread *thread);

/*
 * Whoever changes what is to be counted leaves a thread alone that is not inside, since it looks by
 * itself: here, between saying that it is and being it, and so with a full barrier before.
 */
bool stays_inside(struct thread *thread);

/* From here on the cache stays as it is for the thread, or false: wait. */
bool go_inside(struct thread *thread);

#endif
