// SPDX-License-Identifier: MIT
/* Copies of events, which count for what was opened. */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/test_tree.h"
#include "core/time.h"

static struct perf_event_attr inherited(void)
{
	struct perf_event_attr attr = test_instructions();

	attr.inherit = 1;
	return attr;
}

static uint32_t open_inherited(uint32_t group)
{
	struct perf_event_attr attr = inherited();

	return tree_open(&attr, fake.task, -1, group);
}

/* A child at @page that works, and ends. */
static void child_works(uint32_t page, uint64_t instructions)
{
	tree_clone(page, 0);
	tree_run(page);
	tree_work(instructions);
	tree_exit();
}

static void children_count_for_the_event(void **state)
{
	uint32_t event = open_inherited(0), copy;

	(void)state;
	tree_work(1);
	tree_clone(2, 0);
	tree_run(2);
	tree_work(10);
	copy = core_event(event)->children;
	assert_int_not_equal(copy, 0);
	assert_int_not_equal(core_event(copy)->id, core_event(event)->id);
	assert_int_equal(tree_value(event), 11);
	assert_int_equal(tree_read(event).enabled, 11000);
	/* a grandchild's copy is a copy of what was opened */
	tree_clone(3, 0);
	tree_run(3);
	tree_work(100);
	assert_int_equal(core_event(core_event(event)->children)->parent, event);
	assert_int_equal(tree_value(event), 111);
	core_task_exit(core_task(2));
	assert_int_equal(tree_value(event), 111);
	tree_exit();
	assert_int_equal(core_event(event)->children, 0);
	assert_int_equal(tree_value(event), 111);
	assert_int_equal(tree_read(event).running, 111000);
	assert_int_equal(core_nr_events(), 1);
}

static void what_is_not_inherited_is_not(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t plain = tree_open(&attr, fake.task, -1, 0), threads, trap;

	(void)state;
	attr.inherit = 1;
	attr.inherit_thread = 1;
	threads = tree_open(&attr, fake.task, -1, 0);
	attr.inherit_thread = 0;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	trap = tree_open(&attr, fake.task, -1, 0);
	tree_clone(2, 0);
	assert_int_equal(core_event(plain)->children, 0);
	assert_int_equal(core_event(threads)->children, 0);
	assert_int_not_equal(core_event(trap)->children, 0);
	tree_clone(3, CLONE_THREAD | CLONE_CLEAR_SIGHAND);
	assert_int_not_equal(core_event(threads)->children, 0);
	assert_int_equal(core_event(core_event(trap)->children)->next_child, 0);
}

static void copies_are_in_groups_and_obey(void **state)
{
	uint32_t leader = open_inherited(0), member = open_inherited(leader);

	(void)state;
	core_disable(member, false);
	child_works(2, 5);
	tree_clone(3, 0);
	tree_run(3);
	tree_work(7);
	assert_int_equal(core_event(core_event(leader)->children)->members, 1);
	assert_int_equal(tree_value(leader), 12);
	assert_int_equal(tree_value(member), 0);
	core_enable(member, false);
	tree_work(1);
	assert_int_equal(tree_value(member), 1);
	core_disable(leader, false);
	tree_work(9);
	assert_int_equal(tree_value(leader), 13);
	assert_int_equal(tree_value(member), 1);
	/* what has ended is not reset: it is no event any more */
	core_reset(leader, true);
	assert_int_equal(tree_value(leader), 5);
	core_enable(member, true);
	tree_work(2);
	assert_int_equal(tree_value(leader), 7);
	tree_close(leader);
	tree_close(member);
	assert_int_equal(core_nr_events(), 0);
	assert_int_equal(core_task(3)->wanted, 0);
	assert_int_equal(core_task(3)->events, 0);
}

static void a_group_is_read_with_its_copies(void **state)
{
	struct perf_event_attr attr = inherited();
	uint64_t words[8];
	uint32_t leader, member;

	(void)state;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
	leader = tree_open(&attr, fake.task, -1, 0);
	member = tree_open(&attr, fake.task, -1, leader);
	child_works(2, 5);
	tree_clone(3, 0);
	tree_run(3);
	tree_work(7);
	assert_int_equal(core_read(member, words, sizeof(words)), 48);
	assert_int_equal(words[0], 2);
	assert_int_equal(words[1], 12000);
	assert_int_equal(words[2], 12);
	assert_int_equal(words[3], core_event_id(leader));
	assert_int_equal(words[4], 12);
	assert_int_equal(words[5], core_event_id(member));
}

