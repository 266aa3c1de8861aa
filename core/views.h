/* SPDX-License-Identifier: MIT */
/*
 * Who has mapped which ring. A mapping goes with the memory it lies in: when the process ends, is
 * killed or executes a program, nobody says munmap(2). So each is written down in the arena, under
 * a number that its memory has there, and whoever sees that the memory is gone ends them all.
 */
#ifndef CORE_VIEWS_H
#define CORE_VIEWS_H

#include <stdbool.h>
#include <stdint.h>

/* Of a whole tree at a time: more than one for each ring is rare. */
#define CORE_VIEWS 16384

/* At CORE_VIEWS_AT. */
struct core_view {
	uint32_t owner; /* 0: unused */
	uint32_t event, generation;
	uint32_t aux; /* 1: of its AUX area */
};

/* A number for memory that is new, never 0. */
uint32_t core_views_owner(void);

/*
 * mmap(2) of @event, a name, with offset and size as given to the call: only MAP_SHARED, which the
 * caller checks, as it does PROT_EXEC. Returns the offset in the arena's file that is to be mapped.
 */
struct core_rights;
int64_t core_view_begin(uint32_t owner, uint64_t event, uint64_t offset, uint64_t size,
			bool writable, const struct core_rights *rights);
/* One such mapping, that had this offset, is gone: the caller has made sure of that. */
void core_view_end(uint32_t owner, uint64_t event, uint64_t offset);

/* The memory is gone. */
void core_views_end(uint32_t owner);

/* core/repair.h: event->maps of all events, which are 0. */
void core_views_count(void);

#endif
