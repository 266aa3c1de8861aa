/* SPDX-License-Identifier: MIT */
/*
 * A lock that sleeps, for threads of one process. Not to be taken in a signal handler.
 *
 * A child of vfork(2) is in its parent's memory, and may be killed with locks that nobody else
 * would give back, while its parent waits for its end. So as long as there is one, a lock says
 * whose it is, each thread writes down which locks it is about to have, and the parent gives back
 * those of a child that is gone. Where there has ever been a child beside its parent in the same
 * memory (CLONE_VM alone), that is so from then on, and who has waited for long looks whether the
 * owner's process is there.
 */
#ifndef RUNTIME_LOCK_H
#define RUNTIME_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sys.h"

/* Of a kind a thread has one at most at a time: so there is room to write down all that it may
 * have. */
enum lock_kind {
	LOCK_NO_KIND,
	LOCK_EVENT_MAP_CHANGING,
	LOCK_EVENT_MAP,
	LOCK_EVENT_FDS,
	LOCK_EVENT_PASSED,
	LOCK_VIRTUAL_FOLDERS,
	LOCK_SEMAPHORES,
	LOCK_MAPS_FILES,
	LOCK_SLOTS,
	LOCK_BRK,
	LOCK_MAKING,
	LOCK_TRANSLATOR,
	LOCK_EVENT_JOINED,
	LOCK_SIGNAL_ACTIONS,
	LOCK_ARENA,
	LOCK_KINDS,
};

/* 0 free, 1 held, 2 held and somebody sleeps; while there are such children LOCK_OF() of the
 * thread */
struct lock {
	uint32_t state;
	uint32_t kind;
};

/* As if somebody slept. */
#define LOCK_SLEEPERS 2u
#define LOCK_OF(tid)  ((uint32_t)(tid) << 2 | LOCK_SLEEPERS)
#define LOCK_TID(is)  ((is) >> 2)

enum { LOCK_FUTEX_WAIT_PRIVATE = 128, LOCK_FUTEX_WAKE_PRIVATE = 129 };

/* How many such children there are; and what is done then, or where a lock is not free: lock.c. */
extern uint32_t lock_children;
void lock_take_slowly(struct lock *lock);
void lock_forget(struct lock *lock);

static inline bool lock_is_noted(void)
{
	return __builtin_expect(__atomic_load_n(&lock_children, __ATOMIC_RELAXED), 0);
}

/* The parent's, before and after. */
static inline void lock_child_begins(void)
{
	__atomic_add_fetch(&lock_children, 1, __ATOMIC_SEQ_CST);
}

static inline void lock_child_ended(void)
{
	__atomic_sub_fetch(&lock_children, 1, __ATOMIC_SEQ_CST);
}

/* Whether a thread's process is not there any more, and what is done about the locks of thread
 * @tid if its is not; NULL: no other process can be in this memory. */
struct thread;
extern bool (*lock_is_gone)(const struct thread *thread);
extern void (*lock_look_at)(uint32_t tid);

/* Whether @thread has a lock, and the thread that has the one it waits for; 0: it waits for none. */
bool lock_has_any(const struct thread *thread);
uint32_t lock_waits_for(const struct thread *thread);

/* Gives back what @gone has, a thread that is not there any more. */
void lock_give_all_of(struct thread *gone);

/* The caller has @lock from now on if @gone had it, without anybody in between: to mend first
 * what it guards. */
bool lock_inherit(struct lock *lock, struct thread *gone);

/* In a forked child, which is in nobody else's memory. */
static inline void lock_forked(void)
{
	lock_children = 0;
}

static inline void lock_take(struct lock *lock)
{
	uint32_t free = 0;

	if (lock_is_noted() || !__atomic_compare_exchange_n(&lock->state, &free, 1, 0,
							    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		lock_take_slowly(lock);
}

static inline void lock_give(struct lock *lock)
{
	if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) & LOCK_SLEEPERS)
		sys(__NR_futex, &lock->state, LOCK_FUTEX_WAKE_PRIVATE, 1);
	if (lock_is_noted())
		lock_forget(lock);
}

#endif
