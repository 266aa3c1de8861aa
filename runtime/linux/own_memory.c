// SPDX-License-Identifier: MIT
/*
 * Sorted pieces, twice: while one copy changes the other is read, and who has read one that changed
 * meanwhile reads again. So a thread that was interrupted in the middle of a change finds what was
 * before it.
 *
 * A piece is added when it has been mapped. Who has asked before that, of memory that was nobody's,
 * and writes after it, writes to it all the same.
 */
#include "runtime/linux/own_memory.h"

#include <stddef.h>

#include "runtime/linux/memory.h"

/* The runtime's memory lies together (apart.c): of a thousand threads the slots are one piece.
 * What has no room here is not protected. */
enum { PIECES = 4096 };

struct piece {
	uint64_t start, end;
};

/* The copies side by side: most processes have few pieces, on one page. */
static _Alignas(PAGE) struct copied {
	struct piece of[2];
} pieces[PIECES];
static size_t nr_pieces[2];

/* Its last bit says which copy is read. */
static uint64_t changes;

uint64_t own_end;

/* The first piece that ends behind @at. One that is changing is no more than wrong. */
static size_t find(unsigned int copy, uint64_t at)
{
	size_t low = 0, high = __atomic_load_n(&nr_pieces[copy], __ATOMIC_RELAXED);

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (__atomic_load_n(&pieces[middle].of[copy].end, __ATOMIC_RELAXED) > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void move(unsigned int copy, size_t to, size_t from)
{
	const size_t nr = nr_pieces[copy];

	if (to < from)
		for (; from < nr; from++, to++)
			pieces[to].of[copy] = pieces[from].of[copy];
	else if (to > from)
		for (size_t i = nr; i > from; i--)
			pieces[i - 1 + to - from].of[copy] = pieces[i - 1].of[copy];
}

/* Replaces @old pieces from the one at @at by @nr others. */
static void replace(unsigned int copy, size_t at, size_t old, const struct piece *with, size_t nr)
{
	const size_t had = nr_pieces[copy];

	if (had - old + nr > PIECES)
		nr--;
	move(copy, at + nr, at + old);
	for (size_t i = 0; i < nr; i++)
		pieces[at + i].of[copy] = with[i];
	__atomic_store_n(&nr_pieces[copy], had - old + nr, __ATOMIC_RELAXED);
}

static void add(unsigned int copy, uint64_t start, uint64_t end)
{
	/* With what ends where it begins, and up to what begins where it ends. */
	const size_t at = find(copy, start ? start - 1 : 0);
	struct piece all = {start, end};
	size_t behind = at;

	for (; behind < nr_pieces[copy] && pieces[behind].of[copy].start <= end; behind++) {
		if (pieces[behind].of[copy].start < all.start)
			all.start = pieces[behind].of[copy].start;
		if (pieces[behind].of[copy].end > all.end)
			all.end = pieces[behind].of[copy].end;
	}
	replace(copy, at, behind - at, &all, 1);
}

static void take_out(unsigned int copy, uint64_t start, uint64_t end)
{
	const size_t at = find(copy, start);
	struct piece left[2];
	size_t behind = at, nr = 0;

	for (; behind < nr_pieces[copy] && pieces[behind].of[copy].start < end; behind++) {
		const struct piece piece = pieces[behind].of[copy];

		if (piece.start < start)
			left[nr++] = (struct piece){piece.start, start};
		if (piece.end > end)
			left[nr++] = (struct piece){end, piece.end};
	}
	replace(copy, at, behind - at, left, nr);
}

/* From here on the other copy is read, with all that has been done to it. */
static unsigned int change(void)
{
	const uint64_t now = changes + 1;

	__atomic_store_n(&changes, now, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ~now & 1;
}

void own_add(uint64_t start, uint64_t end)
{
	if (end > own_end)
		__atomic_store_n(&own_end, end, __ATOMIC_RELAXED);
	add(change(), start, end);
	add(change(), start, end);
}

void own_remove(uint64_t start, uint64_t end)
{
	take_out(change(), start, end);
	take_out(change(), start, end);
}

void own_clear(void)
{
	for (unsigned int i = 0; i < 2; i++)
		__atomic_store_n(&nr_pieces[change()], 0, __ATOMIC_RELAXED);
}

uint64_t own_before(uint64_t start, uint64_t size)
{
	uint64_t before, now;

	do {
		before = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);

		const unsigned int copy = before & 1;
		const size_t at = find(copy, start);

		now = size;
		if (at < __atomic_load_n(&nr_pieces[copy], __ATOMIC_RELAXED)) {
			const uint64_t first =
				__atomic_load_n(&pieces[at].of[copy].start, __ATOMIC_RELAXED);

			if (first <= start)
				now = 0;
			else if (first - start < size)
				now = first - start;
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&changes, __ATOMIC_RELAXED) != before);
	return now;
}
