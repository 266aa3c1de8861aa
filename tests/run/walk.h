/* SPDX-License-Identifier: MIT */
/* A list, and a walk through it that is written out in assembly: each instruction has a name. */
#ifndef TESTS_RUN_WALK_H
#define TESTS_RUN_WALK_H

/* So few that none of what is sampled is throttled: 400 in a tick of 4 ms. */
enum { CELL = 64, CELLS = 4096 };

extern struct cell {
	struct cell *next, *self;
	char rest[CELL - 16];
} cells[CELLS];

struct cell *make_list(unsigned int stride);

/*
 * walk(first): a list of cells of 64 bytes, each of which holds the next one's address; NULL ends
 * it. The load takes its address from the register that it writes, and a leaf is called for each.
 */
void walk(void *first);
extern const char walk_load[], walk_store[], walk_call[], walk_back[], walk_branch[], leaf[],
	leaf_return[];

#endif
