// SPDX-License-Identifier: MIT
#include "runtime/linux/apart.h"

#include <linux/mman.h>

#include "runtime/linux/aslr.h"
#include "runtime/linux/memory.h"
#include "runtime/sys.h"

/* Two thirds of the address space, and as far up as the kernel goes at random. */
#define START	     0x555555554000UL
#define RANDOM_PAGES (1UL << 28)

enum { TRIES = 4 };

static uint64_t next;

uint64_t apart_start(void)
{
	return START + aslr_random() % RANDOM_PAGES * PAGE;
}

void apart_boot(uint64_t end)
{
	next = end;
}

/* Boot takes the first, while there is one thread. */
static uint64_t take(size_t size)
{
	if (!next)
		next = apart_start();
	return __atomic_fetch_add(&next, size, __ATOMIC_RELAXED);
}

int64_t apart_map(size_t size, int prot, int flags, int fd, uint64_t offset)
{
	size = PAGE_UP(size);
	for (unsigned int tries = 0; tries < TRIES; tries++) {
		const uint64_t at = take(size);
		const int64_t result =
			sys(__NR_mmap, at, size, prot, flags | MAP_FIXED_NOREPLACE, fd, offset);

		if ((uint64_t)result == at)
			return result;
		/* Kernels before 4.17 take the address for a hint. */
		if (!sys_failed(result))
			sys(__NR_munmap, result, size);
	}
	return sys(__NR_mmap, 0, size, prot, flags, fd, offset);
}

void apart_freed(uint64_t start, uint64_t end)
{
	__atomic_compare_exchange_n(&next, &end, start, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
