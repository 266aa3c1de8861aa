/* SPDX-License-Identifier: MIT */
/*
 * The ring of an event, to which its records go: what mmap(2) of a descriptor shows.
 *
 *	rings	| struct core_ring 0 1 2 ... | bitmap of pages | page | page | ...
 *	ring	| mmap page | data: 2^n pages |		and an AUX area elsewhere
 *
 * The program may write anything to what it has mapped. So what the writer goes by is in struct
 * core_ring, which nobody maps; of the mmap page it reads data_tail alone, and believes any.
 *
 * A ring lives as long as it is mapped somewhere. Its struct never becomes anything but another
 * ring, so a writer that comes late takes the lock of one that is gone, finds that its event has
 * another ring or none, and has done no harm.
 */
#ifndef CORE_RING_H
#define CORE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/event.h"

/* The AUX area of a ring: core/aux.c. */
struct core_aux {
	uint32_t maps;
	bool overwrite;
	uint64_t at, size;  /* 0: none */
	uint64_t offset;    /* in the descriptor, as the program chose */
	uint64_t head;	    /* counts bytes */
	uint64_t told;	    /* of them in records */
	uint32_t writer;    /* page of the task that has written what has not been told */
	uint64_t wakeup;    /* who waits is woken when the head is as far behind it as ... */
	uint64_t watermark; /* ... this; then a record is due, too */
};

struct core_ring {
	uint32_t lock;
	uint32_t events; /* the first event that writes to it: core_event.ring_next */
	uint32_t shown;	 /* the event that was mapped: the mmap page tells of it */
	uint64_t at;	 /* of the mmap page, in the arena; 0: the struct is free */
	uint64_t size;	 /* of the data, bytes: a power of two, or 0 */
	bool overwrite;	 /* the mapping cannot be written: there is no tail */
	bool paused;
	short ready; /* what poll(2) sees, once */

	uint64_t head;	    /* counts bytes; downwards for attr.write_backward */
	uint64_t wakeup;    /* who waits is woken when the head is more than ... */
	uint64_t watermark; /* ... that far behind it */
	uint32_t samples;   /* since the last wakeup: attr.wakeup_events */
	uint64_t lost;	    /* records not yet told of */

	struct core_aux aux;

	/* Locked memory, in pages: of the share that everybody has, and of the process's own. */
	uint32_t locked, pinned, aux_locked, aux_pinned;
	uint64_t process;
};

/* ---- for who maps rings: core/ring_map.c ---- */

/*
 * mmap(2) of @event with that offset and size, whole pages: at 0 the ring, made at the first call;
 * behind it the AUX area, whose offset and size the mmap page says. For core/views.c, which counts
 * event->maps.
 */
struct core_rights;
int core_map_ring(struct core_event *event, uint64_t offset, uint64_t size, bool writable,
		  const struct core_rights *rights);
/* One of them is gone: of the ring, or of the AUX area. */
void core_unmap_ring(struct core_event *event, bool aux);

/* core/repair.h: rings without mappings are none, nor are pages without rings. */
void core_rings_sift(void);
/* Indexes above that were never used. */
uint32_t core_rings_made(void);

/* Of a whole tree at a time. Of the first no ring is made: its `events` is how many ever were. */
#define CORE_RINGS 8192

struct core_ring *core_ring(uint32_t index);

/* The ring of @event or of the event that it is a copy of, locked; NULL: it has none. */
struct core_ring *core_ring_lock(const struct core_event *event);
void core_ring_unlock(struct core_ring *ring);

/* Marks it as ready, and wakes who polls its events. With its lock. */
void core_ring_wake(struct core_ring *ring);

/* By the signal that it asked for, if it has. */
void core_signal_owner(struct core_event *event, int band);

/* ---- writing ---- */

/* A record on its way into a ring. */
struct core_output {
	struct core_ring *ring;
	struct core_event *event; /* the one that was opened */
	unsigned char *data;
	uint64_t mask;
	uint64_t at;   /* where the next byte goes */
	uint64_t head; /* when the record is complete */
	bool wake;
};

/*
 * Makes room for @size bytes, a multiple of 8, behind what has to be told of lost records before.
 * False if there is no room or no ring: then the loss has been counted and there is nothing to end.
 */
bool core_output_begin(struct core_output *out, struct core_event *event, size_t size);
void core_output_put(struct core_output *out, const void *bytes, size_t size);
/* Copies from the caller's memory, zeros for what cannot be read; returns what could. */
size_t core_output_put_user(struct core_output *out, uint64_t from, size_t size);
/* Shows the record. @sample: it counts for attr.wakeup_events. */
void core_output_end(struct core_output *out, bool sample);

static inline void core_output_put_u64(struct core_output *out, uint64_t value)
{
	if (out->at % sizeof(value)) {
		core_output_put(out, &value, sizeof(value));
		return;
	}
	/* The data ends where a word does. */
	__builtin_memcpy(out->data + (out->at & out->mask), &value, sizeof(value));
	out->at += sizeof(value);
}

#endif
