// SPDX-License-Identifier: MIT
/* Overflows: when they happen, how often, and who is told. */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <tally/record.h>

#include "core/arena.h"
#include "core/fake_host.h"
#include "core/fake_ring.h"
#include "core/time.h"

#define MILLISECOND UINT64_C(1000000)

static struct perf_event_attr every(uint64_t period)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD,
		.sample_period = period,
	};
}

static unsigned int count_records(struct fake_ring *ring, const struct perf_event_attr *attr,
				  uint32_t type)
{
	const struct tally_record *record;
	unsigned int n = 0;

	while ((record = fake_next(ring, attr)))
		n += record->type == type;
	return n;
}

static uint64_t counter(enum core_kind kind)
{
	return core_counter_read(fake.task, kind);
}

/* ---- periods ---- */

static void exactly_at_the_period(void **state)
{
	const struct perf_event_attr attr = every(1000);
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	fake_run(CORE_INSTRUCTIONS, 999);
	assert_null(fake_next(&ring, &attr));
	fake_run(CORE_INSTRUCTIONS, 1);
	assert_int_equal(fake_next(&ring, &attr)->sample.period, 1000);
	fake_run(CORE_INSTRUCTIONS, 10000);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 10);
	assert_int_equal(counter(CORE_INSTRUCTIONS), 11000);
}

/* Each of several events on one counter at its own multiples, whatever the others do. */
static void several_on_one_counter(void **state)
{
	const uint64_t periods[] = {7, 100, 101, 1000};
	struct perf_event_attr attrs[4];
	struct fake_ring rings[4];

	(void)state;
	fake.tsc = 0;
	for (int i = 0; i < 4; i++) {
		attrs[i] = every(periods[i]);
		rings[i] = fake_map(fake_event(&attrs[i], CORE_BRANCHES), 4, true);
	}
	for (int i = 0; i < 1000; i++) {
		fake.tsc += MILLISECOND;
		fake_run(CORE_BRANCHES, 3);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(count_records(&rings[i], &attrs[i], PERF_RECORD_SAMPLE),
				 3000 / periods[i]);
}

/* What is left of a period is kept while the event does not count. */
static void disabled_in_between(void **state)
{
	const struct perf_event_attr attr = every(100);
	uint32_t event = fake_event(&attr, CORE_LOADS);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	fake_run(CORE_LOADS, 60);
	core_disable(event, false);
	core_task_update(fake.task);
	fake_run(CORE_LOADS, 500);
	core_enable(event, false);
	core_task_update(fake.task);
	fake_run(CORE_LOADS, 39);
	assert_null(fake_next(&ring, &attr));
	fake_run(CORE_LOADS, 1);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1);
}

/* A model counts in steps: what one of them passes is told as often as it was passed. */
static void steps(void **state)
{
	const struct perf_event_attr attr = every(10);
	uint32_t event = fake_event(&attr, CORE_CYCLES);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	fake.task->counter[CORE_CYCLES] += 35;
	core_overflow(fake.task, CORE_CYCLES);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 3);
	fake_run(CORE_CYCLES, 4);
	assert_null(fake_next(&ring, &attr));
	fake_run(CORE_CYCLES, 1);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1);
}

/* By a frequency a step is one sample, which stands for all periods that it passed. */
static void steps_by_frequency(void **state)
{
	struct perf_event_attr attr = every(1000);
	struct fake_ring ring;
	const struct tally_record *record;
	uint64_t told = 0;

	(void)state;
	attr.freq = 1;
	ring = fake_map(fake_event(&attr, CORE_CYCLES), 1, true);
	for (int n = 1; n <= 10; n++) {
		fake.task->counter[CORE_CYCLES] += 100000;
		core_overflow(fake.task, CORE_CYCLES);
		record = fake_next(&ring, &attr);
		if (record)
			told += record->sample.period;
		assert_null(fake_next(&ring, &attr));
	}
	assert_in_range(told, 900000, 1000000);
}

/* A clock that was passed several times is told once, as timers do, and goes on in step. */
static void clocks(void **state)
{
	const struct perf_event_attr attr = every(100000);
	uint32_t event = fake_event(&attr, CORE_TASK_CLOCK);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	fake.software[CORE_TASK_CLOCK] = 350000;
	fake.task->software = CORE_KIND_BIT(CORE_TASK_CLOCK);
	core_overflow(fake.task, CORE_TASK_CLOCK);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1);
	fake.software[CORE_TASK_CLOCK] = 399999;
	core_overflow(fake.task, CORE_TASK_CLOCK);
	assert_null(fake_next(&ring, &attr));
	fake.software[CORE_TASK_CLOCK] = 400000;
	core_overflow(fake.task, CORE_TASK_CLOCK);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1);
}

