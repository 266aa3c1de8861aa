// SPDX-License-Identifier: MIT
#include "runtime/lock.h"

#include "runtime/thread.h"

uint32_t lock_children;

/* One that finds no room is not given back by others. */
static void replace(struct lock *old, struct lock *new)
{
	struct lock **has = thread_self()->locks;

	for (int i = 0; i < THREAD_LOCKS; i++)
		if (has[i] == old) {
			__atomic_store_n(&has[i], new, __ATOMIC_SEQ_CST);
			return;
		}
}

void lock_take_as(struct lock *lock)
{
	const uint32_t mine = LOCK_OF(thread_self()->tid);
	uint32_t is = 0;

	replace(NULL, lock);
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
	replace(lock, NULL);
}

bool lock_give_all_of(struct thread *thread)
{
	bool any = false;

	for (int i = 0; i < THREAD_LOCKS; i++) {
		struct lock *lock = thread->locks[i];

		thread->locks[i] = NULL;
		if (!lock ||
		    __atomic_load_n(&lock->state, __ATOMIC_RELAXED) != LOCK_OF(thread->tid))
			continue;
		lock_give(lock);
		any = true;
	}
	return any;
}
