// SPDX-License-Identifier: MIT
/* Events of several tasks: copies, ends, processors, and counters that do not suffice. */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/sched.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/schedule.h"
#include "core/test_tree.h"
#include "core/time.h"

static int begin(void **state)
{
	(void)state;
	tree_begin(0);
	return 0;
}

static int begin_with_two_counters(void **state)
{
	(void)state;
	tree_begin(2);
	return 0;
}

static int end(void **state)
{
	(void)state;
	tree_end();
	return 0;
}

static enum core_state state_of(uint32_t event)
{
	return (enum core_state)core_event(event)->state;
}

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

/* ---- copies ---- */

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

/* ---- ends ---- */

static void an_event_outlives_its_task(void **state)
{
	struct perf_event_attr attr = test_instructions();
	struct core_task *other = tree_clone(2, 0);
	uint32_t leader, member;
	uint64_t words[4];

	(void)state;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED;
	leader = tree_open(&attr, other, -1, 0);
	member = tree_open(&attr, other, -1, leader);
	tree_run(2);
	tree_work(4);
	tree_exit();
	assert_int_equal(state_of(leader), CORE_EXITED);
	assert_int_equal(fake.wakes.nr, 2);
	assert_int_equal(fake.wakes.of[0].what, POLLHUP);
	assert_int_equal(core_poll(leader), POLLHUP);
	assert_int_equal(core_read(leader, words, sizeof(words)), 32);
	assert_int_equal(words[0], 2);
	assert_int_equal(words[1], 4000);
	assert_int_equal(words[2], 4);
	assert_int_equal(words[3], 4);
	assert_int_equal(core_enable(leader, true), 0);
	assert_int_equal(core_disable(member, false), 0);
	assert_int_equal(core_disable(leader, true), 0);
	assert_int_equal(core_reset(member, false), 0);
	assert_int_equal(core_read(leader, words, sizeof(words)), 32);
	assert_int_equal(words[2], 4);
	assert_int_equal(words[3], 0);
	assert_int_equal(core_reset(leader, true), 0);
	core_read(leader, words, sizeof(words));
	assert_int_equal(words[2], 0);
	assert_int_equal(state_of(leader), CORE_EXITED);
	assert_int_equal(tree_refused(&attr, other, -1, 0), ESRCH);
	assert_int_equal(tree_refused(&attr, fake.task, -1, leader), ENODEV);
	/* the page may have another thread by now */
	tree_clone(2, 0);
	tree_run(2);
	tree_work(50);
	tree_close(leader);
	core_read(member, words, sizeof(words));
	assert_int_equal(words[0], 1);
	tree_close(member);
	assert_int_equal(core_nr_events(), 0);
	assert_int_equal(core_task(2)->events, 0);
}

static void nobody_hangs_up_while_a_child_counts(void **state)
{
	struct core_task *other = tree_clone(2, 0);
	struct perf_event_attr attr = inherited();
	uint32_t event = tree_open(&attr, other, -1, 0);

	(void)state;
	tree_run(2);
	tree_clone(3, 0);
	tree_exit();
	assert_int_equal(fake.wakes.nr, 0);
	tree_run(3);
	tree_work(8);
	tree_exit();
	assert_int_equal(fake.wakes.nr, 1);
	assert_int_equal(fake.wakes.of[0].event, event);
	assert_int_equal(tree_value(event), 8);
}

static void the_creator_may_go_first(void **state)
{
	struct perf_event_attr attr = test_instructions();
	struct core_task *me = fake.task;
	uint32_t event;

	(void)state;
	tree_clone(2, 0);
	tree_run(2);
	event = tree_open(&attr, me, -1, 0);
	tree_exit();
	tree_work(3);
	assert_int_equal(tree_value(event), 3);
	tree_close(event);
	assert_int_equal(core_nr_events(), 0);
}

static void who_was_killed_ends_like_others(void **state)
{
	struct perf_event_attr attr = inherited();
	struct core_task *other = tree_clone(2, 0);
	uint32_t event = tree_open(&attr, other, -1, 0);

	(void)state;
	tree_run(2);
	tree_work(3);
	tree_run(FIRST_PAGE);
	fake.dead = 4711;
	other->lock = 4711;
	core_tree()->lock = 4711;
	core_task_exit(other);
	core_task_exit(other);
	assert_int_equal(state_of(event), CORE_EXITED);
	assert_int_equal(tree_value(event), 3);
	assert_int_equal(core_tree()->live, FIRST_PAGE);
}

/* ---- exec ---- */

static void exec_enables_and_removes(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t enabled, removed, kept = tree_open(&attr, fake.task, -1, 0), twice;

	(void)state;
	attr.remove_on_exec = 1;
	removed = tree_open(&attr, fake.task, -1, 0);
	attr.remove_on_exec = 0;
	attr.disabled = 1;
	attr.enable_on_exec = 1;
	enabled = tree_open(&attr, fake.task, -1, 0);
	tree_work(5);
	core_task_exec(fake.task, "a-name-of-more-than-sixteen");
	assert_string_equal(fake.task->comm, "a-name-of-more-");
	tree_work(2);
	assert_int_equal(tree_value(kept), 7);
	assert_int_equal(tree_value(removed), 5);
	assert_int_equal(core_poll(removed), POLLHUP);
	assert_int_equal(tree_value(enabled), 2);
	/* once only */
	core_disable(enabled, false);
	core_task_exec(fake.task, "again");
	assert_int_equal(state_of(enabled), CORE_OFF);
	twice = tree_open(&attr, fake.task, -1, 0);
	tree_close(removed);
	assert_int_equal(state_of(twice), CORE_OFF);
}

