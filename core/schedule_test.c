// SPDX-License-Identifier: MIT
/* Counters that do not suffice. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/schedule.h"
#include "core/test_tree.h"

static enum core_state state_of(uint32_t event)
{
	return (enum core_state)core_event(event)->state;
}

static uint32_t hardware(uint64_t config, uint32_t group)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_HARDWARE, config);

	return tree_open(&attr, fake.task, -1, group);
}

static void groups_take_turns(void **state)
{
	uint32_t events[6];
	struct test_count count;

	(void)state;
	for (unsigned int i = 0; i < 6; i++)
		events[i] = hardware(PERF_COUNT_HW_INSTRUCTIONS, 0);
	assert_true(core_crowded());
	assert_int_equal(fake.crowds, 1);
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(state_of(events[i]), i < 2 ? CORE_ACTIVE : CORE_INACTIVE);
	for (unsigned int tick = 0; tick < 60; tick++) {
		tree_work(10);
		tree_rotate();
	}
	for (unsigned int i = 0; i < 6; i++) {
		count = tree_read(events[i]);
		assert_int_equal(count.enabled, 600000);
		assert_int_equal(count.running, 200000);
		assert_int_equal(count.value, 200);
	}
	for (unsigned int i = 2; i < 6; i++)
		tree_close(events[i]);
	tree_rotate();
	assert_false(core_crowded());
	assert_int_equal(state_of(events[0]), CORE_ACTIVE);
	assert_int_equal(state_of(events[1]), CORE_ACTIVE);
	assert_int_equal(fake.crowds, 1);
	hardware(PERF_COUNT_HW_INSTRUCTIONS, 0);
	assert_int_equal(fake.crowds, 2);
}

static void code_counts_for_those_who_wait(void **state)
{
	const uint64_t instructions = CORE_KIND_BIT(CORE_INSTRUCTIONS),
		       branches = CORE_KIND_BIT(CORE_BRANCHES), cycles = CORE_KIND_BIT(CORE_CYCLES);
	uint32_t first = hardware(PERF_COUNT_HW_INSTRUCTIONS, 0);

	(void)state;
	hardware(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0);
	assert_int_equal(fake.task->wanted, instructions | branches);
	assert_int_equal(state_of(hardware(PERF_COUNT_HW_CPU_CYCLES, 0)), CORE_INACTIVE);
	assert_int_equal(fake.task->wanted, instructions | branches | cycles);
	tree_rotate();
	assert_int_equal(state_of(first), CORE_INACTIVE);
	assert_int_equal(fake.task->wanted, instructions | branches | cycles);
	assert_int_equal(core_disable(first, false), 0);
	assert_int_equal(fake.task->wanted, branches | cycles);
}

static void a_group_counts_as_a_whole(void **state)
{
	uint32_t one = hardware(PERF_COUNT_HW_INSTRUCTIONS, 0),
		 pair = hardware(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0),
		 other = hardware(PERF_COUNT_HW_INSTRUCTIONS, pair), software;
	struct perf_event_attr attr = test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);

	(void)state;
	assert_int_equal(state_of(one), CORE_ACTIVE);
	assert_int_equal(state_of(pair), CORE_INACTIVE);
	assert_int_equal(state_of(other), CORE_INACTIVE);
	tree_rotate();
	assert_int_equal(state_of(one), CORE_INACTIVE);
	assert_int_equal(state_of(pair), CORE_ACTIVE);
	assert_int_equal(state_of(other), CORE_ACTIVE);
	/* software needs no counter; a third one no group can have */
	software = tree_open(&attr, fake.task, -1, pair);
	assert_int_equal(state_of(software), CORE_ACTIVE);
	attr = test_instructions();
	assert_int_equal(tree_refused(&attr, fake.task, -1, pair), EINVAL);
	core_disable(pair, false);
	assert_int_equal(state_of(one), CORE_ACTIVE);
}

static void pinned_is_always_there_or_fails(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t first, second, third, shared = hardware(PERF_COUNT_HW_INSTRUCTIONS, 0);
	uint64_t words[8];

	(void)state;
	attr.pinned = 1;
	first = tree_open(&attr, fake.task, -1, 0);
	second = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(state_of(shared), CORE_INACTIVE);
	third = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(state_of(third), CORE_ERROR);
	assert_int_equal(core_read(third, words, sizeof(words)), 0);
	tree_rotate();
	assert_int_equal(state_of(first), CORE_ACTIVE);
	assert_int_equal(state_of(second), CORE_ACTIVE);
	core_disable(third, false);
	assert_int_equal(state_of(third), CORE_OFF);
	assert_int_equal(core_read(third, words, sizeof(words)), 40);
	tree_close(first);
	assert_int_equal(state_of(shared), CORE_ACTIVE);
	core_enable(third, false);
	assert_int_equal(state_of(third), CORE_ACTIVE);
	assert_int_equal(state_of(shared), CORE_INACTIVE);
	assert_int_equal(tree_refused(&attr, fake.task, -1, second), EINVAL);
}

static void exclusive_is_alone(void **state)
{
	struct perf_event_attr attr = test_instructions(), software;
	uint32_t alone, other = hardware(PERF_COUNT_HW_INSTRUCTIONS, 0), clock;

	(void)state;
	software = test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	attr.exclusive = 1;
	alone = tree_open(&attr, fake.task, -1, 0);
	clock = tree_open(&software, fake.task, -1, 0);
	assert_int_equal(state_of(alone), CORE_INACTIVE);
	assert_int_equal(state_of(clock), CORE_ACTIVE);
	tree_rotate();
	assert_int_equal(state_of(alone), CORE_ACTIVE);
	assert_int_equal(state_of(other), CORE_INACTIVE);
	assert_int_equal(state_of(clock), CORE_ACTIVE);
	core_disable(alone, false);
	assert_int_equal(state_of(other), CORE_ACTIVE);
	assert_int_equal(tree_refused(&attr, fake.task, -1, other), EINVAL);
}

static void the_processors_events_come_first(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t task = hardware(PERF_COUNT_HW_INSTRUCTIONS, 0), of_all[3];

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		of_all[i] = tree_open(&attr, NULL, 0, 0);
	assert_int_equal(state_of(task), CORE_INACTIVE);
	for (unsigned int tick = 0; tick < 30; tick++) {
		tree_work(10);
		tree_rotate();
	}
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(tree_read(of_all[i]).running, 200000);
		assert_int_equal(tree_value(of_all[i]), 200);
		tree_close(of_all[i]);
	}
	assert_int_equal(state_of(task), CORE_ACTIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE_TWO_COUNTERS(groups_take_turns),
		TREE_CASE_TWO_COUNTERS(code_counts_for_those_who_wait),
		TREE_CASE_TWO_COUNTERS(a_group_counts_as_a_whole),
		TREE_CASE_TWO_COUNTERS(pinned_is_always_there_or_fails),
		TREE_CASE_TWO_COUNTERS(exclusive_is_alone),
		TREE_CASE_TWO_COUNTERS(the_processors_events_come_first),
	};

	return cmocka_run_group_tests_name("core: events that take turns", tests, NULL, NULL);
}
