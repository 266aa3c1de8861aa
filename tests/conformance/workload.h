// SPDX-License-Identifier: MIT
/*
 * Work whose events are known beforehand. This one file is never built with a sanitizer, whose
 * shadow memory would fault and store on its own.
 */
#ifndef CONFORMANCE_WORKLOAD_H
#define CONFORMANCE_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

/* `count` minor faults in user mode, one a page, on a new anonymous mapping. */
void work_faults(unsigned int count);

/* The same on a mapping that work_map() made: no system call in between. */
unsigned char *work_map(unsigned int pages);
void work_touch(unsigned char *pages, unsigned int first, unsigned int count);

/* One store, one load of exactly so many bytes. */
void work_store1(volatile void *at);
void work_store4(volatile void *at);
void work_store8(volatile void *at);
void work_load4(const volatile void *at);

/* A function of its own that is called from nowhere else, `count` times. */
void work_called(void);
void work_calls(unsigned int count);
/* The same through a chain of frames: outer -> middle -> called. */
void work_call_chain(void);
/* Its frames' addresses, for looking at call chains and branches. */
void work_middle(void);
void work_outer(void);

/* Exactly 2 * count + 1 instructions, count branches (count - 1 taken). */
void work_loop(uint64_t count);
/* Exactly `count` loads, `count` stores beside the loop's own two instructions a round. */
void work_memory(uint64_t *words, uint64_t count);

/* Until this thread has used that much processor time. */
void work_spin(uint64_t nanoseconds);

/* Stack frames with a known pattern in them: work(arg) runs with 16 words of it above. */
#define WORK_PATTERN 0x5441c0dedeadbea7ULL
void work_with_pattern(void (*work)(void *), void *arg);

#endif