/* Of a clock that is always due there is time for something else in between. */
static void a_clock_that_is_always_due(void **state)
{
	const struct perf_event_attr attr = every(1);
	uint32_t event = fake_event(&attr, CORE_CPU_CLOCK);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	fake.software[CORE_CPU_CLOCK] = 100;
	fake.task->software = CORE_KIND_BIT(CORE_CPU_CLOCK);
	core_overflow(fake.task, CORE_CPU_CLOCK);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1);
	fake.software[CORE_CPU_CLOCK] = 10099;
	core_overflow(fake.task, CORE_CPU_CLOCK);
	assert_null(fake_next(&ring, &attr));
	fake.software[CORE_CPU_CLOCK] = 10100;
	core_overflow(fake.task, CORE_CPU_CLOCK);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1);
}

/* Things that happen one by one are told each, if samples tell how many they stand for. */
static void software_with_periods(void **state)
{
	const struct perf_event_attr attr = every(5);
	uint32_t event = fake_event(&attr, CORE_PAGE_FAULTS);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	fake_run(CORE_PAGE_FAULTS, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fake_next(&ring, &attr)->sample.period, 1);
	assert_null(fake_next(&ring, &attr));
}

static void a_new_period(void **state)
{
	struct perf_event_attr attr = every(100);
	uint32_t event = fake_event(&attr, CORE_STORES);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	fake_run(CORE_STORES, 90);
	assert_int_equal(core_set_period(event, 0), -EINVAL);
	assert_int_equal(core_set_period(event, 1ULL << 63), -EINVAL);
	assert_int_equal(core_set_period(event, 20), 0);
	core_task_update(fake.task);
	fake_run(CORE_STORES, 19);
	assert_null(fake_next(&ring, &attr));
	fake_run(CORE_STORES, 1);
	assert_int_equal(fake_next(&ring, &attr)->sample.period, 20);
}

/* ---- frequencies ---- */

/* Samples in the second second of something that happens @rate times in each. */
static uint64_t frequency_with(uint64_t asked, uint64_t rate, enum core_kind kind,
			       uint64_t sample_type)
{
	struct perf_event_attr attr = every(asked);
	struct fake_ring ring;
	unsigned int n = 0;
	uint32_t event;

	attr.freq = 1;
	attr.sample_type |= sample_type;
	event = fake_event(&attr, kind);
	ring = fake_map(event, 16, true);
	core_clock_start(fake.task);
	fake.rate = rate;
	for (int i = 0; i < 200; i++) {
		if (i == 100)
			n = 0;
		fake_run(kind, rate / 100);
		n += count_records(&ring, &attr, PERF_RECORD_SAMPLE);
	}
	core_disable(event, false);
	core_task_update(fake.task);
	fake_ring_unmap(event);
	return n;
}

static uint64_t frequency(uint64_t asked, uint64_t rate)
{
	return frequency_with(asked, rate, CORE_INSTRUCTIONS, 0);
}

static void frequencies(void **state)
{
	(void)state;
	assert_in_range(frequency(1000, 1000000000), 950, 1050);
	assert_in_range(frequency(100, 1000000000), 95, 105);
	assert_in_range(frequency(4000, 10000000), 3800, 4200);
	/* less happens than was asked for: each is told */
	assert_int_equal(frequency(50000, 10000), 10000);
}

/* Before each sample the thread is slow for a while, the slower if it is modelled what is sampled:
 * that stays a small part of the way, whatever is asked for. */
static void a_frequency_with_branches_has_its_limits(void **state)
{
	const uint64_t branches = PERF_SAMPLE_BRANCH_STACK;

	(void)state;
	assert_in_range(frequency_with(1000, 100000000, CORE_CYCLES, branches), 950, 1050);
	assert_in_range(frequency_with(50000, 100000000, CORE_CYCLES, branches), 1500, 1550);
	assert_in_range(frequency_with(50000, 100000000, CORE_INSTRUCTIONS, branches), 24000,
			24500);
}

