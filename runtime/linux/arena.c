// SPDX-License-Identifier: MIT
#include "runtime/linux/arena.h"

#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <stdint.h>

#include "abi/arena.h"
#include "core/core.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/task.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

enum { TRIES = 4096, REUSE_TRIES = 16 };

static struct {
	char *memory; /* NULL: there is none */
	bool events;  /* all of it is mapped, somewhere else */
	struct lock lock;
	/* The kernel does not refuse a lock that this process has already. */
	uint64_t ours[ARENA_PAGES / 64];
} arena;

/* struct flock of fcntl(2), as the kernel has it. */
static int64_t lock_bytes(int command, short type, uint64_t start, uint64_t length)
{
	struct flock range = {
		.l_type = type,
		.l_start = (int64_t)start,
		.l_len = (int64_t)length,
	};
	int64_t result = sys(__NR_fcntl, descriptors.arena, command, &range);

	return command == F_GETLK && !result ? range.l_type != F_UNLCK : result;
}

static int64_t lock(int command, short type, uint64_t page, uint64_t pages)
{
	return lock_bytes(command, type, page * PAGE, pages * PAGE);
}

/* Of a page's bytes those that its owner leaves to who else has to keep it. */
enum { SHARE_AT = PAGE / 2 };

static int64_t lock_share(short type, uint64_t page)
{
	return lock_bytes(F_SETLK, type, page * PAGE + SHARE_AT, PAGE - SHARE_AT);
}

static void *map(uint64_t size)
{
	int64_t at =
		sys(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors.arena, 0);

	if (sys_failed(at))
		return NULL;
	sys(__NR_madvise, at, size, MADV_DONTDUMP);
	memory_own((uint64_t)at, (uint64_t)at + size);
	return (void *)at;
}

void arena_boot(uint32_t page)
{
	if (descriptors.arena < 0)
		return;
	arena.memory = map(ARENA_THREADS_SIZE);
	if (!arena.memory)
		return;
	/* Those of the other threads that this process had before exec. */
	lock(F_SETLK, F_UNLCK, 0, page);
	lock(F_SETLK, F_UNLCK, page + 1, ARENA_PAGES - page - 1);
	core_attach(arena.memory);
	if (core_nr_events())
		arena_events();
}

bool arena_events(void)
{
	void *all;

	if (__atomic_load_n(&arena.events, __ATOMIC_ACQUIRE))
		return true;
	if (!arena.memory)
		return false;
	lock_take(&arena.lock);
	if (!arena.events) {
		all = map(ARENA_SIZE);
		if (all)
			core_attach(all);
		__atomic_store_n(&arena.events, all, __ATOMIC_RELEASE);
	}
	lock_give(&arena.lock);
	return arena.events;
}

void arena_forked(void)
{
	arena.lock = (struct lock){0};
	memset(arena.ours, 0, sizeof(arena.ours));
}

struct arena_header *arena_header(void)
{
	return (void *)arena.memory;
}

static bool is_ours(uint32_t page)
{
	return __atomic_load_n(&arena.ours[page / 64], __ATOMIC_ACQUIRE) & 1UL << page % 64;
}

static void make_ours(uint32_t page)
{
	__atomic_or_fetch(&arena.ours[page / 64], 1UL << page % 64, __ATOMIC_ACQ_REL);
}

static struct thread *thread_at(uint32_t page)
{
	return (struct thread *)(arena.memory + page * PAGE);
}

/* Some of the pages that were used before are tried, in turn; then one that never was. */
static uint32_t candidate(struct arena_header *header, unsigned int tries)
{
	uint32_t used = __atomic_load_n(&header->used, __ATOMIC_RELAXED);

	if (used && (tries < REUSE_TRIES || used >= ARENA_PAGES - 1))
		return 1 + __atomic_fetch_add(&header->next, 1, __ATOMIC_RELAXED) % used;
	return __atomic_add_fetch(&header->used, 1, __ATOMIC_RELAXED);
}

/* Locks the page, unless it is somebody's, or on its way to somebody. */
static bool take(uint32_t page)
{
	struct thread *thread = thread_at(page);

	if (is_ours(page) || lock(F_SETLK, F_WRLCK, page, 1))
		return false;
	if (__atomic_load_n(&thread->handed_over, __ATOMIC_ACQUIRE) ||
	    (thread->events.events && !arena_events())) {
		lock(F_SETLK, F_UNLCK, page, 1);
		return false;
	}
	make_ours(page);
	lock_share(F_UNLCK, page);
	/* Who had it may have been killed, and somebody may be at ending its task just now. */
	core_task_exit(&thread->events);
	return true;
}

struct thread *arena_take(void)
{
	if (!arena.memory)
		return NULL;
	for (unsigned int tries = 0; tries < TRIES; tries++) {
		uint32_t page = candidate(arena_header(), tries);
		struct thread *thread = thread_at(page);

		if (page >= ARENA_PAGES || !take(page))
			continue;
		memset(thread, 0, PAGE);
		thread->page = page;
		return thread;
	}
	return NULL;
}

struct thread *arena_take_over(uint32_t page)
{
	struct thread *thread = thread_at(page);

	if (!arena.memory || !page || page >= ARENA_PAGES)
		return NULL;
	/* It waits for who hands it over, and only for a moment. */
	if (lock(F_SETLKW, F_WRLCK, page, 1))
		return NULL;
	make_ours(page);
	lock_share(F_UNLCK, page);
	__atomic_store_n(&thread->handed_over, 0, __ATOMIC_RELEASE);
	return thread;
}

void arena_keep(struct thread *thread)
{
	if (!thread->page)
		return;
	lock_share(F_WRLCK, thread->page);
	__atomic_store_n(&thread->handed_over, 0, __ATOMIC_RELEASE);
}

uint32_t arena_hand_over(struct thread *thread)
{
	/* A vfork child's page is its parent's to lock, and of no interest without events. */
	if (!thread || !thread->page || (thread->task->vfork && !core_nr_events()))
		return 0;
	__atomic_store_n(&thread->handed_over, 1, __ATOMIC_RELEASE);
	return thread->page;
}

void arena_give(struct thread *thread)
{
	uint32_t page = thread->page;

	__atomic_and_fetch(&arena.ours[page / 64], ~(1UL << page % 64), __ATOMIC_ACQ_REL);
	lock(F_SETLK, F_UNLCK, page, 1);
}

uint32_t arena_used(void)
{
	const struct arena_header *header = arena_header();
	uint32_t used = header ? __atomic_load_n(&header->used, __ATOMIC_RELAXED) : 0;

	return used < ARENA_PAGES ? used : ARENA_PAGES - 1;
}

/* Page 0 is the header, and the monitor's. */
static bool is_handed_over(uint32_t page)
{
	return page && __atomic_load_n(&thread_at(page)->handed_over, __ATOMIC_ACQUIRE);
}

bool arena_alive(uint32_t page)
{
	return is_ours(page) || is_handed_over(page) || lock(F_GETLK, F_WRLCK, page, 1) == 1;
}
