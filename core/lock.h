/* SPDX-License-Identifier: MIT */
/*
 * Locks in the arena, between threads of any process of the tree. The word is the number of who
 * has it (core_host_owner()). A program may be killed while it holds one: who waits asks whether
 * the owner is still there, and takes the lock over if not. What it protects is then as the owner
 * left it: each list can be walked, as elements are complete before they are linked, but not all is
 * there that should be, or gone that should be. core/repair.h says what becomes of that.
 *
 * Held for less than a microsecond, or a system call or two; nothing waits while it holds one.
 */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* True: who had it is gone, and may have been in the middle of anything. */
bool core_lock(uint32_t *lock);
void core_unlock(uint32_t *lock);

#endif