/* Ten times as fast, and back: the period follows within some samples. */
static void a_frequency_follows_the_program(void **state)
{
	struct perf_event_attr attr = every(1000);
	uint64_t counts[3], rates[] = {100000000, 1000000000, 100000000};
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	attr.freq = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 64, true);
	core_clock_start(fake.task);
	for (int i = 0; i < 3; i++) {
		fake.rate = rates[i];
		fake_run(CORE_INSTRUCTIONS, rates[i]);
		counts[i] = count_records(&ring, &attr, PERF_RECORD_SAMPLE);
	}
	assert_in_range(counts[0], 950, 1100);
	assert_in_range(counts[1], 950, 1100);
	assert_in_range(counts[2], 950, 1100);
}

/* Samples while 2 s are run. Every 10 ms others run for @others, which the task's own clock takes
 * for its time. */
static unsigned int frequency_beside(uint64_t asked, uint64_t others)
{
	struct perf_event_attr attr = every(asked);
	struct fake_ring ring;
	unsigned int n = 0;
	uint32_t event;

	attr.freq = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 64, true);
	core_clock_start(fake.task);
	fake.rate = 1000000000;
	for (int i = 0; i < 200; i++) {
		fake_run(CORE_INSTRUCTIONS, 10000000);
		fake.tsc += others;
		fake.others += others;
		n += count_records(&ring, &attr, PERF_RECORD_SAMPLE);
	}
	core_disable(event, false);
	core_task_update(fake.task);
	fake_ring_unmap(event);
	return n;
}

static void a_frequency_while_others_run(void **state)
{
	(void)state;
	assert_in_range(frequency_beside(100, 40000000), 195, 220);
	assert_in_range(frequency_beside(1000, 40000000), 1950, 2100);
	assert_in_range(frequency_beside(4000, 4000000), 8000, 8000 * 14 / 10);
}

/* ---- rates ---- */

static void too_many_are_throttled(void **state)
{
	struct perf_event_attr attr = every(10);
	const struct tally_record *record;
	unsigned int kept = 0, after = 0;
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	fake.tsc = 4 * MILLISECOND;
	attr.sample_type |= PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_ID;
	attr.sample_id_all = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 64, true);
	fake_run(CORE_INSTRUCTIONS, 100000); /* 10000 in no time; 400 a tick are permitted */
	while ((record = fake_next(&ring, &attr)) && record->type == PERF_RECORD_SAMPLE)
		kept++;
	assert_int_equal(kept, 400);
	assert_int_equal(record->type, PERF_RECORD_THROTTLE);
	assert_int_equal(record->throttle.id, core_event(event)->id);
	assert_int_equal(record->throttle.stream_id, record->id.stream_id);
	assert_int_equal(record->throttle.time, 4 * MILLISECOND);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 0);
	assert_int_equal(counter(CORE_INSTRUCTIONS), 100000); /* counted all the same */
	fake.tsc += 4 * MILLISECOND;
	fake_run(CORE_INSTRUCTIONS, 1500); /* it looks from time to time */
	record = fake_next(&ring, &attr);
	assert_int_equal(record->type, PERF_RECORD_UNTHROTTLE);
	while ((record = fake_next(&ring, &attr)) && record->type == PERF_RECORD_SAMPLE)
		after++;
	assert_in_range(after, 100, 150);
}

/* Who asks for each hit of a breakpoint gets it. */
static void breakpoints_are_not_throttled(void **state)
{
	struct perf_event_attr attr = every(1);
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = 0x1000;
	attr.bp_len = 4;
	event = fake_event(&attr, CORE_BREAKPOINT);
	ring = fake_map(event, 16, true);
	for (int i = 0; i < 1000; i++)
		core_breakpoint(fake.task, HW_BREAKPOINT_W, 0x1000, 4);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1000);
}

/* ---- breakpoints ---- */

