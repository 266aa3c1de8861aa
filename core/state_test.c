// SPDX-License-Identifier: MIT
/* Events of one task: what is enabled, what counts, what is read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/fake_ring.h"
#include "core/test_tree.h"
#include "core/time.h"
#include "core/views.h"

static uint32_t instructions(bool disabled, uint32_t group)
{
	struct perf_event_attr attr = test_instructions();

	attr.disabled = disabled;
	return tree_open(&attr, fake.task, -1, group);
}

static enum core_state state_of(uint32_t event)
{
	return (enum core_state)core_event(event)->state;
}

static void an_event_counts_from_its_opening(void **state)
{
	struct test_count count;
	uint32_t event;

	(void)state;
	tree_work(50);
	event = instructions(false, 0);
	assert_int_equal(fake.task->wanted, CORE_KIND_BIT(CORE_INSTRUCTIONS));
	tree_work(7);
	count = tree_read(event);
	assert_int_equal(count.value, 7);
	assert_int_equal(count.enabled, 7000);
	assert_int_equal(count.running, 7000);
	assert_int_equal(count.id, core_event_id(event));
	assert_int_equal(count.lost, 0);
}

/* Of a processor's event that is several of our counters together. */
static void a_sum_counts_what_its_parts_count(void **state)
{
	struct perf_event_attr attr =
		test_attr(PERF_TYPE_RAW, 0xc424); /* L2 hits of code, Intel's */
	uint32_t event;

	(void)state;
	fake_run(CORE_L1I_LOAD_MISSES, 1000);
	event = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(fake.task->wanted, CORE_KIND_BIT(CORE_L1I_LOAD_MISSES) |
						    CORE_KIND_BIT(CORE_LLC_LOADS) |
						    CORE_KIND_BIT(CORE_LLC_STORES) |
						    CORE_KIND_BIT(CORE_LLC_REFERENCES));
	fake_run(CORE_L1I_LOAD_MISSES, 10);
	fake_run(CORE_LLC_REFERENCES, 7);
	fake_run(CORE_LLC_LOADS, 3);
	fake_run(CORE_LLC_STORES, 2);
	assert_int_equal(tree_value(event), 10 - (7 - 3 - 2));
	core_disable(event, false);
	fake_run(CORE_L1I_LOAD_MISSES, 100);
	assert_int_equal(tree_value(event), 8);
	assert_int_equal(fake.task->wanted, 0);

	attr.sample_period = 1000;
	assert_int_equal(tree_refused(&attr, fake.task, -1, 0), EOPNOTSUPP);
}

/* Where the slots of issue went: each cycle has four, and a wrong prediction costs 16 cycles. */
static void the_slots_are_told_apart(void **state)
{
	static const struct {
		uint64_t config, value;
	} events[] = {
		{0x0400, 4000},			  /* slots */
		{0x8000, 4 * (1000 - 500 - 200)}, /* retiring */
		{0x8100, 64 * 5},		  /* bad speculation */
		{0x8200, 4 * 500 - 64 * 5},	  /* waiting for code */
		{0x8300, 4 * 200},		  /* and for data */
		{0x8400, 0},
	};
	enum { NR = sizeof(events) / sizeof(*events) };
	uint32_t opened[NR];

	(void)state;
	for (unsigned int i = 0; i < NR; i++) {
		struct perf_event_attr attr = test_attr(PERF_TYPE_RAW, events[i].config);

		opened[i] = tree_open(&attr, fake.task, -1, 0);
	}
	fake_run(CORE_CYCLES, 1000);
	fake_run(CORE_STALLED_FRONTEND, 500);
	fake_run(CORE_STALLED_BACKEND, 200);
	fake_run(CORE_BRANCH_MISSES, 5);
	for (unsigned int i = 0; i < NR; i++)
		assert_int_equal(tree_value(opened[i]), events[i].value);
}

