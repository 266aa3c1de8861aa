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
#include "runtime/linux/proc.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"
#include "runtime/translate/translate.h"

enum { TRIES = 4096, REUSE_TRIES = 16 };

static struct {
	char *memory; /* NULL: there is none */
	bool events;  /* all of it is mapped, somewhere else */
	void *room;   /* address space for that until then */
	bool takes_none;
	/* The kernel does not refuse a lock that this process has already. Of pages that are this
	 * process's the incarnation that it has; 0: it has none. */
	uint32_t ours[ARENA_PAGES];
	uint64_t lent[ARENA_PAGES / 64]; /* of these, as bits, those that arena_lend() says */
	/* Likewise numbers of threads that have no page, as bits. One of a process that was in this
	 * memory for a while may be somebody else's by now. */
	uint64_t numbers[ARENA_INCARNATIONS / 64];
	bool numbered; /* some are set */
} arena;

static struct lock arena_lock = {.kind = LOCK_ARENA};

/* struct flock of fcntl(2), as the kernel has it. */
static struct flock range_of(short type, uint64_t start, uint64_t length)
{
	return (struct flock){
		.l_type = type,
		.l_start = (int64_t)start,
		.l_len = (int64_t)length,
	};
}

static int64_t lock_bytes(int command, short type, uint64_t start, uint64_t length)
{
	struct flock range = range_of(type, start, length);

	return sys(__NR_fcntl, descriptors.arena, command, &range);
}

/*
 * Whoever has the lock. To F_GETLK those of the caller's own table of descriptors are none, which
 * may be those of other processes that share it (CLONE_FILES); to F_OFD_GETLK (Linux 3.15) they
 * are.
 */
static bool is_locked_at(uint64_t start, uint64_t length)
{
	struct flock range = range_of(F_WRLCK, start, length);
	int64_t error = sys(__NR_fcntl, descriptors.arena, F_OFD_GETLK, &range);

	if (error)
		error = sys(__NR_fcntl, descriptors.arena, F_GETLK, &range);
	return !error && range.l_type != F_UNLCK;
}

static int64_t lock(int command, short type, uint64_t page, uint64_t pages)
{
	return lock_bytes(command, type, page * PAGE, pages * PAGE);
}

/* ---- who has a page ---- */

/*
 * Pieces of a page can be locked one by one, and a table of descriptors that has one has the page.
 * Several may have it for a while: the parent and its child, the tables of two threads.
 */
enum { PIECES = 16, PIECE = PAGE / PIECES };

static int64_t lock_pieces(short type, uint64_t page, unsigned int first, unsigned int nr)
{
	return lock_bytes(F_SETLK, type, page * PAGE + first * PIECE, nr * PIECE);
}

static bool hold_now(uint64_t page)
{
	for (unsigned int i = 0; i < PIECES; i++)
		if (!lock_pieces(F_WRLCK, page, i, 1))
			return true;
	return false;
}

/* Who tries whether the page is free has all of it for a moment; who gets it keeps one piece. */
static bool hold(uint64_t page)
{
	enum { MOMENT_NS = 100000, MOMENTS = 20000 };
	const struct {
		int64_t seconds, nanoseconds;
	} moment = {0, MOMENT_NS};

	for (unsigned int i = 0; i < MOMENTS; i++) {
		if (hold_now(page))
			return true;
		sys(__NR_nanosleep, &moment, NULL);
	}
	return false;
}

static bool is_locked(uint64_t page)
{
	return is_locked_at(page * PAGE, PAGE);
}

int32_t arena_process(uint32_t page)
{
	struct flock range = range_of(F_WRLCK, page * PAGE, PAGE);

	return sys(__NR_fcntl, descriptors.arena, F_GETLK, &range) || range.l_type == F_UNLCK ||
			       range.l_pid < 0
		       ? 0
		       : range.l_pid;
}

static void *map(uint64_t size)
{
	void *at = memory_map_shared(descriptors.arena, size, PROT_READ | PROT_WRITE);

	if (at)
		sys(__NR_madvise, at, size, MADV_DONTDUMP);
	return at;
}

void arena_boot(uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner);

	if (descriptors.arena < 0)
		return;
	arena.memory = map(ARENA_THREADS_SIZE);
	if (!arena.memory)
		return;
	/* Those of the other threads that this process had before exec. No length is to the end. */
	if (page)
		lock(F_SETLK, F_UNLCK, 0, page);
	lock(F_SETLK, F_UNLCK, page + 1, 0);
	memory_populate((uint64_t)arena.memory, (uint64_t)arena.memory + PAGE);
	core_attach(arena.memory);
	if (core_nr_events())
		arena_events();
	else if (arena_reserves())
		arena.room = memory_reserve(ARENA_SIZE);
}

