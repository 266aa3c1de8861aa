/* SPDX-License-Identifier: MIT */
/*
 * Which cache a thread is in: its home is the one that its events need. From code that filters it
 * goes away for one instruction that may touch what is watched, to a cache that is slow.
 */
#ifndef RUNTIME_TRANSLATE_INSTRUMENT_H
#define RUNTIME_TRANSLATE_INSTRUMENT_H

#include "runtime/translate/cache.h"

/* Of a thread that is not known yet, or the only one of a forked child: in the first cache. */
void instrument_begin(struct thread *thread);

/* Of @gone the caller has the lock of who makes caches from now on, if it had that: then
 * instrument_interrupted() is to be called, and translate_unlock_all(). */
bool instrument_inherit(struct thread *gone);

/* With all of the translator's locks: who was making a cache another, or was about to, is gone.
 * All are empty. */
void instrument_interrupted(void);

static inline struct cache *instrument_home(const struct thread *thread)
{
	return (struct cache *)thread->lookup_home;
}

static inline bool instrument_is_away(const struct thread *thread)
{
	return thread->lookup != thread->lookup_home;
}

static inline void instrument_go_home(struct thread *thread)
{
	thread->lookup = thread->lookup_home;
}

/* Its home filters. */
void instrument_go_away(struct thread *thread);

#endif
