/* SPDX-License-Identifier: MIT */
/*
 * The tree's lock, and what is done when somebody was killed who had it.
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

void core_tree_lock(void);
void core_tree_unlock(void);

#endif
