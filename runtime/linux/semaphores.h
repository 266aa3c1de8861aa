/* SPDX-License-Identifier: MIT */
/*
 * Counters in the program's own memory, two bytes each, that say to it how many look at a probe, so
 * that it does there what it would leave out: attr.ref_ctr_offset, the semaphores of statically
 * defined probes. They are one higher while this process has such an event.
 */
#ifndef RUNTIME_LINUX_SEMAPHORES_H
#define RUNTIME_LINUX_SEMAPHORES_H

#include <stdint.h>

struct thread;

/* The caller's events have changed. */
void semaphores_follow(struct thread *thread);

/* The program has mapped, or unmapped, what lies from @start to @end. */
void semaphores_mapped(struct thread *thread, uint64_t start, uint64_t end);
void semaphores_unmapped(uint64_t start, uint64_t end);

#endif