bool arena_reserves(void)
{
	return arena.memory && __atomic_load_n(&arena_header()->reserves, __ATOMIC_ACQUIRE);
}

bool arena_events(void)
{
	void *all;

	if (__atomic_load_n(&arena.events, __ATOMIC_ACQUIRE))
		return true;
	if (!arena.memory)
		return false;
	lock_take(&arena_lock);
	if (!arena.events) {
		if (arena.room)
			memory_free(arena.room, ARENA_SIZE);
		arena.room = NULL;
		all = map(ARENA_SIZE);
		if (all)
			core_attach(all);
		__atomic_store_n(&arena.events, all, __ATOMIC_RELEASE);
	}
	lock_give(&arena_lock);
	return arena.events;
}

void arena_forked(bool shares_table)
{
	arena.takes_none |= shares_table;
	arena_lock.state = 0;
	if (arena.numbered)
		memset(arena.numbers, 0, sizeof(arena.numbers));
	arena.numbered = false;
}

void arena_forget(const struct thread *thread)
{
	arena.ours[thread->page] = 0;
}

struct arena_header *arena_header(void)
{
	return (void *)arena.memory;
}

static struct thread *thread_at(uint32_t page)
{
	return (struct thread *)(arena.memory + page * PAGE);
}

static uint32_t incarnation_of(uint32_t page)
{
	return __atomic_load_n(&thread_at(page)->incarnation, __ATOMIC_ACQUIRE) %
	       ARENA_INCARNATIONS;
}

static uint32_t owner_of(uint32_t page)
{
	return ARENA_OWNER(page, incarnation_of(page));
}

static bool is_ours(uint32_t page)
{
	uint32_t as = __atomic_load_n(&arena.ours[page], __ATOMIC_ACQUIRE);

	return as && as == incarnation_of(page);
}

static void make_ours(uint32_t page)
{
	__atomic_store_n(&arena.ours[page], incarnation_of(page), __ATOMIC_RELEASE);
}

/* Some of the pages that were used before are tried, in turn; then one that never was. */
static uint32_t candidate(struct arena_header *header, unsigned int tries)
{
	uint32_t used = __atomic_load_n(&header->used, __ATOMIC_RELAXED);

	if (used && (tries < REUSE_TRIES || used >= ARENA_PAGES - 1))
		return 1 + __atomic_fetch_add(&header->next, 1, __ATOMIC_RELAXED) % used;
	return __atomic_add_fetch(&header->used, 1, __ATOMIC_RELAXED);
}

/* ---- threads without a page ---- */

static uint32_t *who_is(uint32_t number)
{
	return (uint32_t *)(arena.memory + ARENA_NUMBERS_AT) + number;
}

static int64_t lock_number(short type, uint32_t number)
{
	return lock_bytes(F_SETLK, type, ARENA_SIZE + number, 1);
}

static bool is_number_ours(uint32_t number)
{
	return __atomic_load_n(&arena.numbers[number / 64], __ATOMIC_ACQUIRE) >> number % 64 & 1;
}

static bool is_number_there(uint32_t number)
{
	return __atomic_load_n(who_is(number), __ATOMIC_ACQUIRE) &&
	       (is_number_ours(number) || is_locked_at(ARENA_SIZE + number, 1));
}

/* Who shares this process's table of descriptors may lock the same byte: who is first to say that
 * it is its number has it, and a lock that somebody has left there tells nobody of him any more. */
