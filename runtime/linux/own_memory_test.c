// SPDX-License-Identifier: MIT
/* Where the runtime's memory is, against an array of pages, and while it changes. */
#include "runtime/linux/own_memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE   4096UL
#define PAGES  64
#define ROUNDS 20000

static uint64_t address(unsigned int page)
{
	return (page + 1) * PAGE;
}

static bool pages[PAGES];

static uint64_t expected(uint64_t start, uint64_t size)
{
	for (unsigned int i = 0; i < PAGES; i++) {
		if (!pages[i] || address(i) + PAGE <= start)
			continue;
		if (address(i) <= start)
			return 0;
		return address(i) - start < size ? address(i) - start : size;
	}
	return size;
}

static void expect_at(uint64_t start, uint64_t size)
{
	assert_int_equal(own_before(start, size), expected(start, size));
	assert_int_equal(own_has(start, size), expected(start, size) < size);
}

static void answers_like_an_array(void **state)
{
	(void)state;
	srand(1);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		const unsigned int from = (unsigned int)rand() % PAGES;
		const unsigned int to = from + 1 + (unsigned int)rand() % (PAGES - from);
		const bool adds = rand() % 3 == 0;

		for (unsigned int i = from; i < to; i++)
			pages[i] = adds;
		if (adds)
			own_add(address(from), address(to));
		else
			own_remove(address(from), address(to));
		for (unsigned int i = 0; i < PAGES; i++) {
			expect_at(address(i), 0);
			expect_at(address(i), 1);
			expect_at(address(i) - 1, 1);
			expect_at(address(i) - 1, 2);
			expect_at(address(i) + PAGE - 1, 1);
			expect_at(address(i), (uint64_t)rand() % (8 * PAGE));
		}
	}
	own_remove(0, UINT64_MAX);
}

static void has_nothing_elsewhere(void **state)
{
	(void)state;
	own_add(address(1), address(2));
	assert_false(own_has(0, address(1)));
	assert_true(own_has(0, address(1) + 1));
	assert_true(own_has(address(0), UINT64_MAX));
	assert_true(own_has(address(2) - 1, UINT64_MAX));
	assert_false(own_has(address(2), UINT64_MAX));
	assert_false(own_has(UINT64_MAX, UINT64_MAX));
	own_remove(0, UINT64_MAX);
	assert_false(own_has(address(1), 1));
}

/* More pieces than there is room for: what has been told of is there, and what was taken out is
 * not. */
static void forgets_what_has_no_room(void **state)
{
	enum { MANY = 5000 };

	(void)state;
	for (unsigned int i = 0; i < MANY; i++)
		own_add(address(2 * i), address(2 * i + 1));
	assert_true(own_has(address(0), 1));
	assert_true(own_has(address(2000), 1));
	own_add(address(0), address(1000));
	assert_true(own_has(address(999), 1));
	for (unsigned int i = 0; i < MANY; i++)
		own_add(address(2 * i), address(2 * i + 1));
	own_remove(address(500), address(501));
	assert_false(own_has(address(500), 1));
	own_remove(0, UINT64_MAX);
	assert_false(own_has(0, UINT64_MAX));
}

static bool ended;

/* What never changes is found at all times, with others that come and go before and behind. */
static void *ask(void *unused)
{
	uint64_t wrong = 0;

	(void)unused;
	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		wrong += own_before(address(20), PAGE) != 0;
		wrong += own_before(address(21), PAGE) != PAGE;
		wrong += own_before(address(19), 2 * PAGE) != PAGE;
	}
	return (void *)wrong;
}

static void is_asked_meanwhile(void **state)
{
	enum { THREADS = 2, TIMES = 200000 };
	pthread_t threads[THREADS];
	void *wrong;

	(void)state;
	own_add(address(20), address(21));
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, NULL), 0);
	for (unsigned int i = 0; i < TIMES; i++) {
		const unsigned int at = i % 17, behind = 23 + i % 13;

		own_add(address(at), address(at + 1));
		own_add(address(behind), address(behind + 2));
		if (i % 3)
			own_remove(address(at), address(at + 2));
		own_remove(address(behind + 1), address(behind + 4));
	}
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	own_remove(0, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_like_an_array),
		cmocka_unit_test(has_nothing_elsewhere),
		cmocka_unit_test(forgets_what_has_no_room),
		cmocka_unit_test(is_asked_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
