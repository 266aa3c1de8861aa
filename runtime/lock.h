/* SPDX-License-Identifier: MIT */
/* A lock that sleeps, for threads of one process. Not to be taken in a signal handler. */
#ifndef RUNTIME_LOCK_H
#define RUNTIME_LOCK_H

#include <stdint.h>

#include "runtime/sys.h"

/* 0 free, 1 held, 2 held and somebody sleeps */
struct lock {
	uint32_t state;
};

enum { LOCK_FUTEX_WAIT_PRIVATE = 128, LOCK_FUTEX_WAKE_PRIVATE = 129 };

static inline void lock_take(struct lock *lock)
{
	uint32_t free = 0;

	if (__atomic_compare_exchange_n(&lock->state, &free, 1, 0, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE))
		sys(__NR_futex, &lock->state, LOCK_FUTEX_WAIT_PRIVATE, 2, 0);
}

static inline void lock_give(struct lock *lock)
{
	if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
		sys(__NR_futex, &lock->state, LOCK_FUTEX_WAKE_PRIVATE, 1);
}

#endif