static void a_disabled_event_stands_still(void **state)
{
	uint32_t event = instructions(true, 0);
	struct test_count count;

	(void)state;
	assert_int_equal(fake.task->wanted, 0);
	tree_work(5);
	count = tree_read(event);
	assert_int_equal(count.value, 0);
	assert_int_equal(count.enabled, 0);
	core_enable(event, false);
	core_enable(event, false);
	tree_work(3);
	core_disable(event, false);
	core_disable(event, false);
	tree_work(10);
	count = tree_read(event);
	assert_int_equal(count.value, 3);
	assert_int_equal(count.enabled, 3000);
	assert_int_equal(count.running, 3000);
	core_enable(event, false);
	tree_work(2);
	assert_int_equal(tree_value(event), 5);
}

static void must_have(uint32_t event, uint64_t value)
{
	const struct test_count count = tree_read(event);

	assert_int_equal(count.value, value);
	assert_int_equal(count.enabled, 1000 * value);
	assert_int_equal(count.running, 1000 * value);
}

/* Whoever is on or off already when all are switched stays so, and so do his times. */
static void a_group_is_switched_whatever_its_members_are(void **state)
{
	uint32_t leader = instructions(false, 0);
	uint32_t off = instructions(true, leader), on = instructions(false, leader);

	(void)state;
	tree_work(5);
	core_enable(leader, true);
	tree_work(3);
	must_have(leader, 8);
	must_have(off, 3);
	must_have(on, 8);

	core_disable(leader, false);
	tree_work(7);
	assert_int_equal(state_of(on), CORE_INACTIVE);
	core_disable(leader, true);
	assert_int_equal(state_of(on), CORE_OFF);
	core_enable(leader, false);
	tree_work(2);
	must_have(leader, 10);
	must_have(on, 8);

	core_enable(on, false);
	core_disable(leader, false);
	tree_work(4);
	core_enable(leader, true);
	tree_work(1);
	must_have(leader, 11);
	must_have(off, 4);
	must_have(on, 9);
}

static void reset_clears_the_value_alone(void **state)
{
	uint32_t event = instructions(false, 0);
	struct test_count count;

	(void)state;
	tree_work(5);
	core_reset(event, false);
	tree_work(2);
	count = tree_read(event);
	assert_int_equal(count.value, 2);
	assert_int_equal(count.enabled, 7000);
	core_disable(event, false);
	core_reset(event, false);
	assert_int_equal(tree_value(event), 0);
}

static void a_group_goes_with_its_leader(void **state)
{
	uint32_t leader = instructions(true, 0), member = instructions(false, leader),
		 off = instructions(true, leader);

	(void)state;
	tree_work(5);
	assert_int_equal(state_of(member), CORE_INACTIVE);
	assert_int_equal(tree_value(member), 0);
	assert_int_equal(tree_read(member).enabled, 0);
	core_enable(leader, false);
	tree_work(3);
	assert_int_equal(tree_value(leader), 3);
	assert_int_equal(tree_value(member), 3);
	assert_int_equal(tree_read(member).enabled, 3000);
	assert_int_equal(tree_value(off), 0);
	core_disable(leader, false);
	tree_work(9);
	assert_int_equal(tree_value(member), 3);
	assert_int_equal(tree_read(member).enabled, 3000);
	assert_int_equal(state_of(member), CORE_INACTIVE);
}

static void the_group_flag_means_all_whoever_is_named(void **state)
{
	uint32_t leader = instructions(true, 0), member = instructions(true, leader);

	(void)state;
	core_enable(member, false);
	assert_int_equal(state_of(leader), CORE_OFF);
	core_enable(member, true);
	assert_int_equal(state_of(leader), CORE_ACTIVE);
	assert_int_equal(state_of(member), CORE_ACTIVE);
	tree_work(4);
	core_reset(member, true);
	tree_work(1);
	assert_int_equal(tree_value(leader), 1);
	assert_int_equal(tree_value(member), 1);
	core_disable(member, true);
	assert_int_equal(state_of(leader), CORE_OFF);
	assert_int_equal(state_of(member), CORE_OFF);
}