static void breakpoints(void **state)
{
	static const struct {
		unsigned int type;
		uint64_t address, size;
		bool hit;
	} cases[] = {
		{HW_BREAKPOINT_W, 0x1000, 4, true},  {HW_BREAKPOINT_W, 0x1003, 1, true},
		{HW_BREAKPOINT_W, 0x1004, 1, false}, {HW_BREAKPOINT_W, 0xfff, 1, false},
		{HW_BREAKPOINT_W, 0xfff, 2, true},   {HW_BREAKPOINT_W, 0xff0, 64, true},
		{HW_BREAKPOINT_R, 0x1000, 4, false}, {HW_BREAKPOINT_X, 0x1000, 1, false},
	};
	struct perf_event_attr attr = every(1);
	struct fake_ring ring;
	uint64_t hits = 0;
	uint32_t event;

	(void)state;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = 0x1000;
	attr.bp_len = 4;
	attr.sample_type = PERF_SAMPLE_ADDR;
	event = fake_event(&attr, CORE_BREAKPOINT);
	ring = fake_map(event, 1, true);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tally_record *record;

		core_breakpoint(fake.task, cases[i].type, cases[i].address, cases[i].size);
		hits += cases[i].hit;
		assert_int_equal(core_event(event)->count.value, hits);
		record = fake_next(&ring, &attr);
		assert_int_equal(!!record, cases[i].hit);
		if (record) {
			assert_int_equal(record->sample.addr, 0x1000);
			assert_false(record->misc & PERF_RECORD_MISC_EXACT_IP);
		}
	}
}

static void breakpoints_with_a_period(void **state)
{
	struct perf_event_attr attr = every(3);
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_addr = 0x1000;
	attr.bp_len = 8;
	attr.sample_type = PERF_SAMPLE_IP;
	event = fake_event(&attr, CORE_BREAKPOINT);
	ring = fake_map(event, 1, true);
	for (int i = 0; i < 8; i++) {
		core_breakpoint(fake.task, HW_BREAKPOINT_X, 0x1000, 1);
		core_breakpoint(fake.task, HW_BREAKPOINT_X, 0x1001, 1);
	}
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 2);
	assert_int_equal(core_event(event)->count.value, 8);
}

/* ---- who is told ---- */

static void signals(void **state)
{
	struct perf_event_attr attr = every(10);
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);

	(void)state;
	fake_run(CORE_INSTRUCTIONS, 30);
	assert_int_equal(fake.signals.nr, 0); /* nobody asked */
	core_event(event)->owner.async = true;
	fake_run(CORE_INSTRUCTIONS, 30); /* without a ring, too */
	assert_int_equal(fake.signals.nr, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fake.signals.of[i].event, event);
		assert_int_equal(fake.signals.of[i].what, POLL_IN);
	}
}

static void a_limit(void **state)
{
	struct perf_event_attr attr = every(10);
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	core_disable(event, false);
	core_event(event)->owner.async = true;
	assert_int_equal(core_refresh(event, 3), 0);
	core_task_update(fake.task);
	fake_run(CORE_INSTRUCTIONS, 65);
	assert_int_equal(fake.signals.nr, 3);
	assert_int_equal(fake.signals.of[1].what, POLL_IN);
	assert_int_equal(fake.signals.of[2].what, POLL_HUP);
	assert_int_equal(core_event(event)->state, CORE_OFF);
	assert_int_equal(core_event(event)->count.value, 30);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 3);
}

/* Counted in a step that passes the limit: as if it had been counted one by one. */
static void a_limit_within_a_step(void **state)
{
	struct perf_event_attr attr = every(10);
	uint32_t event;

	(void)state;
	attr.sample_type = PERF_SAMPLE_IP;
	event = fake_event(&attr, CORE_PAGE_FAULTS);
	core_disable(event, false);
	assert_int_equal(core_refresh(event, 2), 0);
	core_task_update(fake.task);
	fake.task->counter[CORE_PAGE_FAULTS] += 47;
	core_overflow(fake.task, CORE_PAGE_FAULTS);
	assert_int_equal(core_event(event)->state, CORE_OFF);
	assert_int_equal(core_event(event)->count.value, 20);
}

/* What is taken back is so in the page, too, whatever was told there when it was switched off. */
static void the_page_behind_a_limit(void **state)
{
	struct perf_event_attr attr = every(10);
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 0, true);

	(void)state;
	core_disable(event, false);
	assert_int_equal(core_refresh(event, 2), 0);
	core_task_update(fake.task);
	fake.task->counter[CORE_INSTRUCTIONS] += 47;
	core_overflow(fake.task, CORE_INSTRUCTIONS);
	assert_int_equal(core_event(event)->state, CORE_OFF);
	assert_int_equal(core_event(event)->count.value, 20);
	assert_int_equal(ring.page->index, 0);
	assert_int_equal(ring.page->offset, 20);
}

