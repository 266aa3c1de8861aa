/* SPDX-License-Identifier: MIT */
/*
 * What children of fork(2) had to translate goes with them, and the next child has to do it again:
 * a shell makes thousands, each of which ends in code that its parent never executes. So they write
 * down, in memory that they share, what they translate, and what two of them did the parent has
 * translated before there is a third.
 */
#ifndef RUNTIME_TRANSLATE_LEARNED_H
#define RUNTIME_TRANSLATE_LEARNED_H

#include "runtime/translate/build.h"

/* A child is about to be. Without the translator's lock. */
void learned_begin(void);

/*
 * Likewise, with the translator's lock. Puts what its elders had to translate for @cache, where the
 * caller is, into it, as far as it is code that cannot change, and there is room; some of it, if it
 * is much.
 */
void learned_take(struct cache *cache);

/* In the child. */
void learned_forked(void);

/* With the translator locked: code for @pc has been made, to be arrived at like that. */
void learned_add(const struct cache *cache, uint64_t pc, enum arrival arrival);

#endif
