// SPDX-License-Identifier: MIT
#include "runtime/lock.h"

#include "runtime/thread.h"

uint32_t lock_children;

static void note(struct lock *lock)
{
	if (lock->kind == LOCK_NO_KIND)
		__builtin_trap();
	__atomic_store_n(&thread_self()->locks[lock->kind], lock, __ATOMIC_SEQ_CST);
}

/* Whose it is stays there, by whomever it is waited for: a child may have begun, and taken it,
 * since this thread saw that there was none. */
void lock_take_slowly(struct lock *lock)
{
	const bool noted = lock_is_noted();
	const uint32_t mine = noted ? LOCK_OF(thread_self()->tid) : LOCK_SLEEPERS;
	uint32_t is = 0;

	if (noted)
		note(lock);
	while (!__atomic_compare_exchange_n(&lock->state, &is, mine, 0, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		/* Who has it from before wakes nobody who has not said that he sleeps. */
		if (is != 1 || __atomic_compare_exchange_n(&lock->state, &is, LOCK_SLEEPERS, 0,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			sys(__NR_futex, &lock->state, LOCK_FUTEX_WAIT_PRIVATE,
			    is == 1 ? LOCK_SLEEPERS : is, 0);
		is = 0;
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

bool lock_inherit(struct lock *lock, struct thread *gone)
{
	if (!had(gone, lock))
		return false;
	note(lock);
	__atomic_store_n(&lock->state, LOCK_OF(thread_self()->tid), __ATOMIC_SEQ_CST);
	gone->locks[lock->kind] = NULL;
	return true;
}

/* Another one instead of who was woken and did not live to take it. */
static void wake(struct lock *lock)
{
	sys(__NR_futex, &lock->state, LOCK_FUTEX_WAKE_PRIVATE, 1);
}

void lock_give_all_of(struct thread *gone)
{
	for (int kind = 0; kind < LOCK_KINDS; kind++) {
		struct lock *lock = gone->locks[kind];

		if (had(gone, lock))
			lock_give(lock);
		else if (lock)
			wake(lock);
		gone->locks[kind] = NULL;
	}
}
