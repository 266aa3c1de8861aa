/* SPDX-License-Identifier: MIT */
/*
 * The program's heap. The kernel's own brk belongs to tally-rt and would lie behind that; so the
 * heap is kept here, in mappings of its own behind the program, where the kernel would have put it.
 */
#ifndef RUNTIME_LINUX_BRK_H
#define RUNTIME_LINUX_BRK_H

#include <stdint.h>

/* Boot: the heap begins at @start, page-aligned. */
void brk_boot(uint64_t start);
/* Where it ends now. */
uint64_t brk_end(void);

/* From where to where it is, of this process; for who reads that of another, too. */
struct brk_heap {
	uint64_t start, end;
};

const struct brk_heap *brk_heap(void);

/* For fork: nothing of the heap is half done while the lock is held. */
void brk_lock(void);
void brk_unlock(void);

#endif
