// SPDX-License-Identifier: MIT
/* The map against an array that has every page of a small address space. */
#include "runtime/linux/memory_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/lock.h"

/* As if a child of vfork(2) were there: each change is kept until it is made. */
uint32_t lock_children = 1;

#define PAGE   4096UL
#define PAGES  64
#define ROUNDS 20000

struct page {
	bool there, watched;
	uint8_t kind, prot;
	uint64_t inode, offset;
};

static struct page pages[PAGES];

static uint64_t address(unsigned int page)
{
	return (page + 1) * PAGE;
}

/* What the map says of a page has to be what the array says. */
static void expect_page(unsigned int number)
{
	const struct page *page = &pages[number];
	const struct range *range = map_at(address(number));

	if (page->there != (range != NULL))
		fail_msg("page %u is %s", number, range ? "there" : "missing");
	if (!range)
		return;
	assert_int_equal(range->kind, page->kind);
	assert_int_equal(range->prot, page->prot);
	assert_int_equal(range->watched, page->watched);
	if (page->kind != RANGE_SHARED)
		return;
	assert_int_equal(range->inode, page->inode);
	assert_int_equal(range->offset + (address(number) - range->start), page->offset);
}

static void expect_all(void)
{
	uint64_t end = 0;

	for (unsigned int i = 0; i < PAGES; i++)
		expect_page(i);
	for (const struct range *r = map_from(0); r; r = map_next(r)) {
		assert_true(r->start < r->end);
		assert_true(r->start >= end);
		end = r->end;
	}
}

static bool any_code(unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		if (pages[i].there && pages[i].prot & PROT_EXEC)
			return true;
	return false;
}

static void clear(unsigned int from, unsigned int to)
{
	assert_int_equal(map_remove(address(from), address(to)), any_code(from, to));
	memset(&pages[from], 0, (to - from) * sizeof(*pages));
}

static void add(unsigned int from, unsigned int to)
{
	struct range range = {
		.start = address(from),
		.end = address(to),
		.kind = (uint8_t)(rand() % 3),
		.inode = (uint64_t)rand() % 2,
		.offset = (uint64_t)(rand() % 4) * PAGE,
	};

	range.prot = range.kind == RANGE_OWN	   ? 0
		     : range.kind == RANGE_PRIVATE ? PROT_EXEC | rand() % 4
						   : rand() % 8;
	clear(from, to);
	map_add(&range);
	for (unsigned int i = from; i < to; i++)
		pages[i] = (struct page){true,	     false,	  range.kind,
					 range.prot, range.inode, range.offset + (i - from) * PAGE};
}

static bool any_own(unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		if (pages[i].there && pages[i].kind == RANGE_OWN)
			return true;
	return false;
}

static void protect(unsigned int from, unsigned int to)
{
	unsigned int prot = (unsigned int)rand() % 8;

	assert_int_equal(map_has_own(address(from), address(to)), any_own(from, to));
	if (any_own(from, to))
		return;
	assert_int_equal(map_protect(address(from), address(to), prot), any_code(from, to));
	for (unsigned int i = from; i < to; i++) {
		pages[i].watched = false;
		pages[i].prot = (uint8_t)prot;
		if (!pages[i].there)
			pages[i] = (struct page){prot & PROT_EXEC, false, RANGE_PRIVATE,
						 (uint8_t)prot,	   0,	  0};
		else if (pages[i].kind == RANGE_PRIVATE)
			pages[i].there = prot & PROT_EXEC;
	}
}

static void watch(unsigned int from, unsigned int to)
{
	bool watched = rand() % 2;

	for (struct range *r = map_cut(address(from), address(to)); r && r->start < address(to);
	     r = map_next(r))
		r->watched = watched;
	map_join(address(from), address(to));
	for (unsigned int i = from; i < to; i++)
		pages[i].watched = pages[i].there && watched;
}

static void test_random_changes(void **state)
{
	const char *given = getenv("SEED");
	unsigned int seed = given ? (unsigned int)atoi(given) : 1;

	(void)state;
	printf("# SEED=%u\n", seed);
	srand(seed);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned int from = (unsigned int)rand() % PAGES;
		unsigned int to = from + 1 + (unsigned int)rand() % (PAGES - from);

		if (to - from > 16)
			to = from + 16;
		switch (rand() % 4) {
		case 0:
			clear(from, to);
			break;
		case 1:
			add(from, to);
			break;
		case 2:
			protect(from, to);
			break;
		case 3:
			watch(from, to);
		}
		expect_all();
	}
	clear(0, PAGES);
	assert_null(map_from(0));
}

static unsigned int count(void)
{
	unsigned int nr = 0;

	for (const struct range *r = map_from(0); r; r = map_next(r))
		nr++;
	return nr;
}

static void test_what_belongs_together_is_one_range(void **state)
{
	struct range range = {PAGE, 2 * PAGE, .prot = PROT_EXEC | PROT_READ};

	(void)state;
	map_add(&range);
	map_protect(2 * PAGE, 5 * PAGE, PROT_EXEC | PROT_READ);
	assert_int_equal(count(), 1);
	map_protect(2 * PAGE, 3 * PAGE, PROT_EXEC | PROT_READ | PROT_WRITE);
	assert_int_equal(count(), 3);
	map_protect(2 * PAGE, 3 * PAGE, PROT_EXEC | PROT_READ);
	assert_int_equal(count(), 1);
	assert_int_equal(map_at(4 * PAGE)->start, PAGE);
	map_remove(0, 8 * PAGE);
}

static void test_a_file_mapped_twice_in_a_row_is_one_range_if_its_offsets_follow(void **state)
{
	struct range first = {PAGE, 2 * PAGE, 1, 2, 0, RANGE_SHARED, PROT_READ, false};
	struct range next = {2 * PAGE, 3 * PAGE, 1, 2, PAGE, RANGE_SHARED, PROT_READ, false};
	struct range other = {3 * PAGE, 4 * PAGE, 1, 2, 0, RANGE_SHARED, PROT_READ, false};

	(void)state;
	map_add(&first);
	map_add(&next);
	assert_int_equal(count(), 1);
	map_add(&other);
	assert_int_equal(count(), 2);
	map_remove(0, 8 * PAGE);
}

static void test_there_is_an_end_to_it(void **state)
{
	struct range range = {.prot = PROT_EXEC};
	unsigned int nr = 0;

	(void)state;
	for (; map_has_room(); nr++) {
		range.start = (2UL * nr + 1) * PAGE;
		range.end = range.start + PAGE;
		map_add(&range);
	}
	assert_true(nr > 30000);
	assert_int_equal(count(), nr);
	map_remove(0, 1UL << 47);
	assert_true(map_has_room());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_changes),
		cmocka_unit_test(test_what_belongs_together_is_one_range),
		cmocka_unit_test(
			test_a_file_mapped_twice_in_a_row_is_one_range_if_its_offsets_follow),
		cmocka_unit_test(test_there_is_an_end_to_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
