/* SPDX-License-Identifier: MIT */
/* What is asked of the translator about one program each; each says what is wrong. */
#ifndef RUNTIME_TRANSLATE_TRANSLATE_TEST_H
#define RUNTIME_TRANSLATE_TRANSLATE_TEST_H

#include "runtime/translate/test_host.h"

/* steps_test.c: at each byte of the cache the program's state is one that it went through natively.
 */
bool recovers(uint64_t program);
/* The same where events are counted, and what has been counted fits the state. */
bool has_caches(uint64_t program);
bool counts(uint64_t program);

/* watch_test.c: what is watched is executed alone, whenever it is touched, and all steps are
 * true. */
bool has_watching_caches(uint64_t program);
bool watches(uint64_t program);
bool watches_in_many(uint64_t program);

/* steps_test.c, of code that does @wanted: @begin is called before each run. */
bool counts_with(uint64_t program, const struct instrumentation *wanted, void (*begin)(void));

/* cold_test.c: what is remembered of code that runs once is little. */
bool is_small(uint64_t unused);

/* due_test.c: each overflow is where the native run has counted as much. */
bool stops(uint64_t program);

#endif
