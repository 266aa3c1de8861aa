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
};

/* A number for memory that is new, never 0. */
uint32_t core_views_owner(void);

/* After core_ring_map(): false if there is no more room. */
bool core_view_begin(uint32_t owner, uint32_t event);
/* Instead of core_ring_unmap(). */
void core_view_end(uint32_t owner, uint32_t event);

/* The memory is gone. */
void core_views_end(uint32_t owner);

#endif