static void copies_are_enabled_and_removed_on_exec_too(void **state)
{
	struct perf_event_attr attr = inherited();
	uint32_t enabled, removed;

	(void)state;
	attr.remove_on_exec = 1;
	removed = tree_open(&attr, fake.task, -1, 0);
	attr.remove_on_exec = 0;
	attr.disabled = 1;
	attr.enable_on_exec = 1;
	enabled = tree_open(&attr, fake.task, -1, 0);
	tree_clone(2, 0);
	tree_run(2);
	tree_work(3);
	core_task_exec(fake.task, "child");
	tree_work(4);
	assert_int_equal(tree_value(enabled), 4);
	assert_int_equal(state_of(enabled), CORE_OFF);
	assert_int_equal(tree_value(removed), 3);
	assert_int_equal(core_event(removed)->children, 0);
	assert_int_equal(state_of(removed), CORE_ACTIVE);
}

/* ---- processors ---- */

static void an_event_of_a_processor_counts_there(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t here = tree_open(&attr, fake.task, 0, 0),
		 there = tree_open(&attr, fake.task, 1, 0);

	(void)state;
	tree_work(3);
	core_task_cpu(fake.task, 1);
	tree_work(10);
	assert_int_equal(tree_value(here), 3);
	assert_int_equal(tree_read(here).enabled, 13000);
	assert_int_equal(tree_read(here).running, 3000);
	assert_int_equal(tree_value(there), 10);
	assert_int_equal(tree_read(there).running, 10000);
	assert_int_equal(core_counter_read(fake.task, CORE_CPU_MIGRATIONS), 1);
}

/* It may run for long without a system call, at which it would see where. */
static void who_is_bound_looks_where_it_runs(void **state)
{
	struct core_task *other = tree_clone(2, 0);
	struct perf_event_attr attr = test_instructions();

	(void)state;
	tree_run(2);
	core_task_update(other);
	tree_run(FIRST_PAGE);
	other->cpu = -1; /* nobody has asked so far */
	tree_open(&attr, other, 0, 0);
	assert_int_equal(fake.kicks.nr, 1);
	assert_int_equal(fake.kicks.of[0].event, 2);
	assert_true(core_task_changed(other));
	tree_open(&attr, other, 1, 0);
	assert_int_equal(fake.kicks.nr, 1);
}

static void an_event_for_all_counts_all(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event, member, off;
	struct test_count count;

	(void)state;
	tree_clone(2, 0);
	event = tree_open(&attr, NULL, 0, 0);
	member = tree_open(&attr, NULL, 0, event);
	tree_work(1);
	tree_run(2);
	tree_work(10);
	/* who comes later, too, and whoever made it */
	tree_clone(3, 0);
	tree_run(3);
	tree_work(100);
	core_task_cpu(fake.task, 1);
	tree_work(1000);
	tree_exit();
	count = tree_read(event);
	assert_int_equal(count.value, 111);
	assert_int_equal(tree_value(member), 111);
	/* the processor's time */
	assert_int_equal(count.enabled, 1111000);
	assert_int_equal(count.running, 1111000);
	core_disable(event, false);
	tree_work(5);
	assert_int_equal(tree_value(event), 111);
	assert_int_equal(tree_value(member), 111);
	core_reset(event, true);
	core_enable(event, false);
	tree_work(5);
	/* what tasks had counted when they ended stays */
	assert_int_equal(tree_value(event), 105);
	attr.disabled = 1;
	off = tree_open(&attr, NULL, 0, 0);
	tree_work(5);
	assert_int_equal(tree_value(off), 0);
	tree_close(event);
	tree_work(5);
	assert_int_equal(tree_value(member), 115);
	tree_close(member);
	tree_close(off);
	assert_int_equal(core_nr_events(), 0);
	assert_int_equal(fake.task->events, 0);
}

