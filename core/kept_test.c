// SPDX-License-Identifier: MIT
/* What is noted of the kernel's events that count for ours. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/test_tree.h"

static uint64_t name_of(uint32_t event)
{
	return core_name(event, core_event(event)->generation);
}

static void what_is_there_is_noted(void **state)
{
	const struct perf_event_attr attr = test_attr(PERF_TYPE_TRACEPOINT, 0);
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const uint64_t name = name_of(event);
	uint32_t refreshed = 1;
	bool on = false;

	(void)state;
	core_kept_begins(name, false, true);
	assert_false(core_event(event)->kept_on);
	assert_true(core_event(event)->kept_on_exec);
	assert_true(core_kept_follow(name, &on, &refreshed));
	assert_true(on);
	assert_int_equal(refreshed, 0);
	assert_true(core_event(event)->kept_on);
	core_kept_counted(name, 5);
	assert_int_equal(core_event(event)->kept, 5);
	core_kept_answer(name, -ENOSPC);
	assert_int_equal(core_kept_answered(name), -ENOSPC);
	core_kept_ended(name);
	assert_true(core_event(event)->kept_ended);
	tree_exit();
	assert_false(core_kept_follow(name, &on, &refreshed));
}

/* Who closes it does not wait for who is about to note something. */
static void nothing_is_noted_of_who_has_the_slot_next(void **state)
{
	const struct perf_event_attr kept = test_attr(PERF_TYPE_TRACEPOINT, 0);
	const struct perf_event_attr attr = test_instructions();
	const uint32_t closed = tree_open(&kept, fake.task, -1, 0);
	const uint64_t name = name_of(closed);
	const struct core_event *event = core_event(closed);
	uint32_t refreshed;
	bool on;

	(void)state;
	tree_close(closed);
	assert_int_equal(tree_open(&attr, fake.task, -1, 0), closed);
	core_kept_begins(name, true, true);
	assert_false(core_kept_follow(name, &on, &refreshed));
	core_kept_counted(name, 5);
	core_kept_answer(name, -ENOSPC);
	core_kept_ended(name);
	assert_false(event->kept_on);
	assert_false(event->kept_on_exec);
	assert_false(event->kept_ended);
	assert_int_equal(event->answer, 0);
	assert_int_equal(core_kept_answered(name), -EBADF);
	assert_int_equal(tree_value(closed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(what_is_there_is_noted),
		TREE_CASE(nothing_is_noted_of_who_has_the_slot_next),
	};

	return cmocka_run_group_tests_name("core: what the kernel counts", tests, NULL, NULL);
}
