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

enum { TRIES = 4096 };

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
	int64_t at = sys(__NR_mmap, 0, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 descriptors.arena, 0);
	if (sys_failed(at))
		return;
	memory_own((uint64_t)at, (uint64_t)at + ARENA_SIZE);
	arena.memory = (char *)at;
	lock(F_UNLCK, 0, ARENA_PAGES); /* what this process had before exec */
}

void arena_forked(void)
{
	memset(arena.ours, 0, sizeof(arena.ours));
}

struct thread *arena_take(void)
{
	uint32_t *hint = (uint32_t *)arena.memory;

	if (!arena.memory)
		return NULL;
	for (int i = 0; i < TRIES; i++) {
		uint32_t page = __atomic_add_fetch(hint, 1, __ATOMIC_RELAXED) % ARENA_PAGES;

		if (page == 0 || arena.ours[page / 64] & 1UL << page % 64)
			continue;
		if (lock(F_WRLCK, page, 1))
			continue;
		arena.ours[page / 64] |= 1UL << page % 64;
		return memset(arena.memory + page * PAGE, 0, PAGE);
	}
	return NULL;
}
