/* SPDX-License-Identifier: MIT */
/*
 * The tree's lock, and what is done when somebody was killed who had it; or was stopped, with any.
 *
 * A few words of each event say all that lists are made of: `state`, and `task`, `leader`,
 * `parent`, `creator` and `ring`; of each task `live`, of each ring `at`, of each mapping its
 * `owner`. They are written in one store each: the state of an event last when it begins and first
 * when it is freed, the others before the lists that follow from them. So wherever somebody was
 * killed, lists can be made anew from those words, and what was only half begun, or is only half
 * there any more, is ended.
 */
#ifndef CORE_REPAIR_H
#define CORE_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

void core_tree_lock(void);
void core_tree_unlock(void);

/* Whether some lock in the arena is @owner's just now. */
bool core_has_lock(uint32_t owner);

#endif
