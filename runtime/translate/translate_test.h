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

/* due_test.c: each overflow is where the native run has counted as much. */
bool stops(uint64_t program);

#endif