static void members_of_a_closed_leader_go_on_alone(void **state)
{
	uint32_t leader = instructions(false, 0), member = instructions(false, leader),
		 other = instructions(false, leader);

	(void)state;
	tree_work(3);
	tree_close(leader);
	tree_work(4);
	assert_int_equal(tree_value(member), 7);
	assert_int_equal(tree_value(other), 7);
	assert_int_equal(core_event(member)->leader, member);
	/* and may lead */
	leader = instructions(false, member);
	assert_int_equal(core_event(member)->members, 1);
	tree_close(leader);
	assert_int_equal(core_event(member)->members, 0);
	tree_close(other);
	tree_close(member);
	assert_int_equal(core_nr_events(), 0);
	assert_int_equal(fake.task->wanted, 0);
	assert_int_equal(fake.task->events, 0);
}

static void members_that_a_disabled_leader_held_back_are_set_free(void **state)
{
	uint32_t leader = instructions(true, 0), member = instructions(false, leader);

	(void)state;
	tree_work(3);
	tree_close(leader);
	tree_work(4);
	assert_int_equal(tree_value(member), 4);
	assert_int_equal(tree_read(member).enabled, 4000);
}

static void slots_are_used_again_under_another_number(void **state)
{
	uint32_t event = instructions(false, 0), generation = core_event(event)->generation;
	uint64_t id = core_event_id(event);

	(void)state;
	tree_close(event);
	assert_int_equal(instructions(false, 0), event);
	assert_int_not_equal(core_event(event)->generation, generation);
	assert_int_not_equal(core_event_id(event), id);
	assert_int_equal(core_nr_events(), 1);
}

static uint32_t formatted(uint64_t format, uint32_t group)
{
	struct perf_event_attr attr = test_instructions();

	attr.read_format = format;
	return tree_open(&attr, fake.task, -1, group);
}

static void reads_have_what_was_asked_for(void **state)
{
	uint64_t words[32];

	(void)state;
	for (uint64_t format = 0; format < 16; format++) {
		uint64_t bits = format & 7;
		uint32_t event;
		size_t size, n = 1;

		bits |= format & 8 ? PERF_FORMAT_LOST : 0;
		event = formatted(bits, 0);
		size = 8 + 8 * (size_t)__builtin_popcountll(bits);
		tree_work(2);
		assert_int_equal(core_read(event, words, size - 1), -ENOSPC);
		assert_int_equal(core_read(event, words, 0), -ENOSPC);
		assert_int_equal(core_read(event, words, sizeof(words)), size);
		assert_int_equal(words[0], 2);
		if (bits & PERF_FORMAT_TOTAL_TIME_ENABLED)
			assert_int_equal(words[n++], 2000);
		if (bits & PERF_FORMAT_TOTAL_TIME_RUNNING)
			assert_int_equal(words[n++], 2000);
		if (bits & PERF_FORMAT_ID)
			assert_int_equal(words[n++], core_event_id(event));
		if (bits & PERF_FORMAT_LOST)
			assert_int_equal(words[n++], 0);
		tree_close(event);
	}
}

static void a_group_is_read_at_once(void **state)
{
	const uint64_t all = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			     PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | PERF_FORMAT_LOST;
	uint32_t leader = formatted(all, 0), late, single;
	uint64_t words[32];

	(void)state;
	tree_work(5);
	late = formatted(PERF_FORMAT_GROUP, leader);
	single = formatted(0, leader);
	tree_work(2);
	assert_int_equal(core_read(leader, words, 95), -ENOSPC);
	assert_int_equal(core_read(leader, words, 96), 96);
	assert_int_equal(words[0], 3);
	assert_int_equal(words[1], 7000);
	assert_int_equal(words[2], 7000);
	assert_int_equal(words[3], 7);
	assert_int_equal(words[4], core_event_id(leader));
	assert_int_equal(words[6], 2);
	assert_int_equal(words[7], core_event_id(late));
	assert_int_equal(words[9], 2);
	assert_int_equal(words[10], core_event_id(single));
	/* each descriptor has its own format */
	assert_int_equal(core_read(late, words, sizeof(words)), 32);
	assert_int_equal(words[0], 3);
	assert_int_equal(words[1], 7);
	assert_int_equal(core_read(single, words, sizeof(words)), 8);
	assert_int_equal(words[0], 2);
	tree_close(late);
	assert_int_equal(core_read(leader, words, sizeof(words)), 72);
	assert_int_equal(words[0], 2);
	assert_int_equal(words[7], core_event_id(single));
}

