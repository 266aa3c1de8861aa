/* SPDX-License-Identifier: MIT */
/*
 * Where the runtime's memory lies, for who is about to use an address that the program gave: for
 * the program nothing is there, and what is written there ends it later, somewhere else. Asked
 * without a lock, from wherever one may be, also from a handler of signals while the answer
 * changes; changed with the translator locked, by the memory map.
 */
#ifndef RUNTIME_LINUX_OWN_MEMORY_H
#define RUNTIME_LINUX_OWN_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

void own_add(uint64_t start, uint64_t end);
void own_remove(uint64_t start, uint64_t end);

/* Of what who changed it has left when he was killed nothing is known. */
void own_clear(void);

/* How many of the @size bytes from @start on lie before the first that is the runtime's. */
uint64_t own_before(uint64_t start, uint64_t size);

/* Nothing of the runtime's has ever been from here on. */
extern uint64_t own_end;

/* Most addresses that programs give lie above all of it: stacks, and what mmap(2) finds a place
 * for. */
static inline bool own_has(uint64_t start, uint64_t size)
{
	return start < __atomic_load_n(&own_end, __ATOMIC_RELAXED) &&
	       own_before(start, size) < size;
}

#endif
