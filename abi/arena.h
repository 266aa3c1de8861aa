/* SPDX-License-Identifier: MIT */
/*
 * The memory that all processes of a tally run share. So far it holds the struct thread of each
 * thread (runtime/linux/arena.h): page 0 is a header, page N the N-th thread's.
 */
#ifndef ABI_ARENA_H
#define ABI_ARENA_H

/* Threads of a whole tree at a time. Of pages that were never used there is no memory. */
#define ARENA_PAGES 32768UL
#define ARENA_SIZE  (ARENA_PAGES * 4096)

#endif