static void software_is_looked_at_when_somebody_asks(void **state)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	uint32_t event;

	(void)state;
	fake.software[CORE_PAGE_FAULTS] = 100;
	event = tree_open(&attr, fake.task, -1, 0);
	fake.software[CORE_PAGE_FAULTS] = 103;
	assert_int_equal(tree_value(event), 3);
	core_disable(event, false);
	fake.software[CORE_PAGE_FAULTS] = 110;
	core_enable(event, false);
	fake.software[CORE_PAGE_FAULTS] = 111;
	assert_int_equal(tree_value(event), 4);
	/* what was seen from elsewhere may lag behind */
	fake.software[CORE_PAGE_FAULTS] = 90;
	assert_int_equal(tree_value(event), 4);
}

static void prctl_is_about_what_the_caller_opened(void **state)
{
	struct core_task *other = tree_clone(2, 0), *me = fake.task;
	struct perf_event_attr attr = test_instructions();
	uint32_t mine = instructions(false, 0), member = instructions(true, mine),
		 remote = tree_open(&attr, other, -1, 0), theirs;

	(void)state;
	tree_run(2);
	theirs = tree_open(&attr, me, -1, 0);
	tree_run(FIRST_PAGE);
	core_prctl(me, false);
	assert_int_equal(state_of(mine), CORE_OFF);
	assert_int_equal(state_of(remote), CORE_OFF);
	assert_int_equal(state_of(theirs), CORE_ACTIVE);
	core_prctl(me, true);
	assert_int_equal(state_of(mine), CORE_ACTIVE);
	assert_int_equal(state_of(member), CORE_ACTIVE);
	assert_int_equal(state_of(remote), CORE_ACTIVE);
	tree_close(member);
	core_prctl(other, false);
	assert_int_equal(state_of(theirs), CORE_OFF);
	assert_int_equal(state_of(mine), CORE_ACTIVE);
	tree_close(mine);
	core_prctl(me, false);
	assert_int_equal(state_of(remote), CORE_OFF);
}

static void a_kick_goes_to_others_only(void **state)
{
	struct core_task *other = tree_clone(2, 0);
	struct perf_event_attr attr = test_instructions();
	uint32_t event;

	(void)state;
	tree_close(instructions(false, 0));
	assert_int_equal(fake.kicks.nr, 0);
	event = tree_open(&attr, other, -1, 0);
	assert_int_equal(fake.kicks.nr, 1);
	assert_int_equal(fake.kicks.of[0].event, 2);
	assert_true(core_task_changed(other));
	core_disable(event, false);
	assert_int_equal(fake.kicks.nr, 2);
	core_disable(event, false);
	assert_int_equal(fake.kicks.nr, 2);
}

/* The kick would be the next image's, which knows nothing of it. */
static void who_is_replaced_is_not_kicked(void **state)
{
	struct core_task *other = tree_clone(2, 0);
	struct perf_event_attr attr = test_instructions();
	uint32_t event;

	(void)state;
	core_task_replaced(other, true);
	core_task_replaced(other, true);
	event = tree_open(&attr, other, -1, 0);
	core_disable(event, false);
	core_task_replaced(other, false);
	core_enable(event, false);
	assert_int_equal(fake.kicks.nr, 0);
	assert_int_equal(fake.stills.nr, 0);
	core_task_replaced(other, false);
	assert_int_equal(fake.kicks.nr, 1);
	assert_true(core_task_changed(other));
	core_disable(event, false);
	assert_int_equal(fake.kicks.nr, 2);
	assert_int_equal(fake.stills.nr, 1);
}

