/* SPDX-License-Identifier: MIT */
/* What dispatch.c knows of the threads, and does to all of them. */
#ifndef RUNTIME_TRANSLATE_DISPATCH_H
#define RUNTIME_TRANSLATE_DISPATCH_H

#include "runtime/translate/cache.h"

/* With the translator's lock: the first one that is known, others by ->next. */
const struct thread *dispatch_threads(void);

/* Likewise: once nobody is inside @cache, it forgets everything. */
void dispatch_empty(struct cache *cache);

#endif
