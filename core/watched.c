// SPDX-License-Identifier: MIT
/*
 *	word	| MARK | turn | place |
 *		63	32     16     0
 *
 * No number of a file is such a word, nor an address; and a place is one only while its turn is.
 */
#include "core/watched.h"

#include "core/arena.h"
#include "core/core.h"
#include "core/hold.h"
#include "core/pages.h"
#include "core/repair.h"

enum { NEAR = 64 }; /* so far from where it belongs something may be */

#define MARK 0xb5c3f01dUL

static struct core_watched *place(uint64_t index)
{
	return (struct core_watched *)core_arena(CORE_WATCHED_AT) + index % CORE_WATCHED;
}

static uint64_t word_of(uint64_t index)
{
	return MARK << 32 | (place(index)->turn & 0xffff) << 16 | index % CORE_WATCHED;
}

static bool is_used(const struct core_watched *watched)
{
	return watched->event && core_is_named(core_named(watched->event), watched->event);
}

static bool is_same(const struct core_watched *one, const struct core_watched *other)
{
	return one->event == other->event && one->data == other->data &&
	       one->wanted == other->wanted && one->fd == other->fd;
}

static uint64_t home(const struct core_watched *what)
{
	const uint64_t mixed = (what->event ^ what->data ^ (uint64_t)what->wanted << 32 ^
				(uint64_t)(uint32_t)what->fd << 16) *
			       0x9e3779b97f4a7c15UL;

	return mixed >> 40;
}

static uint64_t watch(const struct core_watched *what)
{
	const uint64_t first = home(what);
	uint64_t unused = UINT64_MAX;
	uint32_t turn;

	for (uint64_t i = first; i < first + NEAR; i++) {
		if (is_used(place(i)) && is_same(place(i), what))
			return word_of(i);
		if (unused == UINT64_MAX && !is_used(place(i)))
			unused = i;
	}
	if (unused == UINT64_MAX)
		return 0;
	turn = place(unused)->turn + 1;
	*place(unused) = *what;
	place(unused)->turn = turn;
	return word_of(unused);
}

uint64_t core_watch(const struct core_watched *what)
{
	uint64_t word;

	core_tree_lock();
	word = watch(what);
	core_tree_unlock();
	return word;
}

bool core_watched(uint64_t word, struct core_watched *what)
{
	const uint64_t index = word & 0xffff;
	bool is = false;

	if (word >> 32 != MARK || index >= CORE_WATCHED)
		return false;
	core_tree_lock();
	if (word == word_of(index) && is_used(place(index))) {
		*what = *place(index);
		is = true;
	}
	core_tree_unlock();
	return is;
}