static void samples_are_counted_down_through_pauses(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event, faster;

	(void)state;
	attr.sample_period = 100;
	event = tree_open(&attr, fake.task, -1, 0);
	core_task_update(fake.task);
	assert_int_equal(fake.task->sampled, CORE_KIND_BIT(CORE_INSTRUCTIONS));
	assert_int_equal(fake.task->counter[CORE_INSTRUCTIONS], -100);
	tree_work(30);
	core_disable(event, false);
	core_task_update(fake.task);
	assert_true(fake.task->counter[CORE_INSTRUCTIONS] < -1000000);
	tree_work(50);
	core_enable(event, false);
	core_task_update(fake.task);
	assert_int_equal(fake.task->counter[CORE_INSTRUCTIONS], -70);
	/* the nearest of two */
	attr.sample_period = 20;
	faster = tree_open(&attr, fake.task, -1, 0);
	core_task_update(fake.task);
	assert_int_equal(fake.task->counter[CORE_INSTRUCTIONS], -20);
	tree_close(faster);
	core_task_update(fake.task);
	assert_int_equal(fake.task->counter[CORE_INSTRUCTIONS], -70);
	assert_int_equal(core_counter_read(fake.task, CORE_INSTRUCTIONS), 80);
	assert_int_equal(tree_value(event), 30);
}

static void a_period_is_changed_at_once(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event, counting = instructions(false, 0);

	(void)state;
	attr.sample_period = 100;
	event = tree_open(&attr, fake.task, -1, 0);
	tree_work(60);
	assert_int_equal(core_set_period(event, 25), 0);
	core_task_update(fake.task);
	assert_int_equal(fake.task->counter[CORE_INSTRUCTIONS], -25);
	assert_int_equal(core_set_period(event, 0), -EINVAL);
	assert_int_equal(core_set_period(event, 1UL << 63), -EINVAL);
	assert_int_equal(core_set_period(event, ~0UL >> 1), 0);
	assert_int_equal(core_set_period(counting, 10), -EINVAL);
	attr.freq = 1;
	event = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(core_set_period(event, 100001), -EINVAL);
	assert_int_equal(core_set_period(event, 100000), 0);
}

static void refresh_enables_what_samples(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t event;

	(void)state;
	assert_int_equal(core_refresh(instructions(true, 0), 1), -EINVAL);
	attr.sample_period = 10;
	attr.inherit = 1;
	assert_int_equal(core_refresh(tree_open(&attr, fake.task, -1, 0), 1), -EINVAL);
	attr.inherit = 0;
	attr.disabled = 1;
	event = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(core_refresh(event, 2), 0);
	assert_int_equal(core_refresh(event, 1), 0);
	assert_int_equal(state_of(event), CORE_ACTIVE);
	tree_work(29);
	assert_int_equal(state_of(event), CORE_ACTIVE);
	tree_work(1);
	assert_int_equal(state_of(event), CORE_OFF);
	assert_int_equal(tree_value(event), 30);
}

static struct perf_event_attr breakpoint(uint64_t address)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_BREAKPOINT, 0);

	attr.bp_type = 2; /* writes */
	attr.bp_addr = address;
	attr.bp_len = 4;
	return attr;
}

static int modify(uint32_t event, const struct perf_event_attr *attr)
{
	struct padded_attr padded = test_padded(attr);

	assert_int_equal(core_attr_check(&padded.attr, attr->size, true, &all_rights), 0);
	return core_modify(event, &padded.attr);
}

