// SPDX-License-Identifier: MIT
#include "runtime/linux/memory_map.h"

#include <asm/mman.h>
#include <linux/mman.h>

#include "runtime/linux/memory.h"
#include "runtime/linux/own_memory.h"
#include "runtime/lock.h"
#include "runtime/string.h"

static _Alignas(PAGE) struct range ranges[MAP_RANGES_MAX];
static size_t nr_ranges;
static uint64_t changes;

/* The first range that ends behind @at. */
static size_t find(uint64_t at)
{
	size_t low = 0, high = nr_ranges;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (ranges[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * All as it was before the change that is being made, while a child of vfork(2) is there: it
 * changes its parent's map, and may be killed in the middle of moving it.
 */
static _Alignas(PAGE) struct range before_ranges[MAP_RANGES_MAX];

static struct {
	bool holds;
	size_t nr;
} before;

static void begin_moving(void)
{
	if (!lock_is_noted())
		return;
	memcpy(before_ranges, ranges, nr_ranges * sizeof(*ranges));
	before.nr = nr_ranges;
	__atomic_store_n(&before.holds, true, __ATOMIC_RELEASE);
}

static void end_moving(void)
{
	__atomic_store_n(&before.holds, false, __ATOMIC_RELEASE);
}

static void insert(size_t at, const struct range *range)
{
	begin_moving();
	memmove(&ranges[at + 1], &ranges[at], (nr_ranges - at) * sizeof(*ranges));
	ranges[at] = *range;
	nr_ranges++;
	end_moving();
}

static void delete (size_t from, size_t to)
{
	begin_moving();
	memmove(&ranges[from], &ranges[to], (nr_ranges - to) * sizeof(*ranges));
	nr_ranges -= to - from;
	end_moving();
}

void map_interrupted(void)
{
	if (before.holds) {
		memcpy(ranges, before_ranges, before.nr * sizeof(*ranges));
		nr_ranges = before.nr;
		before.holds = false;
	}
	own_clear();
	for (size_t i = 0; i < nr_ranges; i++)
		if (ranges[i].kind == RANGE_OWN)
			own_add(ranges[i].start, ranges[i].end);
}

/* Makes a border of two ranges of the one that has @at inside. */
static void split(uint64_t at)
{
	size_t i = find(at);
	struct range tail;

	if (i == nr_ranges || ranges[i].start >= at)
		return;
	tail = ranges[i];
	tail.start = at;
	tail.offset += at - ranges[i].start;
	/* In this order: nothing is missing in between. */
	insert(i + 1, &tail);
	ranges[i].end = at;
}

static bool is_of_file(const struct range *range)
{
	return range->kind == RANGE_SHARED || range->inode || range->file;
}

static bool continues(const struct range *a, const struct range *b)
{
	return a->end == b->start && a->kind == b->kind && a->prot == b->prot &&
	       a->watched == b->watched && a->device == b->device && a->inode == b->inode &&
	       a->file == b->file &&
	       (!is_of_file(a) || a->offset + (a->end - a->start) == b->offset);
}

/* Joins what need not be apart, from the range before @start to the one behind @end: the end of
 * each change but of those that remove. */
static void join(uint64_t start, uint64_t end)
{
	size_t i = find(start);

	__atomic_store_n(&changes, changes + 1, __ATOMIC_RELAXED);
	if (i)
		i--;
	while (i + 1 < nr_ranges && ranges[i].start <= end)
		if (continues(&ranges[i], &ranges[i + 1])) {
			ranges[i].end = ranges[i + 1].end;
			delete (i + 1, i + 2);
		} else {
			i++;
		}
}

struct range *map_at(uint64_t at)
{
	struct range *range = map_from(at);

	return range && range->start <= at ? range : NULL;
}

struct range *map_from(uint64_t at)
{
	size_t i = find(at);

	return i < nr_ranges ? &ranges[i] : NULL;
}

struct range *map_next(const struct range *range)
{
	size_t i = (size_t)(range - ranges) + 1;

	return i < nr_ranges ? &ranges[i] : NULL;
}

struct range *map_cut(uint64_t start, uint64_t end)
{
	split(start);
	split(end);
	return map_from(start);
}

struct map_place map_place(void)
{
	return (struct map_place){ranges, &nr_ranges, &changes};
}

bool map_next_piece(uint64_t *at, uint64_t end, uint64_t *to)
{
	for (const struct range *r = map_from(*at); r && r->start < end; r = map_next(r)) {
		if (r->kind != RANGE_OWN)
			continue;
		*to = r->start;
		if (r->start > *at)
			return true;
		*at = r->end;
	}
	*to = end;
	return *at < end;
}

bool map_has(uint64_t start, uint64_t end)
{
	struct range *range = map_from(start);

	return range && range->start < end;
}

bool map_has_own(uint64_t start, uint64_t end)
{
	for (struct range *r = map_from(start); r && r->start < end; r = map_next(r))
		if (r->kind == RANGE_OWN)
			return true;
	return false;
}

/* What one operation adds to the number of ranges at most: a border at each end, one in between. */
bool map_has_room(void)
{
	return nr_ranges + 8 <= MAP_RANGES_MAX;
}

bool map_remove(uint64_t start, uint64_t end)
{
	bool code = false, own = false;
	size_t from, to;

	if (!map_has(start, end))
		return false;
	split(start);
	split(end);
	from = to = find(start);
	for (; to < nr_ranges && ranges[to].start < end; to++) {
		code |= ranges[to].prot & PROT_EXEC;
		own |= ranges[to].kind == RANGE_OWN;
	}
	delete (from, to);
	__atomic_store_n(&changes, changes + 1, __ATOMIC_RELAXED);
	if (own)
		own_remove(start, end);
	return code;
}

void map_add(const struct range *range)
{
	insert(find(range->start), range);
	join(range->start, range->end);
	if (range->kind == RANGE_OWN)
		own_add(range->start, range->end);
}

/* Private memory between the ranges that became executable. */
static void fill_gaps(uint64_t start, uint64_t end, unsigned int prot)
{
	while (start < end) {
		size_t i = find(start);
		struct range gap = {start, end, .kind = RANGE_PRIVATE, .prot = (uint8_t)prot};

		if (i < nr_ranges && ranges[i].start < end)
			gap.end = ranges[i].start;
		if (gap.start < gap.end) {
			insert(i, &gap);
			i++;
		}
		start = i < nr_ranges && ranges[i].start < end ? ranges[i].end : end;
	}
}

bool map_protect(uint64_t start, uint64_t end, unsigned int prot)
{
	bool code = false;
	size_t i;

	split(start);
	split(end);
	for (i = find(start); i < nr_ranges && ranges[i].start < end;) {
		struct range *range = &ranges[i];

		code |= range->prot & PROT_EXEC;
		range->prot = (uint8_t)prot;
		range->watched = false;
		if (prot & PROT_WRITE)
			range->file = 0;
		if (range->kind == RANGE_PRIVATE && !(prot & PROT_EXEC))
			delete (i, i + 1);
		else
			i++;
	}
	if (prot & PROT_EXEC)
		fill_gaps(start, end, prot);
	join(start, end);
	return code;
}

void map_join(uint64_t start, uint64_t end)
{
	join(start, end);
}