static bool take_number(uint32_t number, uint32_t me)
{
	uint32_t before = __atomic_load_n(who_is(number), __ATOMIC_ACQUIRE);

	if (is_number_there(number) ||
	    !__atomic_compare_exchange_n(who_is(number), &before, me, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	lock_number(F_UNLCK, number);
	if (lock_number(F_WRLCK, number)) {
		__atomic_compare_exchange_n(who_is(number), &me, 0, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		return false;
	}
	return __atomic_load_n(who_is(number), __ATOMIC_ACQUIRE) == me;
}

/* One that was somebody's not long ago may still be in a lock that he was killed with. */
static uint32_t next_number(void)
{
	enum { FIRST = ARENA_OWNER_INCARNATION(ARENA_MONITOR) + 1 };
	const uint32_t given = __atomic_fetch_add(who_is(0), 1, __ATOMIC_RELAXED);

	return FIRST + given % (ARENA_INCARNATIONS - FIRST);
}

static uint32_t number(int tid)
{
	enum { TRIES_OF_NUMBERS = 64 };
	const uint64_t first = core_settings()->name_space;
	const uint32_t me = ARENA_NUMBER(tid, first && proc_name_space() == first);
	uint32_t number = 0;

	for (int i = 0; i < TRIES_OF_NUMBERS; i++) {
		number = next_number();
		memory_populate((uint64_t)who_is(number), (uint64_t)(who_is(number) + 1));
		if (take_number(number, me))
			break;
	}
	__atomic_fetch_or(&arena.numbers[number / 64], 1UL << number % 64, __ATOMIC_ACQ_REL);
	arena.numbered = true;
	return ARENA_OWNER(0, number);
}

void arena_give_number(struct thread *thread)
{
	const uint32_t number = ARENA_OWNER_INCARNATION(thread->number);
	uint32_t who;

	thread->number = 0;
	if (!number || !is_number_ours(number))
		return;
	__atomic_fetch_and(&arena.numbers[number / 64], ~(1UL << number % 64), __ATOMIC_ACQ_REL);
	lock_number(F_UNLCK, number);
	who = __atomic_load_n(who_is(number), __ATOMIC_ACQUIRE);
	if (ARENA_NUMBER_TID(who) == thread->tid)
		__atomic_compare_exchange_n(who_is(number), &who, 0, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

/* ---- taking ---- */

/*
 * What the page's last owner has left is ended by its new one, and under the new one's number: the
 * thread at hand may not have any yet.
 */
static void end_left(struct thread *thread, uint32_t page)
{
	struct thread *self = thread_self();
	const uint32_t before = self->page;

	if (!before)
		self->page = page;
	core_task_exit(&thread->events);
	self->page = before;
}

/*
 * Whether the page is on its way to a child that has not come to lock it: it may have been stopped
 * first. Where that is not expected by the monitor, it goes as the child is known to have gone.
 */
static bool is_on_its_way(const struct thread *thread)
{
	const uint32_t giver = __atomic_load_n(&thread->handed_over, __ATOMIC_ACQUIRE);
	const int32_t pid = __atomic_load_n(&thread->events.pid, __ATOMIC_RELAXED);

	if (!giver || giver == ARENA_EXPECTED)
		return giver;
	return arena_owner_alive(giver) &&
	       (!pid || !tasks_agree(&thread->events) || sys(__NR_kill, pid, 0) != -ESRCH);
}

/* Of a page that is lent, whether who has it has ended; then it is nobody's. */
static void take_back(uint32_t page)
{
	const uint64_t bit = 1UL << page % 64;

	if (!(__atomic_load_n(&arena.lent[page / 64], __ATOMIC_RELAXED) & bit) ||
	    __atomic_load_n(&thread_at(page)->events.live, __ATOMIC_ACQUIRE))
		return;
	__atomic_fetch_and(&arena.lent[page / 64], ~bit, __ATOMIC_RELAXED);
	__atomic_store_n(&arena.ours[page], 0, __ATOMIC_RELEASE);
}

/* Locks the page, unless it is somebody's, or on its way to somebody. */
static bool take(uint32_t page)
{
	struct thread *thread = thread_at(page);

	memory_populate((uint64_t)thread, (uint64_t)thread + PAGE);
	take_back(page);
	/* Who had it here may have been found to be gone: it is still in lists of this memory. */
	if (__atomic_load_n(&arena.ours[page], __ATOMIC_ACQUIRE) || lock(F_SETLK, F_WRLCK, page, 1))
		return false;
	if (is_on_its_way(thread)) {
		lock(F_SETLK, F_UNLCK, page, 1);
		return false;
	}
	thread->page = page;
	arena_renew(thread);
	lock_pieces(F_UNLCK, page, 1, PIECES - 1);
	/* Who had it may have been killed, and somebody may be at ending its task just now. */
	end_left(thread, page);
	if (!thread->events.live)
		return true;
	/* There is no room to do so here. */
	arena_leave(owner_of(page));
	return false;
}

/* But for what says whose it is, and a lock that somebody may be about to give back. */
static void clear(struct thread *thread)
{
	arena_adopt(thread, thread->page);
	memset(&thread->events + 1, 0,
	       PAGE - offsetof(struct thread, events) - sizeof(thread->events));
	core_task_clear(&thread->events);
}

void arena_adopt(struct thread *thread, uint32_t page)
{
	char *rest = (char *)&thread->incarnation + sizeof(thread->incarnation);

	/* Who looks whether the page is still the same finds nothing else at any time. */
	memset(thread, 0, offsetof(struct thread, incarnation));
	memset(rest, 0, (size_t)((char *)&thread->events - rest));
	thread->page = page;
}

struct thread *arena_take(void)
{
	if (!arena.memory || arena.takes_none)
		return NULL;
	for (unsigned int tries = 0; tries < TRIES; tries++) {
		uint32_t page = candidate(arena_header(), tries);
		struct thread *thread = thread_at(page);

		if (page >= ARENA_PAGES || !take(page))
			continue;
		clear(thread);
		return thread;
	}
	return NULL;
}

void arena_renew(struct thread *thread)
{
	uint32_t next;

	if (!thread->page) {
		arena_give_number(thread);
		return;
	}
	next = incarnation_of(thread->page) + 1;
	__atomic_store_n(&thread->incarnation, next < ARENA_INCARNATIONS ? next : 1,
			 __ATOMIC_SEQ_CST);
	make_ours(thread->page);
}

bool arena_hold(struct thread *thread, uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner);

	if (!page)
		return true;
	if (!hold(page) || owner_of(page) != owner) {
		lock(F_SETLK, F_UNLCK, page, 1);
		return false;
	}
	make_ours(page);
	__atomic_store_n(&thread->handed_over, 0, __ATOMIC_RELEASE);
	return true;
}

struct thread *arena_take_over(uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner);

	if (!arena.memory || !page)
		return NULL;
	if (!hold(page) || owner_of(page) != owner) {
		lock(F_SETLK, F_UNLCK, page, 1);
		return NULL;
	}
	/* The parent of a vfork child has still to do with it, but only for a moment. */
	lock(F_SETLKW, F_WRLCK, page, 1);
	lock_pieces(F_UNLCK, page, 1, PIECES - 1);
	return arena_hold(thread_at(page), owner) ? thread_at(page) : NULL;
}

uint32_t arena_owner(struct thread *thread)
{
	if (thread->page)
		return owner_of(thread->page);
	if (!thread->number && arena.memory)
		thread->number = number(thread->tid);
	return thread->number;
}

uint32_t arena_hand_over(struct thread *thread)
{
	/* A vfork child's page is its parent's to lock, and of no interest without events. */
	if (!thread || !thread->page || (thread->task->vfork && !core_nr_events()))
		return 0;
	/* The next image has another table of descriptors, and the lock stays with this one. */
	if (thread->task->shares_table)
		return 0;
	/* What has no GS is gVisor, where locks do not outlast exec. */
	__atomic_store_n(&thread->handed_over,
			 segment_is_fs() ? ARENA_EXPECTED : arena_owner(thread), __ATOMIC_RELEASE);
	return arena_owner(thread);
}

void arena_give(struct thread *thread)
{
	arena_forget(thread);
	lock(F_SETLK, F_UNLCK, thread->page, 1);
}

void arena_lend(const struct thread *thread)
{
	__atomic_fetch_or(&arena.lent[thread->page / 64], 1UL << thread->page % 64,
			  __ATOMIC_RELAXED);
}

bool arena_is_still(uint32_t owner)
{
	return owner_of(ARENA_OWNER_PAGE(owner)) == owner;
}

void arena_leave(uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner);
	uint32_t as = ARENA_OWNER_INCARNATION(owner);

	/* It may be this process's once more, for another thread. */
	if (__atomic_compare_exchange_n(&arena.ours[page], &as, 0, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		lock(F_SETLK, F_UNLCK, page, 1);
}

uint32_t arena_used(void)
{
	const struct arena_header *header = arena_header();
	uint32_t used = header ? __atomic_load_n(&header->used, __ATOMIC_RELAXED) : 0;

	return used < ARENA_PAGES ? used : ARENA_PAGES - 1;
}

/* ---- who is there ---- */

bool arena_owner_alive(uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner);

	/* The monitor has the header. */
	if (owner == ARENA_MONITOR)
		return is_locked(0);
	if (!page)
		return is_number_there(ARENA_OWNER_INCARNATION(owner));
	return owner_of(page) == owner && (is_ours(page) || is_locked(page));
}

bool arena_alive(uint32_t page)
{
	uint32_t giver;

	if (is_ours(page) || is_locked(page))
		return true;
	giver = __atomic_load_n(&thread_at(page)->handed_over, __ATOMIC_ACQUIRE);
	if (giver == ARENA_EXPECTED || (giver && arena_owner_alive(giver)))
		return true;
	/* It may have arrived in between. */
	return is_locked(page);
}

void arena_expect(struct thread *thread)
{
	uint32_t giver = arena_owner(thread_self());

	if (thread->handed_over)
		__atomic_compare_exchange_n(&thread->handed_over, &giver, ARENA_EXPECTED, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