static void a_breakpoint_can_be_moved(void **state)
{
	struct perf_event_attr attr = breakpoint(0x1000), other = test_instructions();
	uint32_t event = tree_open(&attr, fake.task, -1, 0);

	(void)state;
	assert_int_equal(fake.task->extras, CORE_EXTRA_BREAKPOINTS);
	core_breakpoint(fake.task, 2, 0x1000, 4);
	core_breakpoint(fake.task, 2, 0x1004, 4);
	core_breakpoint(fake.task, 1, 0x1000, 4);
	assert_int_equal(tree_value(event), 1);
	attr.bp_addr = 0x2000;
	assert_int_equal(modify(event, &attr), 0);
	core_breakpoint(fake.task, 2, 0x1000, 4);
	core_breakpoint(fake.task, 2, 0x2003, 1);
	assert_int_equal(tree_value(event), 2);
	attr.sig_data = 42;
	assert_int_equal(modify(event, &attr), 0);
	assert_int_equal(core_event(event)->attr.sig_data, 42);
	attr.bp_addr = 0x2001;
	assert_int_equal(modify(event, &attr), -EINVAL);
	attr.bp_addr = 0x2000;
	attr.sample_period = 3;
	assert_int_equal(modify(event, &attr), -EINVAL);
	assert_int_equal(state_of(event), CORE_ACTIVE);
	attr.sample_period = 0;
	attr.disabled = 1;
	assert_int_equal(modify(event, &attr), 0);
	assert_int_equal(state_of(event), CORE_OFF);
	assert_int_equal(modify(event, &other), -EINVAL);
	assert_int_equal(modify(tree_open(&other, fake.task, -1, 0), &other), -EOPNOTSUPP);
}

/* ---- what the kernel counts ---- */

static uint32_t tracepoint(uint32_t group)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_TRACEPOINT, 0);

	return tree_open(&attr, fake.task, -1, group);
}

static void must_have_asked(enum core_kept what)
{
	assert_int_equal(fake.keeps.nr, 1);
	assert_int_equal(fake.keeps.of[0].what, what);
	fake.keeps.nr = 0;
}

static void what_the_kernel_counts_is_looked_at_when_it_is_wanted(void **state)
{
	uint32_t leader, member, other;

	(void)state;
	other = instructions(false, 0);
	leader = instructions(false, 0);
	member = tracepoint(leader);
	fake.kernels = 5;
	assert_int_equal(fake.keeps.nr, 0);
	assert_int_equal(tree_value(member), 5);
	must_have_asked(CORE_KEPT_READ);
	core_disable(leader, false);
	must_have_asked(CORE_KEPT_SWITCH);
	core_enable(member, true);
	must_have_asked(CORE_KEPT_SWITCH);
	core_reset(member, false);
	must_have_asked(CORE_KEPT_RESET);
	fake.kernels = 2;
	assert_int_equal(tree_value(member), 2);
	must_have_asked(CORE_KEPT_READ);
	core_prctl(fake.task, false);
	must_have_asked(CORE_KEPT_SWITCH);
	assert_int_equal(tree_value(leader), 0);
	assert_int_equal(fake.keeps.nr, 0);

	core_enable(other, true);
	assert_int_equal(tree_value(other), 0);
	assert_int_equal(fake.keeps.nr, 0);

	tree_close(leader);
	fake.keeps.nr = 0;
	assert_int_equal(tree_value(member), 2);
	must_have_asked(CORE_KEPT_READ);
	fake.keeper_gone = true;
	assert_int_equal(core_read(member, &(struct test_count){0}, sizeof(struct test_count)),
			 -ENODEV);
	assert_int_equal(tree_value(other), 0);
}

