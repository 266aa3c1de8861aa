// SPDX-License-Identifier: MIT
/* Probes: who is told of which place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/test_tree.h"

enum { TYPE = 1000, ENTRY = 0, RETURN = 1 };

static const struct core_probe here = {{5, 77}, 0x1000}, there = {{5, 77}, 0x1001},
			       elsewhere = {{6, 77}, 0x1000};

static struct perf_event_attr attr_of(const struct core_probe *place, uint64_t when)
{
	struct perf_event_attr attr = test_attr(TYPE, when);

	core_tree()->settings.probe_type = TYPE;
	attr.probe_offset = place->offset;
	return attr;
}

static int64_t try(const struct perf_event_attr *attr, const struct core_probe *place)
{
	const struct core_target target = {.task = fake.task, .cpu = -1, .file = place->file};
	struct padded_attr padded = test_padded(attr);

	return test_open(&padded.attr, &target, 0, 0, &all_rights);
}

static uint32_t open_at(const struct core_probe *place, uint64_t when)
{
	const struct perf_event_attr attr = attr_of(place, when);
	const int64_t event = try(&attr, place);

	assert_true(event > 0);
	return (uint32_t)event;
}

static void meet(const struct core_probe *place, uint64_t back)
{
	core_probe_met(fake.task, &(struct core_probe_met){*place, 0x400000, back});
}

static void each_place_is_its_own(void **state)
{
	const uint32_t first = open_at(&here, ENTRY), second = open_at(&there, ENTRY),
		       third = open_at(&elsewhere, ENTRY), again = open_at(&here, ENTRY);

	(void)state;
	meet(&here, 0);
	meet(&here, 0);
	meet(&there, 0);
	assert_int_equal(tree_value(first), 2);
	assert_int_equal(tree_value(second), 1);
	assert_int_equal(tree_value(third), 0);
	assert_int_equal(tree_value(again), 2);
	assert_int_equal(fake.task->extras, CORE_EXTRA_STOPS);
}

static void entries_and_returns_are_two(void **state)
{
	const uint32_t entry = open_at(&here, ENTRY), back = open_at(&here, RETURN);

	(void)state;
	meet(&here, 0);
	assert_int_equal(tree_value(entry), 1);
	assert_int_equal(tree_value(back), 0);
	meet(&here, 0x400100);
	assert_int_equal(tree_value(entry), 1);
	assert_int_equal(tree_value(back), 1);
}

/* So that the places are looked up again. */
static void who_comes_and_goes_is_told(void **state)
{
	struct core_probe places[2];
	const uint64_t before = fake.task->places;
	const uint32_t first = open_at(&here, ENTRY), second = open_at(&there, ENTRY);
	const uint64_t both = fake.task->places;

	(void)state;
	assert_true(both != before);
	assert_int_equal(core_probe_places(fake.task, places, 0, 2), 2);
	assert_int_equal(places[1].offset, there.offset);
	assert_int_equal(core_probe_places(fake.task, places, 1, 1), 2);
	assert_int_equal(places[0].offset, there.offset);
	assert_int_equal(core_disable(first, false), 0);
	assert_true(fake.task->places != both);
	assert_int_equal(core_probe_places(fake.task, places, 0, 2), 1);
	assert_false(core_probe_at(fake.task, &here, false));
	assert_true(core_probe_at(fake.task, &there, false));
	assert_false(core_probe_at(fake.task, &there, true));
	assert_int_equal(core_enable(first, false), 0);
	assert_int_equal(fake.task->places, both);
	tree_close(first);
	tree_close(second);
	assert_int_equal(fake.task->places, before);
	assert_int_equal(fake.task->extras, 0);
}

/* A function may be entered before its event counts. */
static void returns_are_awaited_while_disabled(void **state)
{
	const uint32_t event = open_at(&here, RETURN);
	struct core_probe place;

	(void)state;
	assert_int_equal(core_disable(event, false), 0);
	assert_int_equal(core_probe_places(fake.task, &place, 0, 1), 1);
	assert_true(core_probe_at(fake.task, &here, true));
	assert_int_equal(fake.task->extras, CORE_EXTRA_STOPS);
	meet(&here, 0x400100);
	assert_int_equal(tree_value(event), 0);
	assert_int_equal(core_enable(event, false), 0);
	meet(&here, 0x400100);
	assert_int_equal(tree_value(event), 1);
}

static void copies_are_where_their_event_is(void **state)
{
	struct perf_event_attr attr = attr_of(&here, ENTRY);
	int64_t event;

	(void)state;
	attr.inherit = 1;
	event = try(&attr, &here);
	assert_true(event > 0);
	tree_clone(2, 0);
	tree_run(2);
	meet(&here, 0);
	meet(&elsewhere, 0);
	assert_int_equal(tree_value((uint32_t)event), 1);
}

/* The program's, of which a probe has one. */
static void counters_are_those_of_the_process(void **state)
{
	const struct core_probe counter = {here.file, 0x30}, other = {here.file, 0x32};
	const uint64_t process = fake.task->process;
	struct perf_event_attr attr = attr_of(&here, (uint64_t)counter.offset << 32);
	struct core_probe found;
	int64_t event;

	(void)state;
	attr.disabled = 1;
	assert_false(core_probe_counted(process, &counter));
	event = try(&attr, &here);
	assert_true(event > 0);
	assert_true(core_probe_counted(process, &counter));
	assert_false(core_probe_counted(process, &other));
	assert_false(core_probe_counted(process + 1, &counter));
	assert_int_equal(core_probe_counters(fake.task, &found, 0, 1), 1);
	assert_int_equal(found.offset, counter.offset);
	attr.config = other.offset << 32;
	assert_int_equal(try(&attr, &here), -EINVAL);
	attr.config = 0;
	assert_int_equal(try(&attr, &here), -EINVAL);
	attr.probe_offset = there.offset;
	assert_true(try(&attr, &there) > 0);
	attr.probe_offset = here.offset;
	tree_close((uint32_t)event);
	assert_false(core_probe_counted(process, &counter));
	assert_true(try(&attr, &here) > 0);
}

static void counts_whatever_is_excluded(void **state)
{
	struct perf_event_attr attr = attr_of(&here, ENTRY);
	int64_t event;

	(void)state;
	attr.exclude_user = 1;
	event = try(&attr, &here);
	meet(&here, 0);
	assert_int_equal(tree_value((uint32_t)event), 1);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	assert_int_equal(try(&attr, &here), -EOPNOTSUPP);
	core_tree()->settings.probe_type = 0;
	assert_int_equal(try(&attr, &here), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(each_place_is_its_own),
		TREE_CASE(entries_and_returns_are_two),
		TREE_CASE(who_comes_and_goes_is_told),
		TREE_CASE(returns_are_awaited_while_disabled),
		TREE_CASE(copies_are_where_their_event_is),
		TREE_CASE(counters_are_those_of_the_process),
		TREE_CASE(counts_whatever_is_excluded),
	};

	return cmocka_run_group_tests_name("core/probe", tests, NULL, NULL);
}
