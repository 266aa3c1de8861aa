/* SPDX-License-Identifier: MIT */
/*
 * What processes of a tally run leave to those that will execute the same program: their
 * translations, behind the arena in its file.
 *
 *	STORE_AT	| struct store_head | image | image | ...
 *
 * Images are added and never change; who has one mapped has it privately. An image is of one code
 * cache (runtime/linux/code_store.h).
 */
#ifndef ABI_STORE_H
#define ABI_STORE_H

#include <stdint.h>

#include "abi/arena.h"

/* Behind the bytes that threads without a page lock. */
#define STORE_AT	(ARENA_SIZE + (1UL << 20))
#define STORE_HEAD_SIZE (64UL << 10)
#define STORE_ROOM	(256UL << 20)
#define STORE_SIZE	(STORE_HEAD_SIZE + STORE_ROOM)

_Static_assert(ARENA_INCARNATIONS <= 1 << 20, "");

/* A file as it was: where any of this is the same, so is what is in it. */
struct store_file {
	uint64_t device, inode, size, modified, changed; /* times in nanoseconds */
};

/* What an image is of, and what it can be used for. */
struct store_key {
	struct store_file program;
	uint64_t counted, checked, extras; /* what the code does beside the program's work */
	uint64_t code, tables;		   /* where it lies, as it is made for these addresses */
};

enum store_state { STORE_FREE, STORE_WRITING, STORE_READY, STORE_LOST };

struct store_entry {
	struct store_key key;
	uint64_t at, size; /* behind STORE_AT */
	uint64_t since;	   /* when somebody began to write it, CLOCK_REALTIME in nanoseconds */
	uint32_t code;	   /* bytes of code in it: later ones have more */
	uint32_t state;
};

enum { STORE_ENTRIES = 512, STORE_BEGUN = 4096 };

struct store_head {
	uint64_t window;	    /* chosen at random once a run: see runtime/linux/window.h */
	uint64_t room;		    /* for images, 0: none are kept */
	uint64_t used;		    /* of it */
	uint32_t nr;		    /* entries that were ever taken */
	uint8_t begun[STORE_BEGUN]; /* by a hash of keys, how often without an image, up to 2 */
	struct store_entry entries[STORE_ENTRIES];
};

_Static_assert(sizeof(struct store_head) <= STORE_HEAD_SIZE, "");

#endif