/* Without a descriptor it ends with its last mapping, of which nobody else would tell. */
static void its_keeper_is_told_when_what_was_mapped_is_gone(void **state)
{
	const uint32_t leader = instructions(false, 0), member = tracepoint(leader);
	const uint32_t other = instructions(false, 0);

	(void)state;
	fake_map(leader, 1, true);
	fake_map(member, 1, true);
	fake_map(other, 1, true);
	tree_close(leader);
	tree_close(other);
	fake_ring_unmap(other);
	assert_int_equal(fake.keeps.nr, 0);
	fake_ring_unmap(leader);
	must_have_asked(CORE_KEPT_GONE);
	fake_ring_unmap(member);
	assert_int_equal(fake.keeps.nr, 0); /* it goes on */
	fake_map(member, 1, true);
	tree_close(member);
	core_views_end(FAKE_OWNER);
	must_have_asked(CORE_KEPT_GONE);
}

static void it_goes_on_where_another_count_ended(void **state)
{
	const uint32_t event = tracepoint(0);

	(void)state;
	core_continue(event, 77, &(struct core_count){.value = 10});
	fake.kernels = 5;
	assert_int_equal(tree_value(event), 15);
	core_reset(event, false);
	fake.kernels = 1;
	assert_int_equal(tree_value(event), 1);
}

/* What it has counted of one task the kernel does not tell, and its own samples know nothing of
 * ours. */
static void not_all_of_it_goes_together_with_ours(void **state)
{
	struct perf_event_attr reads = test_instructions();
	struct perf_event_attr attr = test_attr(PERF_TYPE_TRACEPOINT, 0);
	uint32_t leader;

	(void)state;
	leader = tree_open(&reads, fake.task, -1, 0);
	attr.sample_period = 1;
	tree_open(&attr, fake.task, -1, leader);
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP;
	assert_int_equal(tree_refused(&attr, fake.task, -1, leader), EINVAL);
	attr.read_format = 0;
	tree_open(&attr, fake.task, -1, leader);
	attr.sample_type = 0;
	attr.sigtrap = attr.remove_on_exec = 1;
	assert_int_equal(tree_refused(&attr, fake.task, -1, leader), EINVAL);

	attr = test_attr(PERF_TYPE_TRACEPOINT, 0);
	reads.sample_period = 1000;
	reads.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID;
	leader = tree_open(&reads, fake.task, -1, 0);
	assert_int_equal(core_refresh(leader, 1), 0);
	tree_open(&attr, fake.task, -1, leader);
	fake.keeps.nr = 0;
	assert_int_equal(core_refresh(leader, 1), 0);
	must_have_asked(CORE_KEPT_SWITCH);
	reads.inherit = attr.inherit = 1;
	leader = tree_open(&reads, fake.task, -1, 0);
	assert_int_equal(tree_refused(&attr, fake.task, -1, leader), EINVAL);

	reads = test_instructions();
	reads.exclusive = 1;
	attr.inherit = 0;
	leader = tree_open(&reads, fake.task, -1, 0);
	assert_int_equal(tree_refused(&attr, fake.task, -1, leader), EINVAL);
}

/* What goes on while the rest of its group waits for counters is not with what may wait. */
static void it_is_not_with_what_waits_for_counters(void **state)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_TRACEPOINT, 0),
			       counted = test_instructions();
	const struct perf_event_attr clock =
		test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	uint32_t leader = tree_open(&counted, fake.task, -1, 0);

	(void)state;
	assert_int_equal(tree_refused(&attr, fake.task, -1, leader), EINVAL);
	leader = tree_open(&clock, fake.task, -1, 0);
	tree_open(&attr, fake.task, -1, leader);
	assert_int_equal(tree_refused(&counted, fake.task, -1, leader), EINVAL);
}

/* What the kernel stops in the middle of its work would leave its members on for a moment. */
static void what_leads_others_has_no_limit_of_the_kernels(void **state)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_TRACEPOINT, 0);
	uint32_t event, member;

	(void)state;
	attr.sample_period = 1;
	event = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(core_refresh(event, 3), 0);
	assert_int_equal(core_refresh(event, 2), 0);
	assert_int_equal(core_event(event)->refreshed, 5);
	member = instructions(false, event);
	assert_int_equal(core_refresh(event, 1), -EINVAL);
	tree_close(member);
	assert_int_equal(core_refresh(event, 1), 0);
}

