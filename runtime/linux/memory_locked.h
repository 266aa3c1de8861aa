/* SPDX-License-Identifier: MIT */
/*
 * mlockall(2), by which all of the program's memory is to be there. The runtime's is mostly room:
 * of that the kernel locks what is there already, or gets used (MCL_ONFAULT).
 */
#ifndef RUNTIME_LINUX_MEMORY_LOCKED_H
#define RUNTIME_LINUX_MEMORY_LOCKED_H

#include <stdint.h>

/* The program has more memory, by whatever call. */
void memory_locked_more(uint64_t start, uint64_t end);

/* In a child of fork(2): it inherits no locks. */
void memory_locked_forked(void);

#endif
