/* SPDX-License-Identifier: MIT */
/*
 * Addresses that are the same each time (`tally run --addresses=fixed`) where the kernel has random
 * ones, and the filter of a container lets nobody ask for others by personality(2).
 */
#ifndef RUNTIME_LINUX_FIXED_H
#define RUNTIME_LINUX_FIXED_H

#include <stdint.h>

/*
 * Before anything else is mapped: whatever the program will map, and its stack, lie at places that
 * are no matter of chance. @top is where the kernel's stack begins, @name AT_EXECFN at its end;
 * returns where the one that takes its place does. NULL: it stays, and what is mapped is at random,
 * as under a limit on address space, or without one on the stack.
 */
uint64_t *fixed_boot(uint64_t *top, uint64_t name);

/* The program limits its address space, and is to have all of that: what it maps from here on is at
 * random. */
void fixed_end(void);

#endif
