// SPDX-License-Identifier: MIT
#include "core/watched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/test_tree.h"

static struct core_watched watched_of(uint32_t event, uint64_t data)
{
	return (struct core_watched){
		.event = core_name(event, core_event(event)->generation),
		.data = data,
		.wanted = 1,
		.fd = 5,
	};
}

static uint32_t open_one(void)
{
	const struct perf_event_attr attr = test_instructions();

	return tree_open(&attr, fake.task, -1, 0);
}

static void test_words(void **state)
{
	struct core_watched one = watched_of(open_one(), 3), other = one, found;
	uint64_t word;

	(void)state;
	other.data = 4;
	word = core_watch(&one);
	assert_int_not_equal(word, 0);
	assert_int_equal(core_watch(&one), word);
	assert_int_not_equal(core_watch(&other), word);
	assert_true(core_watched(word, &found));
	assert_int_equal(found.event, one.event);
	assert_int_equal(found.data, 3);
	assert_int_equal(found.wanted, 1);
	assert_int_equal(found.fd, 5);
	for (uint64_t data = 0; data < 100; data++)
		assert_false(core_watched(data, &found));
}

/* A word is nothing any more when its event is closed, also when its place is taken again. */
static void test_closed(void **state)
{
	const uint32_t event = open_one();
	const struct core_watched one = watched_of(event, 3);
	const uint64_t word = core_watch(&one);
	struct core_watched found;

	(void)state;
	tree_close(event);
	assert_false(core_watched(word, &found));
	for (int i = 0; i < 2 * CORE_WATCHED; i++) {
		const uint32_t next = open_one();
		const struct core_watched again = watched_of(next, 3);
		const uint64_t its = core_watch(&again);

		assert_int_not_equal(its, 0);
		assert_int_not_equal(its, word);
		assert_true(core_watched(its, &found));
		assert_false(core_watched(word, &found));
		tree_close(next);
	}
}

/* Of all the words of one event there is an end. */
static void test_full(void **state)
{
	struct core_watched one = watched_of(open_one(), 0);

	(void)state;
	while (core_watch(&one))
		one.data++;
	assert_in_range(one.data, CORE_WATCHED / 2, CORE_WATCHED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(test_words),
		TREE_CASE(test_closed),
		TREE_CASE(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