/* What has been counted since is as little as before. */
static void a_reset_behind_a_limit(void **state)
{
	struct perf_event_attr attr = every(10);
	uint32_t event = fake_event(&attr, CORE_CYCLES);

	(void)state;
	core_disable(event, false);
	assert_int_equal(core_refresh(event, 1), 0);
	core_task_update(fake.task);
	fake.task->counter[CORE_CYCLES] += 47;
	assert_int_equal(core_reset(event, false), 0);
	fake.task->counter[CORE_CYCLES] += 2;
	core_overflow(fake.task, CORE_CYCLES);
	assert_int_equal(core_event(event)->state, CORE_OFF);
	assert_int_equal(core_event(event)->count.value, 0);
}

/* However many at once. */
static void page_faults_are_not_throttled(void **state)
{
	struct perf_event_attr attr = every(1);
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	event = fake_event(&attr, CORE_PAGE_FAULTS);
	ring = fake_map(event, 16, true);
	fake.task->counter[CORE_PAGE_FAULTS] += 1000;
	core_overflow(fake.task, CORE_PAGE_FAULTS);
	assert_int_equal(count_records(&ring, &attr, PERF_RECORD_SAMPLE), 1000);
}

static void traps(void **state)
{
	struct perf_event_attr attr = every(1);
	uint32_t event;

	(void)state;
	attr.sigtrap = 1;
	attr.bp_type = HW_BREAKPOINT_RW;
	attr.bp_addr = 0x2000;
	attr.bp_len = 8;
	event = fake_event(&attr, CORE_BREAKPOINT);
	core_breakpoint(fake.task, HW_BREAKPOINT_R, 0x2004, 4);
	assert_int_equal(fake.traps.nr, 1);
	assert_int_equal(fake.traps.of[0].event, event);
	assert_int_equal(fake.traps.of[0].address, 0x2000);
}

/* Copies write to the ring and tell the owner of the event that was opened. */
static void copies(void **state)
{
	struct perf_event_attr attr = every(10);
	uint32_t opened, copy;
	const struct tally_record *record;
	struct fake_ring ring;

	(void)state;
	attr.sample_type |= PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;
	attr.wakeup_events = 1;
	opened = fake_event(&attr, CORE_LOADS);
	copy = fake_event(&attr, CORE_INSTRUCTIONS);
	core_event(copy)->parent = opened;
	core_event(opened)->owner.async = true;
	ring = fake_map(opened, 1, true);
	fake_run(CORE_INSTRUCTIONS, 10);
	record = fake_next(&ring, &attr);
	assert_int_equal(record->id.id, core_event(opened)->id);
	assert_int_equal(record->id.stream_id, core_event(copy)->id);
	assert_int_equal(fake.signals.of[0].event, opened);
	assert_int_equal(fake.wakes.of[0].event, opened);
	ring.page->data_tail = ring.page->data_head - 4095;
	fake_run(CORE_INSTRUCTIONS, 10);
	assert_int_equal(core_event(opened)->lost, 1);
	assert_int_equal(core_event(copy)->lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE_CASE(exactly_at_the_period),
		FAKE_CASE(several_on_one_counter),
		FAKE_CASE(disabled_in_between),
		FAKE_CASE(steps),
		FAKE_CASE(steps_by_frequency),
		FAKE_CASE(clocks),
		FAKE_CASE(a_clock_that_is_always_due),
		FAKE_CASE(software_with_periods),
		FAKE_CASE(a_new_period),
		FAKE_CASE(frequencies),
		FAKE_CASE(a_frequency_with_branches_has_its_limits),
		FAKE_CASE(a_frequency_follows_the_program),
		FAKE_CASE(a_frequency_while_others_run),
		FAKE_CASE(too_many_are_throttled),
		FAKE_CASE(breakpoints_are_not_throttled),
		FAKE_CASE(breakpoints),
		FAKE_CASE(breakpoints_with_a_period),
		FAKE_CASE(signals),
		FAKE_CASE(a_limit),
		FAKE_CASE(a_limit_within_a_step),
		FAKE_CASE(the_page_behind_a_limit),
		FAKE_CASE(a_reset_behind_a_limit),
		FAKE_CASE(page_faults_are_not_throttled),
		FAKE_CASE(traps),
		FAKE_CASE(copies),
	};

	return cmocka_run_group_tests_name("core/overflow", tests, NULL, NULL);
}
