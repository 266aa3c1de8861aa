// SPDX-License-Identifier: MIT
/* Tasks whose events are read and switched from elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/still.h"
#include "core/test_tree.h"

enum { OTHER_PAGE = 2, IN_REGISTERS = 100 };

/* What a thread has in registers is stored as it comes out. */
static void come_out(struct core_task *task)
{
	task->counter[CORE_INSTRUCTIONS] += IN_REGISTERS;
	core_task_followed(task);
}

static struct core_task *another(void)
{
	struct core_task *task = tree_clone(OTHER_PAGE, 0);

	fake.comes_out = come_out;
	return task;
}

static uint32_t of_another(uint32_t group)
{
	struct perf_event_attr attr = test_instructions();

	attr.read_format |= PERF_FORMAT_GROUP;
	return tree_open(&attr, core_task(OTHER_PAGE), -1, group);
}

static uint64_t read_first(uint32_t event)
{
	uint64_t words[32];

	assert_true(core_read(event, words, sizeof(words)) > 0);
	return words[3];
}

static void what_is_in_registers_is_counted_where_it_belongs(void **state)
{
	uint32_t event;

	(void)state;
	another();
	event = of_another(0);
	assert_int_equal(read_first(event), IN_REGISTERS);
	core_disable(event, false);
	assert_int_equal(read_first(event), 2 * IN_REGISTERS);
	core_enable(event, true);
	assert_int_equal(read_first(event), 3 * IN_REGISTERS);
	core_reset(event, false);
	assert_int_equal(read_first(event), IN_REGISTERS);
}

static void a_group_is_read_at_one_place(void **state)
{
	uint64_t words[32];
	uint32_t leader;

	(void)state;
	another();
	leader = of_another(0);
	of_another(leader);
	assert_int_equal(core_read(leader, words, sizeof(words)), (3 + 2 * 3) * 8);
	assert_int_equal(words[3], 2 * IN_REGISTERS); /* the other one was opened meanwhile */
	assert_int_equal(words[6], IN_REGISTERS);
}

static void copies_are_held_still_too(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event;

	(void)state;
	attr.inherit = 1;
	event = tree_open(&attr, fake.task, -1, 0);
	another();
	assert_int_equal(tree_value(event), IN_REGISTERS);
	core_disable(event, false);
	assert_int_equal(tree_value(event), 2 * IN_REGISTERS);
}

/* By who is waited for in vain it is known that nothing has been executed since. */
static void who_has_no_processor_is_asked_once(void **state)
{
	struct core_task *task = another();
	uint32_t event = of_another(0);
	const size_t before = fake.stills.nr;

	(void)state;
	fake.comes_out = NULL;
	read_first(event);
	read_first(event);
	core_disable(event, false);
	assert_int_equal(fake.stills.nr, before + 1);
	core_task_followed(task);
	read_first(event);
	assert_int_equal(fake.stills.nr, before + 2);
}

static void nobody_waits_for_himself(void **state)
{
	const struct perf_event_attr attr = test_instructions();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);

	(void)state;
	tree_value(event);
	core_disable(event, false);
	core_enable(event, false);
	core_reset(event, false);
	assert_int_equal(fake.stills.nr, 0);
}

/* Who held it may have been killed. */
static void a_task_is_held_until_the_lock_is_given_back(void **state)
{
	(void)state;
	fake.task->still = true;
	core_task_change(fake.task);
	core_task_update(fake.task);
	assert_false(fake.task->still);
	assert_int_equal(fake.task->lock, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(what_is_in_registers_is_counted_where_it_belongs),
		TREE_CASE(a_group_is_read_at_one_place),
		TREE_CASE(copies_are_held_still_too),
		TREE_CASE(who_has_no_processor_is_asked_once),
		TREE_CASE(nobody_waits_for_himself),
		TREE_CASE(a_task_is_held_until_the_lock_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