/* One of two threads is found to trace the caller: then neither has any part in it. */
static void who_traces_the_caller_is_in_no_event_for_all(void **state)
{
	struct perf_event_attr attr = test_instructions();
	struct core_task *tracer = tree_clone(2, 0), *before = tree_clone(3, CLONE_THREAD), *after;
	uint32_t first = tree_open(&attr, NULL, 0, 0), event;
	uint64_t looked;

	(void)state;
	before->pid = tracer->pid;
	core_task_apart(tracer->pid);
	event = tree_open(&attr, NULL, 0, 0);
	tree_work(1);
	tree_run(2);
	tree_work(10);
	after = tree_clone(4, CLONE_THREAD);
	after->pid = tracer->pid;
	tree_clone(5, 0);
	for (uint32_t page = 3; page <= 4; page++) {
		tree_run(page);
		tree_work(100);
	}
	/* what was opened before goes on, and with it all that is done to it */
	assert_int_equal(tree_value(first), 111);
	assert_int_equal(tree_value(event), 1);
	tree_run(5);
	tree_work(1000);
	assert_int_equal(tree_value(event), 1001);
	/* who does something to all does not lock who is apart, and so has not looked at it */
	tree_run(FIRST_PAGE);
	looked = tracer->looked;
	tree_work(1);
	core_disable(event, false);
	core_enable(event, false);
	tree_open(&attr, NULL, 0, event);
	assert_int_equal(tracer->looked, looked);
	core_task_lock(tracer);
	assert_int_not_equal(tracer->looked, looked);
	core_task_unlock(tracer);
}

static void the_clock_of_a_processor_never_stands(void **state)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	uint32_t event = tree_open(&attr, NULL, 1, 0);

	(void)state;
	fake.tsc += 3 * MS;
	fake.software[CORE_CPU_CLOCK] = 12345;
	assert_int_equal(tree_value(event), 3 * MS);
	core_reset(event, false);
	fake.tsc += MS;
	assert_int_equal(tree_value(event), MS);
	core_disable(event, false);
	fake.tsc += MS;
	assert_int_equal(tree_value(event), MS);
}

static void a_cgroup_counts_its_tasks(void **state)
{
	struct perf_event_attr attr = test_instructions();
	const struct core_target target = {.cpu = 0, .cgroup = 1002}; /* the fake's: a pid */
	struct padded_attr padded = test_padded(&attr);
	uint32_t event =
		(uint32_t)core_open(&padded.attr, &target, 0, PERF_FLAG_PID_CGROUP, &all_rights);

	(void)state;
	tree_clone(2, 0);
	core_task_regroup(core_task(2));
	tree_work(5);
	tree_run(2);
	core_task_regroup(fake.task);
	tree_work(3);
	tree_run(FIRST_PAGE);
	tree_work(5);
	assert_int_equal(tree_value(event), 3);
	/* and lasts as long as they run */
	assert_int_equal(tree_read(event).enabled, 3000);
	assert_int_equal(tree_read(event).running, 3000);
}

static void clocks_stand_while_the_kernel_works(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event = tree_open(&attr, fake.task, -1, 0);

	(void)state;
	tree_work(2);
	core_clock_stop(fake.task);
	fake.tsc += MS;
	assert_int_equal(tree_read(event).enabled, 2000);
	core_clock_start(fake.task);
	tree_work(1);
	assert_int_equal(tree_read(event).enabled, 3000);
}

/* ---- counters that do not suffice ---- */

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

/* Somebody else has ended it already: with who was about to open it. */
static void an_event_is_closed_once(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event, other, generation;

	(void)state;
	event = tree_open(&attr, core_task(FIRST_PAGE), -1, 0);
	generation = core_event(event)->generation;
	core_close(event, generation);
	core_close(event, generation);
	assert_int_equal(core_tree()->events, 0);
	event = tree_open(&attr, core_task(FIRST_PAGE), -1, 0);
	other = tree_open(&attr, core_task(FIRST_PAGE), -1, 0);
	assert_int_not_equal(event, other);
	core_close(event, generation);
	tree_work(10);
	assert_int_equal(tree_value(event), 10);
}

#define CASE(name)	   cmocka_unit_test_setup_teardown(name, begin, end)
#define CASE_CROWDED(name) cmocka_unit_test_setup_teardown(name, begin_with_two_counters, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(children_count_for_the_event),
		CASE(what_is_not_inherited_is_not),
		CASE(copies_are_in_groups_and_obey),
		CASE(a_group_is_read_with_its_copies),
		CASE(a_group_that_has_changed_cannot_be_read_with_its_copies),
		CASE(the_copy_of_a_disabled_event_is_disabled),
		CASE(a_refused_change_is_not_inherited),
		CASE(many_children_come_and_go),
		CASE(an_event_outlives_its_task),
		CASE(nobody_hangs_up_while_a_child_counts),
		CASE(the_creator_may_go_first),
		CASE(an_event_is_closed_once),
		CASE(who_was_killed_ends_like_others),
		CASE(exec_enables_and_removes),
		CASE(copies_are_enabled_and_removed_on_exec_too),
		CASE(an_event_of_a_processor_counts_there),
		CASE(who_is_bound_looks_where_it_runs),
		CASE(an_event_for_all_counts_all),
		CASE(who_traces_the_caller_is_in_no_event_for_all),
		CASE(the_clock_of_a_processor_never_stands),
		CASE(a_cgroup_counts_its_tasks),
		CASE(clocks_stand_while_the_kernel_works),
		CASE_CROWDED(groups_take_turns),
		CASE_CROWDED(a_group_counts_as_a_whole),
		CASE_CROWDED(pinned_is_always_there_or_fails),
		CASE_CROWDED(exclusive_is_alone),
		CASE_CROWDED(the_processors_events_come_first),
	};

	return cmocka_run_group_tests_name("core: events of several tasks", tests, NULL, NULL);
}
