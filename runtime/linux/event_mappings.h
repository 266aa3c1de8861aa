/* SPDX-License-Identifier: MIT */
/* Telling whoever records this thread of what it maps. Nothing where nobody does. */
#ifndef RUNTIME_LINUX_EVENT_MAPPINGS_H
#define RUNTIME_LINUX_EVENT_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

struct syscall;
struct thread;

/* The program has just mapped this. */
void event_mapped(struct thread *thread, uint64_t start, uint64_t size);

/* What is protected in another way: a mapping each, as far as there is room. */
enum { EVENT_PIECES = 32 };

struct event_pieces {
	unsigned int nr;
	struct event_piece {
		uint64_t start, end;
	} pieces[EVENT_PIECES];
};

/* mprotect(2) is about to be made, and has been made. What stays as it is nobody is told of. */
void event_protecting(struct thread *thread, const struct syscall *call,
		      struct event_pieces *pieces);
void event_protected(struct thread *thread, const struct event_pieces *pieces);

/* All that is one mapping from @start on. */
void event_mapped_whole(struct thread *thread, uint64_t start);

/* The heap is as large now; @first: it was empty, and the kernel has no name for it yet. */
void event_mapped_heap(struct thread *thread, uint64_t start, uint64_t size, bool first);

/* The same, of an event. */
void event_mapped_ring(struct thread *thread, uint64_t start, uint64_t size);

/* Another image runs: all that is mapped. */
void event_mapped_all(struct thread *thread);

#endif
