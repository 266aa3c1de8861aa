// SPDX-License-Identifier: MIT
#include "runtime/lock.h"

#include <asm/errno.h>
#include <linux/time_types.h>

#include "runtime/thread.h"

uint32_t lock_children;
bool (*lock_is_gone)(const struct thread *thread);
void (*lock_look_at)(uint32_t tid);

static void note(struct lock *lock)
{
	if (lock->kind == LOCK_NO_KIND)
		__builtin_trap();
	__atomic_store_n(&thread_self()->locks[lock->kind], lock, __ATOMIC_SEQ_CST);
}

/* False: for too long. */
static bool sleep_on(struct lock *lock, uint32_t is)
{
	const struct __kernel_timespec patience = {.tv_nsec = 20000000};

	return sys(__NR_futex, &lock->state, LOCK_FUTEX_WAIT_PRIVATE, is, &patience) != -ETIMEDOUT;
}

static bool try_take(struct lock *lock, uint32_t *is)
{
	const bool noted = lock_is_noted();
	const uint32_t mine = noted ? LOCK_OF(thread_self()->tid) : LOCK_SLEEPERS;

	if (noted)
		note(lock);
	*is = 0;
	return __atomic_compare_exchange_n(&lock->state, is, mine, 0, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/* Whose it is stays there, by whomever it is waited for: a child may have begun, and taken it,
 * since this thread saw that there was none. */
void lock_take_slowly(struct lock *lock)
{
	uint32_t is;

	while (!try_take(lock, &is)) {
		/* Who has it from before wakes nobody who has not said that he sleeps. */
		if (is == 1) {
			if (!__atomic_compare_exchange_n(&lock->state, &is, LOCK_SLEEPERS, 0,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				continue;
			is = LOCK_SLEEPERS;
		}
		if (!sleep_on(lock, is) && LOCK_TID(is) && lock_look_at)
			lock_look_at(LOCK_TID(is));
	}
}

void lock_forget(struct lock *lock)
{
	struct lock **has = &thread_self()->locks[lock->kind];

	if (*has == lock)
		__atomic_store_n(has, NULL, __ATOMIC_SEQ_CST);
}

/* What is written down it may not have had yet, or any more. */
static bool had(const struct thread *gone, const struct lock *lock)
{
	return lock && gone->locks[lock->kind] == lock &&
	       __atomic_load_n(&lock->state, __ATOMIC_RELAXED) == LOCK_OF(gone->tid);
}

bool lock_has_any(const struct thread *thread)
{
	for (int kind = 0; kind < LOCK_KINDS; kind++)
		if (had(thread, thread->locks[kind]))
			return true;
	return false;
}

uint32_t lock_waits_for(const struct thread *thread)
{
	for (int kind = 0; kind < LOCK_KINDS; kind++) {
		const struct lock *lock = thread->locks[kind];

		if (lock && !had(thread, lock))
			return LOCK_TID(__atomic_load_n(&lock->state, __ATOMIC_RELAXED));
	}
	return 0;
}

bool lock_inherit(struct lock *lock, struct thread *gone)
{
	uint32_t its = LOCK_OF(gone->tid);

	if (!had(gone, lock))
		return false;
	note(lock);
	/* Somebody else may see just as well that it is gone. */
	if (!__atomic_compare_exchange_n(&lock->state, &its, LOCK_OF(thread_self()->tid), 0,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		lock_forget(lock);
		return false;
	}
	gone->locks[lock->kind] = NULL;
	return true;
}

/* And wakes another one instead of who was woken and did not live to take it. */
static void give_back(struct lock *lock, const struct thread *gone)
{
	uint32_t its = LOCK_OF(gone->tid);

	__atomic_compare_exchange_n(&lock->state, &its, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	sys(__NR_futex, &lock->state, LOCK_FUTEX_WAKE_PRIVATE, 1);
}

void lock_give_all_of(struct thread *gone)
{
	for (int kind = 0; kind < LOCK_KINDS; kind++) {
		if (gone->locks[kind])
			give_back(gone->locks[kind], gone);
		gone->locks[kind] = NULL;
	}
}