/* At its limit a leader has what it leads stopped. */
static void its_leader_may_have_a_limit(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t leader;

	(void)state;
	attr.sample_period = 100;
	leader = tree_open(&attr, fake.task, -1, 0);
	tracepoint(leader);
	core_refresh(leader, 2);
	fake.keeps.nr = 0;
	tree_work(100);
	assert_int_equal(fake.keeps.nr, 0);
	tree_work(100);
	must_have_asked(CORE_KEPT_SWITCH);
	assert_int_equal(core_event(leader)->state, CORE_OFF);
}

static void its_count_is_of_when_a_sample_is_taken(void **state)
{
	struct perf_event_attr attr = test_instructions();

	(void)state;
	attr.sample_period = 100;
	attr.sample_type = PERF_SAMPLE_READ;
	tracepoint(tree_open(&attr, fake.task, -1, 0));
	fake.keeps.nr = 0;
	tree_work(99);
	assert_int_equal(fake.keeps.nr, 0);
	tree_work(1);
	must_have_asked(CORE_KEPT_READ);
}

static void rdpmc_needs_an_event(void **state)
{
	uint64_t value;
	uint32_t event;

	(void)state;
	tree_work(5);
	assert_false(core_rdpmc(fake.task, CORE_INSTRUCTIONS, &value));
	event = instructions(false, 0);
	tree_work(2);
	assert_true(core_rdpmc(fake.task, CORE_INSTRUCTIONS, &value));
	assert_int_equal(core_event(event)->count.value + value - core_event(event)->start, 2);
	assert_false(core_rdpmc(fake.task, CORE_HARDWARE_KINDS, &value));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(an_event_counts_from_its_opening),
		TREE_CASE(a_sum_counts_what_its_parts_count),
		TREE_CASE(the_slots_are_told_apart),
		TREE_CASE(a_disabled_event_stands_still),
		TREE_CASE(a_group_is_switched_whatever_its_members_are),
		TREE_CASE(reset_clears_the_value_alone),
		TREE_CASE(a_group_goes_with_its_leader),
		TREE_CASE(the_group_flag_means_all_whoever_is_named),
		TREE_CASE(members_of_a_closed_leader_go_on_alone),
		TREE_CASE(members_that_a_disabled_leader_held_back_are_set_free),
		TREE_CASE(slots_are_used_again_under_another_number),
		TREE_CASE(reads_have_what_was_asked_for),
		TREE_CASE(a_group_is_read_at_once),
		TREE_CASE(software_is_looked_at_when_somebody_asks),
		TREE_CASE(prctl_is_about_what_the_caller_opened),
		TREE_CASE(a_kick_goes_to_others_only),
		TREE_CASE(who_is_replaced_is_not_kicked),
		TREE_CASE(samples_are_counted_down_through_pauses),
		TREE_CASE(a_period_is_changed_at_once),
		TREE_CASE(refresh_enables_what_samples),
		TREE_CASE(a_breakpoint_can_be_moved),
		TREE_CASE(what_the_kernel_counts_is_looked_at_when_it_is_wanted),
		TREE_CASE(its_keeper_is_told_when_what_was_mapped_is_gone),
		TREE_CASE(it_goes_on_where_another_count_ended),
		TREE_CASE(not_all_of_it_goes_together_with_ours),
		TREE_CASE_TWO_COUNTERS(it_is_not_with_what_waits_for_counters),
		TREE_CASE(what_leads_others_has_no_limit_of_the_kernels),
		TREE_CASE(its_leader_may_have_a_limit),
		TREE_CASE(its_count_is_of_when_a_sample_is_taken),
		TREE_CASE(rdpmc_needs_an_event),
		TREE_CASE(clocks_stand_while_the_kernel_works),
	};

	return cmocka_run_group_tests_name("core: events of one task", tests, NULL, NULL);
}
