/* SPDX-License-Identifier: MIT */
/* Tests that start `tally run` themselves, as the monitor is what they are about. */
#ifndef TESTS_RUN_ALONE_H
#define TESTS_RUN_ALONE_H

#include <stddef.h>

/* The arguments of such a program: PROGRAM TALLY is the tests, PROGRAM TALLY NAME what they run. */
extern const char *alone_tally, *alone_self;

/*
 * Runs NAME. All that it says, until nobody is left who could; then @status is how `tally run`
 * ended. Returns the length, or -1 if it could not be started.
 */
long alone_run(const char *name, char *said, size_t size, int *status);

#endif