/* Each time that the reader looks at the clock. */
static void a_child_goes_on(void)
{
	struct core_task *reader = fake.task;

	fake.task = core_task(2);
	tree_work(50);
	fake.task = reader;
	fake.meanwhile = a_child_goes_on;
}

static void the_copies_of_a_group_are_read_at_one_time(void **state)
{
	struct perf_event_attr attr = inherited();
	uint64_t words[3];
	uint32_t leader;

	(void)state;
	attr.read_format = PERF_FORMAT_GROUP;
	leader = tree_open(&attr, fake.task, -1, 0);
	tree_open(&attr, fake.task, -1, leader);
	tree_clone(2, 0);
	tree_run(2);
	tree_run(FIRST_PAGE);
	fake.meanwhile = a_child_goes_on;
	assert_int_equal(core_read(leader, words, sizeof(words)), 24);
	fake.meanwhile = NULL;
	assert_int_not_equal(words[1], 0);
	assert_int_equal(words[1], words[2]);
}

/* Who came to the group when there were copies is in none of these. */
static void a_group_that_has_changed_cannot_be_read_with_its_copies(void **state)
{
	struct perf_event_attr attr = inherited();
	uint32_t leader, member;
	uint64_t words[8];

	(void)state;
	attr.read_format = PERF_FORMAT_GROUP;
	leader = tree_open(&attr, fake.task, -1, 0);
	tree_clone(2, 0);
	member = tree_open(&attr, fake.task, -1, leader);
	assert_int_equal(core_read(leader, words, sizeof(words)), -ECHILD);
	assert_int_equal(core_read(member, words, sizeof(words)), -ECHILD);
	tree_clone(3, 0);
	assert_int_equal(core_read(leader, words, sizeof(words)), -ECHILD);
	tree_run(2);
	tree_exit();
	assert_int_equal(core_read(leader, words, sizeof(words)), 24);
	tree_close(member);
	assert_int_equal(core_read(leader, words, sizeof(words)), 16);
}

static void the_copy_of_a_disabled_event_is_disabled(void **state)
{
	struct perf_event_attr attr = inherited();
	uint32_t event;

	(void)state;
	attr.disabled = 1;
	event = tree_open(&attr, fake.task, -1, 0);
	tree_clone(2, 0);
	tree_run(2);
	tree_work(3);
	assert_int_equal(tree_value(event), 0);
	core_enable(event, false);
	tree_work(3);
	assert_int_equal(tree_value(event), 3);
}

/* Its own event is enabled again, whatever it was, and the copies stay as they are. */
static void a_refused_change_is_not_inherited(void **state)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_BREAKPOINT, 0);
	struct padded_attr wrong;
	uint32_t event;

	(void)state;
	attr.inherit = 1;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = 0x1000;
	attr.bp_len = 4;
	event = tree_open(&attr, fake.task, -1, 0);
	tree_clone(2, 0);
	core_disable(event, false);
	attr.bp_len = 3;
	wrong = test_padded(&attr);
	assert_int_equal(core_modify(event, &wrong.attr), -EINVAL);
	assert_int_equal(core_event(event)->state, CORE_ACTIVE);
	assert_int_equal(core_event(core_event(event)->children)->state, CORE_OFF);
}

static void many_children_come_and_go(void **state)
{
	uint32_t event = open_inherited(0);
	uint64_t sum = 0;

	(void)state;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t page = 2; page < 500; page++) {
			tree_run(FIRST_PAGE);
			tree_clone(page, CLONE_THREAD);
			tree_run(page);
			tree_work(page);
			sum += page;
		}
		assert_int_equal(tree_value(event), sum);
		/* from the middle, so that each end of the list is met */
		for (uint32_t page = 250; page < 500; page++)
			core_task_exit(core_task(page));
		for (uint32_t page = 2; page < 250; page++)
			core_task_exit(core_task(page));
		assert_int_equal(tree_value(event), sum);
		assert_int_equal(core_nr_events(), 1);
	}
	assert_true(core_tree()->made <= 500);
}

