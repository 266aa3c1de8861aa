// SPDX-License-Identifier: MIT
/* What ends with tasks and descriptors, and what exec changes. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/fake_ring.h"
#include "core/lock.h"
#include "core/repair.h"
#include "core/test_tree.h"
#include "core/time.h"

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

/* Somebody else has ended it already: with who was about to open it. */
static void an_event_is_closed_once(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event, other;
	uint64_t first;

	(void)state;
	event = tree_open(&attr, core_task(FIRST_PAGE), -1, 0);
	first = core_name(event, core_event(event)->generation);
	core_close(first);
	core_close(first);
	assert_int_equal(core_tree()->events, 0);
	event = tree_open(&attr, core_task(FIRST_PAGE), -1, 0);
	other = tree_open(&attr, core_task(FIRST_PAGE), -1, 0);
	assert_int_not_equal(event, other);
	core_close(first);
	tree_work(10);
	assert_int_equal(tree_value(event), 10);
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

/* It was found, and ended before the event was opened. */
static void a_page_of_another_is_not_measured(void **state)
{
	const struct perf_event_attr attr = test_instructions();
	const struct core_rights rights = {.attach = true};
	struct core_task *task = tree_clone(2, 0);
	struct core_target target = {.task = task, .tid = task->tid, .cpu = -1};
	struct padded_attr padded = test_padded(&attr);
	int64_t event = test_open(&padded.attr, &target, 0, 0, &rights);

	(void)state;
	assert_true(event > 0);
	tree_close((uint32_t)event);
	task->tid++;
	assert_int_equal(test_open(&padded.attr, &target, 0, 0, &rights), -ESRCH);
	task->tid--;
	core_task_exit(task);
	assert_int_equal(test_open(&padded.attr, &target, 0, 0, &rights), -ESRCH);
}

/* Who stops may have a lock. */
static void who_is_stopped_is_told_of(void **state)
{
	const uint32_t owner = 4711;
	uint32_t *locks[] = {&core_tree()->lock, &core_everybody()->lock, &fake.task->lock};

	(void)state;
	for (size_t i = 0; i < sizeof(locks) / sizeof(*locks); i++) {
		assert_false(core_has_lock(owner));
		*locks[i] = owner;
		assert_true(core_has_lock(owner));
		fake.halted = 0;
		fake.halted_lock = locks[i];
		assert_false(core_lock(locks[i]));
		assert_int_equal(fake.halted, owner);
		core_unlock(locks[i]);
	}
}

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

static unsigned int looks;

/* While its event is read, when the reader has looked at the time so often, a child works, as it
 * has not come to see that it is to be still: first it comes from a system call, or it goes into
 * one then. */
static void child_goes_on(void)
{
	struct core_task *reader = fake.task;
	const bool stands = !core_task(2)->clock_tsc;

	if (--looks) {
		fake.meanwhile = child_goes_on;
		return;
	}
	fake.task = core_task(2);
	if (stands)
		core_clock_start(fake.task);
	fake.tsc += 50000;
	fake_run(CORE_INSTRUCTIONS, 50);
	if (!stands)
		core_clock_stop(fake.task);
	fake.task = reader;
}

struct group {
	uint64_t nr, enabled, running;
	struct {
		uint64_t value, id, lost;
	} of[2];
};

static struct test_count read_group(uint32_t leader)
{
	struct group group;

	assert_int_equal(core_read(leader, &group, sizeof(group)), sizeof(group));
	assert_int_equal(group.nr, 2);
	assert_int_equal(group.of[0].value, group.of[1].value);
	return (struct test_count){group.of[0].value, group.enabled, group.running};
}

/*
 * Who reads from elsewhere may be kept from running at any moment, while what he reads goes on.
 * What is counted in no time is lost to perf.
 */
static void nothing_is_counted_in_no_time(void **state)
{
	struct perf_event_attr attr = test_instructions();
	struct core_task *child = tree_clone(2, 0);
	uint32_t leader, member;

	(void)state;
	attr.disabled = attr.enable_on_exec = 1;
	attr.read_format |= PERF_FORMAT_GROUP;
	leader = tree_open(&attr, child, -1, 0);
	attr.disabled = attr.enable_on_exec = 0;
	attr.read_format &= ~(uint64_t)PERF_FORMAT_GROUP;
	member = tree_open(&attr, child, -1, leader);
	tree_run(2);
	core_clock_stop(child);
	core_task_exec(child, "program");
	fake.task = core_task(FIRST_PAGE);

	for (unsigned int i = 0; i < 40; i++) {
		struct test_count (*read)(uint32_t) = i & 2 ? read_group : tree_read;
		const uint32_t event = i & 2 ? leader : member;
		const struct test_count before = read(event);
		struct test_count during, after;

		looks = 1 + i / 4;
		fake.meanwhile = child_goes_on;
		during = read(event);
		fake.meanwhile = NULL;
		after = read(event);
		assert_true(during.running != before.running || during.value == before.value);
		assert_true(after.running != during.running || after.value == during.value);
	}
}

static void exec_takes_what_it_removes_out_of_its_group(void **state)
{
	for (int leads = 0; leads < 2; leads++) {
		struct perf_event_attr attr = test_instructions();
		uint32_t event[2];

		attr.remove_on_exec = leads;
		event[0] = tree_open(&attr, fake.task, -1, 0);
		attr.remove_on_exec = !leads;
		event[1] = tree_open(&attr, fake.task, -1, event[0]);
		tree_work(1);
		core_task_exec(fake.task, "other");
		tree_work(10);
		assert_int_equal(core_event(event[0])->members, 0);
		assert_int_equal(tree_value(event[!leads]), 1);
		assert_int_equal(tree_value(event[leads]), 11);
	}
	(void)state;
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

/*
 * Opens an event that gets no descriptor of the opener's: it is gone already, as that of somebody
 * who has been killed, and a copy for @child has the slot. Returns what it is a copy of; @name:
 * what was opened.
 */
static uint32_t lose_what_is_opened(struct core_task *opener, uint32_t child, uint64_t *name)
{
	struct perf_event_attr attr = inherited();
	const struct core_target target = {.task = opener, .cpu = -1};
	uint32_t parent = tree_open(&attr, fake.task, -1, 0);
	struct padded_attr padded;

	attr = test_instructions();
	padded = test_padded(&attr);
	tree_run(core_page(opener));
	assert_int_equal(core_open(&padded.attr, &target, 0, 0, &all_rights, name), 0);
	core_close(*name);
	tree_run(FIRST_PAGE);
	tree_clone(child, 0);
	assert_int_equal(core_named(*name)->parent, parent);
	return parent;
}

/* Whatever has become of who opened, the copy for @page stays, among others of its event. */
static void check_copies_of(uint32_t parent, uint32_t page)
{
	assert_int_not_equal(core_event(parent)->children, 0);
	assert_int_not_equal(state_of(core_event(parent)->children), CORE_FREE);
	tree_run(FIRST_PAGE);
	tree_clone(page + 1, 0);
	tree_run(page + 1);
	tree_work(5);
	tree_exit();
	tree_run(page);
	tree_work(3);
	assert_int_equal(tree_value(parent), 8);
	tree_exit();
	assert_int_equal(tree_value(parent), 8);
	assert_int_equal(core_event(parent)->children, 0);
	tree_close(parent);
	assert_int_equal(core_tree()->events, 0);
}

static void who_ends_while_opening_closes_no_other_event(void **state)
{
	struct core_task *opener = tree_clone(2, 0);
	uint64_t lost;
	uint32_t parent = lose_what_is_opened(opener, 3, &lost);

	(void)state;
	core_task_exit(opener);
	check_copies_of(parent, 3);
}

static void who_cannot_open_closes_no_other_event(void **state)
{
	struct core_task *opener = tree_clone(2, 0);
	uint64_t lost;
	uint32_t parent = lose_what_is_opened(opener, 3, &lost);

	(void)state;
	core_opened_by(opener, false);
	check_copies_of(parent, 3);
}

/* A thread may get on with it for a while when another one ends their process. */
static void who_goes_on_opening_what_is_gone_closes_no_other_event(void **state)
{
	struct core_task *opener = tree_clone(2, 0);
	uint64_t lost;
	uint32_t parent = lose_what_is_opened(opener, 3, &lost);

	(void)state;
	core_task_exit(opener);
	core_set_pipe(lost, 4711);
	assert_int_equal(core_named(lost)->inode, 0);
	core_opened_by(opener, true);
	core_close(lost);
	check_copies_of(parent, 3);
}

static void who_has_been_ended_has_no_children(void **state)
{
	struct perf_event_attr attr = inherited();
	struct core_task *parent = tree_clone(2, 0), *child = core_task(3);
	const uint32_t event = tree_open(&attr, parent, -1, 0);

	(void)state;
	core_task_exit(parent);
	core_task_clear(child);
	assert_false(core_task_begin(child, parent, 0));
	assert_false(child->live);
	assert_true(core_task_begin(child, NULL, 0));
	assert_true(child->live);
	core_task_exit(child);
	tree_close(event);
}

static void who_has_been_ended_opens_nothing(void **state)
{
	const struct perf_event_attr attr = test_instructions();
	struct core_task *other = core_task(FIRST_PAGE), *opener = tree_clone(2, 0);

	(void)state;
	tree_run(2);
	core_task_exit(opener);
	assert_int_equal(tree_refused(&attr, other, -1, 0), ESRCH);
	assert_int_equal(tree_refused(&attr, NULL, 0, 0), ESRCH);
	assert_int_equal(core_tree()->events, 0);
}

/* Who finds a child's parent killed may take that for the child's end, until it comes to say
 * that it is there. */
static void who_has_been_ended_does_not_begin(void **state)
{
	const struct perf_event_attr attr = test_instructions(), copied = inherited();
	struct core_task *child;

	(void)state;
	tree_open(&copied, fake.task, -1, 0);
	child = tree_clone(2, 0);
	core_task_exit(child);
	fake.task = child;
	assert_false(core_task_begun(child));
	core_task_begin(child, NULL, 0);
	assert_true(core_task_begun(child));
	assert_int_equal(child->events, 0);
	tree_run(2);
	tree_open(&attr, child, -1, 0);
}

/* Where there is no room for all of the arena, its events are left to who has it. */
static void who_has_opened_what_cannot_be_seen_does_not_end(void **state)
{
	const struct perf_event_attr attr = test_instructions();
	struct core_task *opener = tree_clone(2, 0);
	uint32_t event;

	(void)state;
	tree_run(2);
	event = tree_open(&attr, core_task(FIRST_PAGE), -1, 0);
	assert_int_equal(opener->events, 0);
	fake.partly = true;
	core_task_exit(opener);
	assert_true(opener->live);
	assert_int_equal(core_event(event)->creator, 2);
	fake.partly = false;
	core_task_exit(opener);
	assert_false(opener->live);
	assert_int_equal(core_event(event)->creator, 0);
}

/* A parent may end before its child has come to say that it is there. */
static void a_birth_is_told_to_the_parent_alone(void **state)
{
	struct perf_event_attr attr = test_instructions();
	struct core_task *parent = tree_clone(2, 0), *child;
	struct fake_ring rings[2];

	(void)state;
	attr.task = 1;
	rings[0] = fake_map(tree_open(&attr, parent, -1, 0), 1, true);
	for (int i = 0; i < 2; i++) {
		tree_run(2);
		child = tree_clone(3, 0);
		if (i) { /* its page is another's */
			tree_exit();
			parent = tree_clone(2, 0);
			rings[i] = fake_map(tree_open(&attr, parent, -1, 0), 1, true);
		}
		tree_run(3);
		core_task_begun(child);
		tree_exit();
		assert_int_equal(fake_next(&rings[i], &attr) != NULL, !i);
	}
}

/* Whoever has looked a number up may come after who has closed it. */
static void nothing_is_done_to_what_has_been_closed(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event = tree_open(&attr, fake.task, -1, 0),
		 gone = tree_open(&attr, fake.task, -1, 0);

	(void)state;
	assert_true(fake_ring_map(event, 0, 2 * ARENA_PAGE, true, &all_rights) > 0);
	tree_close(gone);
	assert_int_equal(core_set_output(gone, event), -EBADF);
	assert_int_equal(core_set_output(event, gone), -EBADF);
	assert_int_equal(fake_ring_map(gone, 0, 2 * ARENA_PAGE, true, &all_rights), -EBADF);
	assert_int_equal(tree_refused(&attr, fake.task, -1, gone), EBADF);
	core_enable(gone, false);
	core_refresh(gone, 1);
	assert_int_equal(tree_open(&attr, fake.task, -1, 0), gone);
	tree_work(10);
	assert_int_equal(tree_value(gone), 10);
	tree_close(gone);
	tree_close(event);
	fake_ring_unmap(event);
	assert_int_equal(core_tree()->events, 0);
}

/* Who has its number may have mapped it before it has its descriptor. */
static void what_was_being_opened_goes_on_while_it_is_mapped(void **state)
{
	struct perf_event_attr attr = test_instructions();
	struct padded_attr padded = test_padded(&attr);
	struct core_task *opener = tree_clone(2, 0);
	const struct core_target target = {.task = core_task(FIRST_PAGE), .cpu = -1};
	const uint32_t cpus = core_settings()->cpus;
	int64_t event;

	(void)state;
	tree_run(2);
	event = test_open(&padded.attr, &target, 0, 0, &all_rights);
	assert_true(event > 0);
	tree_run(FIRST_PAGE);
	assert_true(fake_ring_map((uint32_t)event, 0, 2 * ARENA_PAGE, true, &all_rights) > 0);
	core_task_exit(opener);
	assert_int_equal(core_tree()->events, 1);
	tree_work(10);
	assert_int_equal(tree_value((uint32_t)event), 10);
	fake_ring_unmap((uint32_t)event);
	assert_int_equal(core_tree()->events, 0);
	assert_int_equal(core_settings()->cpus, cpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(an_event_outlives_its_task),
		TREE_CASE(nobody_hangs_up_while_a_child_counts),
		TREE_CASE(the_creator_may_go_first),
		TREE_CASE(an_event_is_closed_once),
		TREE_CASE(who_has_been_ended_has_no_children),
		TREE_CASE(who_ends_while_opening_closes_no_other_event),
		TREE_CASE(who_cannot_open_closes_no_other_event),
		TREE_CASE(who_goes_on_opening_what_is_gone_closes_no_other_event),
		TREE_CASE(who_has_been_ended_opens_nothing),
		TREE_CASE(who_has_opened_what_cannot_be_seen_does_not_end),
		TREE_CASE(who_has_been_ended_does_not_begin),
		TREE_CASE(a_birth_is_told_to_the_parent_alone),
		TREE_CASE(nothing_is_done_to_what_has_been_closed),
		TREE_CASE(what_was_being_opened_goes_on_while_it_is_mapped),
		TREE_CASE(who_was_killed_ends_like_others),
		TREE_CASE(a_page_of_another_is_not_measured),
		TREE_CASE(who_is_stopped_is_told_of),
		TREE_CASE(exec_enables_and_removes),
		TREE_CASE(nothing_is_counted_in_no_time),
		TREE_CASE(exec_takes_what_it_removes_out_of_its_group),
		TREE_CASE(copies_are_enabled_and_removed_on_exec_too),
	};

	return cmocka_run_group_tests_name("core: lives of events", tests, NULL, NULL);
}
