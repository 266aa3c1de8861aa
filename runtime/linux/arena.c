// SPDX-License-Identifier: MIT
#include "runtime/linux/arena.h"

#include <asm/mman.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <stdint.h>

#include "abi/arena.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/memory.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum { TRIES = 4096, REUSE_TRIES = 16 };

static struct {
	char *memory; /* NULL: there is none */
	/* The kernel does not refuse a lock that this process has already. */
	uint64_t ours[ARENA_PAGES / 64];
} arena;

/* struct flock of fcntl(2), as the kernel has it. */
static int64_t lock(short type, uint64_t page, uint64_t pages)
{
	struct flock range = {
		.l_type = type,
		.l_start = (int64_t)(page * PAGE),
		.l_len = (int64_t)(pages * PAGE),
	};

	return sys(__NR_fcntl, descriptors.arena, F_SETLK, &range);
}

void arena_boot(void)
{
	if (descriptors.arena < 0)
		return;
	int64_t at = sys(__NR_mmap, 0, ARENA_THREADS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 descriptors.arena, 0);
	if (sys_failed(at))
		return;
	memory_own((uint64_t)at, (uint64_t)at + ARENA_THREADS_SIZE);
	arena.memory = (char *)at;
	lock(F_UNLCK, 0, ARENA_PAGES); /* what this process had before exec */
}

void arena_forked(void)
{
	memset(arena.ours, 0, sizeof(arena.ours));
}

/* Some of the pages that were used before are tried, in turn; then one that never was. */
static uint32_t candidate(struct arena_pages *header, unsigned int tries)
{
	uint32_t used = __atomic_load_n(&header->used, __ATOMIC_RELAXED);

	if (used && (tries < REUSE_TRIES || used >= ARENA_PAGES - 1))
		return 1 + __atomic_fetch_add(&header->next, 1, __ATOMIC_RELAXED) % used;
	return __atomic_add_fetch(&header->used, 1, __ATOMIC_RELAXED);
}

struct thread *arena_take(void)
{
	if (!arena.memory)
		return NULL;
	for (unsigned int tries = 0; tries < TRIES; tries++) {
		uint32_t page = candidate((struct arena_pages *)arena.memory, tries);

		if (page >= ARENA_PAGES || arena.ours[page / 64] & 1UL << page % 64)
			continue;
		if (lock(F_WRLCK, page, 1))
			continue;
		arena.ours[page / 64] |= 1UL << page % 64;
		return memset(arena.memory + page * PAGE, 0, PAGE);
	}
	return NULL;
}