/* Between them the events of all processors have all of a child's time: also that in which
 * nobody knows yet where it is. */
static void no_time_is_on_no_processor(void **state)
{
	struct perf_event_attr attr = inherited();
	struct core_task *child;
	struct test_count count;
	uint32_t event;

	(void)state;
	event = tree_open(&attr, fake.task, fake.cpu, 0);
	core_clock_stop(fake.task);
	fake.tick = 3;
	child = tree_clone(2, 0);
	fake.task = child;
	fake.tid = child->tid;
	core_task_begun(child);
	fake.tsc += 1000;
	count = tree_read(event);
	assert_true(count.enabled >= 1000);
	assert_int_equal(count.enabled, count.running);
}

/* Who reads while a child is about to stop sees a clock that is late, and then is not. */
static void times_do_not_go_back(void **state)
{
	uint32_t event = open_inherited(0);
	struct test_count before, after;

	(void)state;
	tree_clone(2, 0);
	tree_run(2);
	fake.tsc += 5000;
	before = tree_read(event);
	assert_true(before.enabled >= 5000);
	fake.task->clock_tsc += 3000; /* it had stopped for that long */
	after = tree_read(event);
	assert_int_equal(after.enabled, before.enabled);
	assert_int_equal(after.running, before.running);
	tree_exit();
	after = tree_read(event);
	assert_int_equal(after.enabled, before.enabled);
	assert_int_equal(after.running, before.running);
}

/* The caller's code counts nothing, and there is no memory for other code. */
static void affords_nothing(void)
{
	const struct core_code none = {0};

	core_task_affords(fake.task, &none);
}

static void what_no_child_could_count_is_no_count(void **state)
{
	const uint32_t leader = open_inherited(0), member = open_inherited(leader),
		       other = open_inherited(0);
	uint64_t words[8];

	(void)state;
	core_disable(other, false);
	tree_clone(2, 0);
	tree_run(2);
	affords_nothing();
	assert_int_equal(fake.task->wanted, 0);
	tree_run(FIRST_PAGE);
	tree_work(1);
	assert_int_equal(core_read(leader, words, sizeof(words)), 0);
	assert_int_equal(core_read(member, words, sizeof(words)), 0);
	assert_int_equal(tree_value(other), 0); /* it was not to count */
	tree_run(2);
	tree_exit();
	assert_int_equal(core_read(leader, words, sizeof(words)), 0);
	core_reset(leader, true);
	assert_int_equal(core_read(leader, words, sizeof(words)), 0);
	core_enable(leader, false);
	assert_int_equal(tree_value(leader), 0);
	assert_int_equal(core_read(member, words, sizeof(words)), 0);
	core_enable(leader, true);
	tree_work(10);
	assert_int_equal(tree_value(leader), 10);
	assert_int_equal(tree_value(member), 10);
}

static void who_cannot_count_goes_on_when_enabled(void **state)
{
	const uint32_t event = open_inherited(0);
	uint64_t words[8];

	(void)state;
	affords_nothing();
	assert_int_equal(core_event(event)->state, CORE_ERROR);
	assert_int_equal(core_read(event, words, sizeof(words)), 0);
	core_enable(event, false);
	tree_work(5);
	assert_int_equal(tree_value(event), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(children_count_for_the_event),
		TREE_CASE(what_no_child_could_count_is_no_count),
		TREE_CASE(who_cannot_count_goes_on_when_enabled),
		TREE_CASE(what_is_not_inherited_is_not),
		TREE_CASE(copies_are_in_groups_and_obey),
		TREE_CASE(a_group_is_read_with_its_copies),
		TREE_CASE(the_copies_of_a_group_are_read_at_one_time),
		TREE_CASE(a_group_that_has_changed_cannot_be_read_with_its_copies),
		TREE_CASE(the_copy_of_a_disabled_event_is_disabled),
		TREE_CASE(a_refused_change_is_not_inherited),
		TREE_CASE(many_children_come_and_go),
		TREE_CASE(no_time_is_on_no_processor),
		TREE_CASE(times_do_not_go_back),
	};

	return cmocka_run_group_tests_name("core: inherited events", tests, NULL, NULL);
}
