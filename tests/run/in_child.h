/* SPDX-License-Identifier: MIT */
/* For tests with cmocka: what leaves a process that cannot go on with others. */
#ifndef TESTS_RUN_IN_CHILD_H
#define TESTS_RUN_IN_CHILD_H

/* What @test returns in a child; -1: the child has not come so far. */
int in_child(int (*test)(void));

#endif
