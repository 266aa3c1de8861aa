// SPDX-License-Identifier: MIT
/*
 * Events that are opened, used and closed by several threads at once, by names that may be old: a
 * call with one finds that event or none. Whose name is held finds what it left.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/test_tree.h"

enum { MEDDLERS = 2, ROUNDS = 3000, NAMES = 4, FIRST = 10 };

static uint64_t names[NAMES]; /* that somebody has or had */
static bool enough;

static uint64_t name_of(uint32_t event)
{
	return core_name(event, core_event(event)->generation);
}

static void is_one_of(int64_t result, int64_t good)
{
	if (result != good)
		assert_int_equal(result, -EBADF);
}

static void meddle_with(uint64_t name)
{
	struct test_count count;

	is_one_of(core_enable(name, false), 0);
	is_one_of(core_disable(name, true), 0);
	is_one_of(core_reset(name, true), 0);
	is_one_of(core_read(name, &count, sizeof(count)), sizeof(count));
	core_event_id(name);
	core_poll(name);
}

static void *meddle(void *page)
{
	fake.tsc = 1000000;
	fake.tid = 2000 + (int32_t)(uintptr_t)page;
	for (unsigned int i = 0; !__atomic_load_n(&enough, __ATOMIC_ACQUIRE); i++) {
		uint64_t name = __atomic_load_n(&names[i % NAMES], __ATOMIC_ACQUIRE);

		if (name)
			meddle_with(name);
		sched_yield();
	}
	return NULL;
}

/* Disabled, and known to nobody: whatever is done by old names, it has not been enabled. */
static void open_and_close(unsigned int i)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t known, unknown;

	attr.disabled = 1;
	attr.inherit = i % 2;
	known = tree_open(&attr, fake.task, -1, 0);
	__atomic_store_n(&names[i % NAMES], name_of(known), __ATOMIC_RELEASE);
	sched_yield();
	tree_close(known);
	unknown = tree_open(&attr, fake.task, -1, 0);
	sched_yield();
	tree_work(10);
	assert_int_equal(tree_value(unknown), 0);
	tree_close(unknown);
}

static void old_names_are_nobodys(void **state)
{
	pthread_t threads[MEDDLERS];

	(void)state;
	__atomic_store_n(&enough, false, __ATOMIC_RELEASE);
	for (uintptr_t i = 0; i < MEDDLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, meddle, (void *)(FIRST + i)), 0);
	for (unsigned int i = 0; i < ROUNDS; i++)
		open_and_close(i);
	__atomic_store_n(&enough, true, __ATOMIC_RELEASE);
	for (int i = 0; i < MEDDLERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(core_nr_events(), 0);
}

/* One after the other. */
static void a_closed_event_is_none(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event = tree_open(&attr, fake.task, -1, 0), next;
	uint64_t name = name_of(event), words[4];

	(void)state;
	tree_close(event);
	assert_int_equal(core_enable(name, false), -EBADF);
	attr.disabled = 1;
	next = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(next, event); /* in its place */
	assert_int_equal(core_enable(name, false), -EBADF);
	assert_int_equal(core_refresh(name, 1), -EBADF);
	assert_int_equal(core_set_period(name, 1), -EBADF);
	assert_int_equal(core_set_output(name, 0), -EBADF);
	assert_int_equal(core_modify(name, &attr), -EBADF);
	assert_int_equal(core_read(name, words, sizeof(words)), -EBADF);
	assert_int_equal(core_event_id(name), 0);
	assert_int_equal(core_event(next)->state, CORE_OFF);
	assert_int_equal(core_enable(name_of(next), false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
		CASE(a_closed_event_is_none),
		CASE(old_names_are_nobodys),
	};

	return cmocka_run_group_tests_name("core/close-race", tests, NULL, NULL);
}
