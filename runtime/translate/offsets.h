/* SPDX-License-Identifier: MIT */
/* What enter.S knows of the cache's structures; cache.c holds them to it. */
#ifndef RUNTIME_TRANSLATE_OFFSETS_H
#define RUNTIME_TRANSLATE_OFFSETS_H

#define LOOKUP_SLOTS   0
#define LOOKUP_ENTRIES 8
#define LOOKUP_CODE    16
#define LOOKUP_TABLES  24
#define LOOKUP_SHIFT   32
#define LOOKUP_VECTORS 36
#define LOOKUP_HOME    40
#define LOOKUP_LOOKS   44

#define HEAD_MASK      -4 /* from the slots on */
#define ENTRY_BODY     8
#define ENTRY_ARRIVALS 12 /* landing, then pad */
#define ENTRY_SIZE     24

/* The ways out at the start of the code, each 1 << WAY_SHIFT bytes, in the order of the exits. */
#define WAY_SHIFT 4

/* Instead of targets. */
#define EXIT_JUMP_MISS	 1 /* an indirect branch to thread->target was not in the table */
#define EXIT_RETURN_MISS 2 /* a return to thread->target was not */
#define EXIT_DRAIN	 3 /* the buffer of the trace is full; the code goes on at thread->cache */
#define EXIT_TOUCH	 4 /* an operand may be watched; the code is at thread->cache */
#define FIRST_EXIT	 5

/* struct tables: a mask for jumps and one for returns, then their places. */
#define TABLES_PLACES 4096
#define TABLE_BITS    18

#define HASH_MULTIPLIER 0x9e3779b97f4a7c15

#endif
