/* SPDX-License-Identifier: MIT */
/* Telling whoever records this thread of what it maps. Nothing where nobody does. */
#ifndef RUNTIME_LINUX_EVENT_MAPPINGS_H
#define RUNTIME_LINUX_EVENT_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* The program has just mapped this, or protected it in another way. */
void event_mapped(struct thread *thread, uint64_t start, uint64_t size);

/* All that is one mapping from @start on. */
void event_mapped_whole(struct thread *thread, uint64_t start);

/* The heap is as large now; @first: it was empty, and the kernel has no name for it yet. */
void event_mapped_heap(struct thread *thread, uint64_t start, uint64_t size, bool first);

/* The same, of an event. */
void event_mapped_ring(struct thread *thread, uint64_t start, uint64_t size);

/* Another image runs: all that is mapped. */
void event_mapped_all(struct thread *thread);

#endif
