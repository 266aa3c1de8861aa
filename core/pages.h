/* SPDX-License-Identifier: MIT */
/* Memory of the rings' part of the arena, in pages (core/ring.h draws it). With the tree's lock. */
#ifndef CORE_PAGES_H
#define CORE_PAGES_H

#include <stdint.h>

#include "abi/arena.h"
#include "core/ring.h"
#include "core/views.h"
#include "core/watched.h"

/* Behind the structs of all rings. */
#define CORE_VIEWS_AT	(ARENA_RINGS_AT + CORE_RINGS * sizeof(struct core_ring))
#define CORE_WATCHED_AT (CORE_VIEWS_AT + CORE_VIEWS * sizeof(struct core_view))

/* @count pages in a row, all zeros; returns their place in the arena, 0 if there are not so many.
 */
uint64_t core_pages_take(uint64_t count);
/* They have been discarded. */
void core_pages_give(uint64_t at, uint64_t count);

/* core/repair.h: nobody has any, but who is said to. */
void core_pages_forget(void);
void core_pages_have(uint64_t at, uint64_t count);

#endif
