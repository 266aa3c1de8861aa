// SPDX-License-Identifier: MIT
/* Events of processors: of one task there, of all tasks, of a cgroup. */
#include <linux/sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/schedule.h"
#include "core/test_tree.h"
#include "core/time.h"

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

/* Where the kernel tells of them, too, and where it does not. */
static void moves_count_where_they_lead(bool told)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t any, here, there;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_MIGRATIONS;
	attr.exclude_kernel = 0;
	any = tree_open(&attr, fake.task, -1, 0);
	here = tree_open(&attr, fake.task, 0, 0);
	there = tree_open(&attr, fake.task, 1, 0);
	for (int move = 1; move <= 3; move++) {
		fake.software[CORE_CPU_MIGRATIONS] += told;
		core_task_cpu(fake.task, move % 2);
	}
	assert_int_equal(tree_value(any), 3);
	assert_int_equal(tree_value(here), 1);
	assert_int_equal(tree_value(there), 2);
	/* and once, if somebody has looked before it is noticed */
	fake.software[CORE_CPU_MIGRATIONS] += told;
	tree_value(any);
	core_task_cpu(fake.task, 0);
	assert_int_equal(tree_value(any), 4);
	assert_int_equal(tree_value(here) + tree_value(there), 4);
}

static void moves_that_the_kernel_tells_of_count_where_they_lead(void **state)
{
	(void)state;
	moves_count_where_they_lead(true);
}

static void moves_that_are_seen_count_where_they_lead(void **state)
{
	(void)state;
	moves_count_where_they_lead(false);
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
	before->process = tracer->process;
	core_task_apart(tracer->process);
	event = tree_open(&attr, NULL, 0, 0);
	tree_work(1);
	tree_run(2);
	tree_work(10);
	after = tree_clone(4, CLONE_THREAD);
	after->process = tracer->process;
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
		(uint32_t)test_open(&padded.attr, &target, 0, PERF_FLAG_PID_CGROUP, &all_rights);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(an_event_of_a_processor_counts_there),
		TREE_CASE(moves_that_the_kernel_tells_of_count_where_they_lead),
		TREE_CASE(moves_that_are_seen_count_where_they_lead),
		TREE_CASE(who_is_bound_looks_where_it_runs),
		TREE_CASE(an_event_for_all_counts_all),
		TREE_CASE(who_traces_the_caller_is_in_no_event_for_all),
		TREE_CASE(the_clock_of_a_processor_never_stands),
		TREE_CASE(a_cgroup_counts_its_tasks),
	};

	return cmocka_run_group_tests_name("core: events of processors", tests, NULL, NULL);
}
