// SPDX-License-Identifier: MIT
/* Whose numbers records have, where tasks are in other name spaces than who opened the event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/numbers.h"
#include "core/test_tree.h"

enum { FIRST = 4026531836, INNER, OTHER };

/* Page 1 is where the run began, as 1001; page 2, its child, is process 1 of another name space,
 * and 1002 to page 1; page 3, a child of that, is 2 there. */
static int setup(void **state)
{
	struct core_task *init, *child;

	tree_setup(state);
	((struct core_settings *)core_settings())->name_space = FIRST;
	fake.task->name_space = FIRST;
	fake.task->pid = fake.task->tid = 1001;
	init = tree_clone(2, 0);
	init->name_space = INNER;
	init->pid = init->tid = 1;
	init->ppid = 0;
	init->first_pid = init->first_tid = 1002;
	tree_run(2);
	child = tree_clone(3, 0);
	child->name_space = INNER;
	child->pid = child->tid = 2;
	child->ppid = 1;
	child->first_pid = 1003;
	child->first_tid = 1004;
	tree_run(1);
	return 0;
}

/* As who is at @page opens it, for himself. */
static const struct core_event *opened_at(uint32_t page)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event;

	tree_run(page);
	event = tree_open(&attr, fake.task, -1, 0);
	return core_event(event);
}

static void numbers_are(const struct core_event *event, uint32_t page, int32_t pid, int32_t tid)
{
	const struct core_numbers numbers = core_numbers(event, core_task(page));

	assert_int_equal(numbers.pid, pid);
	assert_int_equal(numbers.tid, tid);
}

static void parent_is(const struct core_event *event, uint32_t page, int32_t pid)
{
	const struct core_numbers parent = core_parent_numbers(event, core_task(page));

	assert_int_equal(parent.pid, pid);
	assert_int_equal(parent.tid, pid);
}

static void from_where_the_run_began(void **state)
{
	const struct core_event *event = opened_at(1);

	(void)state;
	numbers_are(event, 1, 1001, 1001);
	numbers_are(event, 2, 1002, 1002);
	numbers_are(event, 3, 1003, 1004);
	parent_is(event, 2, 1001);
	parent_is(event, 3, 1002);
}

static void from_within(void **state)
{
	const struct core_event *event = opened_at(2);

	(void)state;
	numbers_are(event, 1, 0, 0);
	numbers_are(event, 2, 1, 1);
	numbers_are(event, 3, 2, 2);
	parent_is(event, 2, 0);
	parent_is(event, 3, 1);
}

/* The monitor is not there to say: better one's own than none. */
static void not_known(void **state)
{
	const struct core_event *event = opened_at(1);

	(void)state;
	core_task(3)->first_pid = core_task(3)->first_tid = 0;
	numbers_are(event, 3, 2, 2);
	core_task(3)->name_space = OTHER;
	numbers_are(event, 3, 2, 2);
	((struct core_settings *)core_settings())->name_space = 0;
	numbers_are(event, 2, 1, 1);
}

/* Its parent has ended: whose child it is now has a number in there alone. */
static void of_an_orphan(void **state)
{
	const struct core_event *event = opened_at(1);

	(void)state;
	core_task(3)->ppid = 7;
	parent_is(event, 3, 0);
	parent_is(opened_at(2), 3, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(from_where_the_run_began, setup, tree_teardown),
		cmocka_unit_test_setup_teardown(from_within, setup, tree_teardown),
		cmocka_unit_test_setup_teardown(not_known, setup, tree_teardown),
		cmocka_unit_test_setup_teardown(of_an_orphan, setup, tree_teardown),
	};

	return cmocka_run_group_tests_name("core/numbers", tests, NULL, NULL);
}
