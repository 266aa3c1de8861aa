// SPDX-License-Identifier: MIT
/*
 * Sorted pieces, twice: while one copy changes the other is read, and who has read one that changed
 * meanwhile reads again. So a thread that was interrupted in the middle of a change finds what was
 * before it.
 *
 * A piece is added when it has been mapped. Who has asked before that, of memory that was nobody's, and
 * writes after it, writes to it all the same.
 */
#include "runtime/linux/own_memory.h"

#include <stddef.h>

#include "runtime/string.h"

/* The runtime's memory lies together (apart.c): of a thousand threads the slots are one piece. What has no
 * room here is not protected. */
enum { PIECES = 4096 };

struct piece {
	uint64_t start, end;
};

static struct copy {
	size_t nr;
	struct piece pieces[PIECES];
} copies[2];

/* Its last bit says which copy is read. */
static uint64_t changes;

uint64_t own_end;

/* The first piece that ends behind @at. One that is changing is no more than wrong. */
static size_t find(const struct copy *copy, uint64_t at)
{
	size_t low = 0, high = __atomic_load_n(&copy->nr, __ATOMIC_RELAXED);

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (__atomic_load_n(&copy->pieces[middle].end, __ATOMIC_RELAXED) > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Replaces @old pieces from the one at @at by @nr others. */
static void replace(struct copy *copy, size_t at, size_t old, const struct piece *with, size_t nr)
{
	if (copy->nr - old + nr > PIECES)
		nr--;
	memmove(&copy->pieces[at + nr], &copy->pieces[at + old],
		(copy->nr - at - old) * sizeof(*with));
	memcpy(&copy->pieces[at], with, nr * sizeof(*with));
	__atomic_store_n(&copy->nr, copy->nr - old + nr, __ATOMIC_RELAXED);
}

static void add(struct copy *copy, uint64_t start, uint64_t end)
{
	/* With what ends where it begins, and up to what begins where it ends. */
	const size_t at = find(copy, start ? start - 1 : 0);
	struct piece all = {start, end};
	size_t behind = at;

	for (; behind < copy->nr && copy->pieces[behind].start <= end; behind++) {
		if (copy->pieces[behind].start < all.start)
			all.start = copy->pieces[behind].start;
		if (copy->pieces[behind].end > all.end)
			all.end = copy->pieces[behind].end;
	}
	replace(copy, at, behind - at, &all, 1);
}

static void take_out(struct copy *copy, uint64_t start, uint64_t end)
{
	const size_t at = find(copy, start);
	struct piece left[2];
	size_t behind = at, nr = 0;

	for (; behind < copy->nr && copy->pieces[behind].start < end; behind++) {
		const struct piece piece = copy->pieces[behind];

		if (piece.start < start)
			left[nr++] = (struct piece){piece.start, start};
		if (piece.end > end)
			left[nr++] = (struct piece){end, piece.end};
	}
	replace(copy, at, behind - at, left, nr);
}

/* From here on the other copy is read, with all that has been done to it. */
static struct copy *change(void)
{
	const uint64_t now = changes + 1;

	__atomic_store_n(&changes, now, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return &copies[~now & 1];
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
		__atomic_store_n(&change()->nr, 0, __ATOMIC_RELAXED);
}

uint64_t own_before(uint64_t start, uint64_t size)
{
	uint64_t before, now;

	do {
		before = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);

		const struct copy *copy = &copies[before & 1];
		const size_t at = find(copy, start);

		now = size;
		if (at < __atomic_load_n(&copy->nr, __ATOMIC_RELAXED)) {
			const uint64_t first =
				__atomic_load_n(&copy->pieces[at].start, __ATOMIC_RELAXED);

			if (first <= start)
				now = 0;
			else if (first - start < size)
				now = first - start;
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&changes, __ATOMIC_RELAXED) != before);
	return now;
}
