// SPDX-License-Identifier: MIT
#include "core/lock.h"

#include <stdbool.h>

#include "core/host.h"

/* Tries before somebody else is let run, and turns of that before the owner is looked for. */
enum { SPINS = 200, TURNS = 16 };

static bool take(uint32_t *lock, uint32_t from, uint32_t me)
{
	return __atomic_compare_exchange_n(lock, &from, me, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static bool spin(uint32_t *lock, uint32_t me)
{
	for (unsigned int i = 0; i < SPINS; i++) {
		if (!__atomic_load_n(lock, __ATOMIC_RELAXED) && take(lock, 0, me))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

static bool gone(uint32_t owner, uint32_t me)
{
	/* Nobody takes a lock twice, so an owner with our number is one who had it before us. */
	return owner && (owner == me || !core_host_owner_alive(owner));
}

/* False: the lock is ours, whose owner is gone. */
static bool wait_on(uint32_t *lock, uint32_t owner, uint32_t me)
{
	if (gone(owner, me))
		return !take(lock, owner, me);
	if (owner)
		core_host_held_up(owner);
	return true;
}

bool core_lock(uint32_t *lock)
{
	uint32_t me = core_host_owner();

	if (take(lock, 0, me))
		return false;
	for (unsigned int turn = 0; !spin(lock, me); turn++) {
		uint32_t owner = __atomic_load_n(lock, __ATOMIC_RELAXED);

		if (turn % TURNS == TURNS - 1 && !wait_on(lock, owner, me))
			return true;
		core_host_pause(turn);
	}
	return false;
}

bool core_lock_soon(uint32_t *lock, bool waits)
{
	enum { SOON = 2 * TURNS };
	const uint32_t me = core_host_owner();

	if (take(lock, 0, me))
		return true;
	for (unsigned int turn = 0; waits && turn < SOON; turn++) {
		if (spin(lock, me))
			return true;
		if (turn == TURNS - 1 &&
		    !wait_on(lock, __atomic_load_n(lock, __ATOMIC_RELAXED), me))
			return true;
		core_host_pause(turn);
	}
	return !wait_on(lock, __atomic_load_n(lock, __ATOMIC_RELAXED), me);
}

void core_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
