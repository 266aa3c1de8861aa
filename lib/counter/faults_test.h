/* SPDX-License-Identifier: MIT */
/* Work for the tests whose count is known to the unit: page faults in user mode. */
#ifndef LIB_COUNTER_FAULTS_TEST_H
#define LIB_COUNTER_FAULTS_TEST_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_FAULTS 3000

/*
 * Causes exactly @nr page faults of this thread. The sanitizers' own memory would fault too: they
 * are kept out. Pages of the program itself fault when they are used first: a test that wants the
 * exact number has run the code around it once before.
 */
__attribute__((no_sanitize("address", "undefined"))) static inline void fault(size_t nr)
{
	static _Thread_local volatile char *memory;
	const size_t page = sysconf(_SC_PAGESIZE);

	if (!memory) {
		memory = mmap(NULL, MAX_FAULTS * page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise((void *)memory, MAX_FAULTS * page, MADV_NOHUGEPAGE);
	}
	madvise((void *)memory, nr * page, MADV_DONTNEED);
	for (size_t i = 0; i < nr; i++)
		memory[i * page] = 1;
}

#endif
