/* SPDX-License-Identifier: MIT */
/*
 * Locks in the arena, between threads of any process of the tree. The word is the number of who
 * has it (core_host_owner()). A program may be killed while it holds one: who waits asks whether
 * the owner is still there, and takes the lock over if not. What it protects is then as the owner
 * left it: each list can be walked, as elements are complete before they are linked, but not all is
 * there that should be, or gone that should be. core/repair.h says what becomes of that.
 *
 * Held for less than a microsecond, or a system call or two; nothing waits while it holds one but
 * for the next. Who waits for long says so (core_host_held_up()), as the owner may be stopped.
 */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* True: who had it is gone, and may have been in the middle of anything. */
bool core_lock(uint32_t *lock);
void core_unlock(uint32_t *lock);

/* False: somebody has it who is there. @waits: for some milliseconds, in which he may be helped. */
bool core_lock_soon(uint32_t *lock, bool waits);

/* How long core_host_pause() is to be; 0: until others that run had their turn. */
static inline uint64_t core_pause_ns(unsigned int turn)
{
	enum { YIELDS = 4, SHORTEST = 20000, DOUBLINGS = 5 };
	const unsigned int sleeps = turn < YIELDS ? 0 : turn - YIELDS + 1;

	return sleeps ? (uint64_t)SHORTEST << (sleeps < DOUBLINGS ? sleeps : DOUBLINGS) : 0;
}

#endif
