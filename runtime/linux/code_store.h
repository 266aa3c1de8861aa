/* SPDX-License-Identifier: MIT */
/*
 * Translations outlive their process: when it ends it leaves its code caches to those of the run
 * that will execute the same program (abi/store.h), who find in place what they would have made.
 * Most of what short programs take in a run goes into that.
 *
 * Only code is kept that is what a file has, mapped privately and never writable, and where that
 * file, by all that stat(2) says of it, is mapped at the same address again it is the same code. So
 * the window (window.h) is the same in all processes of a run. Until then what was made of it is
 * withheld (cache_withhold()).
 */
#ifndef RUNTIME_LINUX_CODE_STORE_H
#define RUNTIME_LINUX_CODE_STORE_H

#include <stdint.h>

struct thread;

/* Once the descriptors are known, before anything is mapped. */
void code_store_boot(void);

/* Where the window is to begin, out of 2^32; 0: nobody has said. */
uint64_t code_store_window(void);

/* From @start to @end there is code now, as the memory map knows. With the translator locked. */
void code_store_mapped(uint64_t start, uint64_t end);

/* The process ends, or becomes another program: leaves what is worth it. */
void code_store_leave(const struct thread *thread);

#endif
