// SPDX-License-Identifier: MIT
/* Rings: mapping, room, loss, wakeups. What is written is read back by the library's decoder. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tally/record.h>

#include "core/arena.h"
#include "core/fake_host.h"
#include "core/fake_ring.h"
#include "core/output.h"
#include "core/ring.h"

#define PAGE ARENA_PAGE

static const struct core_rights rights = {.mlock = 64 << 10};

static int begin(void **state)
{
	(void)state;
	fake_begin();
	core_tree()->settings.max_sample_rate = UINT32_MAX; /* all of it in no time */
	return 0;
}

/* Samples of 16 bytes. */
static struct perf_event_attr small(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.sample_type = PERF_SAMPLE_IP,
		.sample_period = 1,
	};
}

static void samples(unsigned int n)
{
	fake_run(CORE_INSTRUCTIONS, n);
}

/* ---- mapping ---- */

static void sizes(void **state)
{
	static const struct {
		uint64_t offset, pages;
		int64_t error; /* 0: it is mapped */
	} cases[] = {
		{0, 0, -EINVAL}, {0, 1, 0},   {0, 2, 0},       {0, 3, 0},
		{0, 4, -EINVAL}, {0, 5, 0},   {0, 7, -EINVAL}, {0, 1025, -EPERM},
		{1, 1, -EINVAL}, {0, 129, 0},
	};
	const struct perf_event_attr attr = small();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
		int64_t at = fake_ring_map(event, cases[i].offset * PAGE, cases[i].pages * PAGE,
					   true, &rights);

		if (cases[i].error) {
			assert_int_equal(at, cases[i].error);
			continue;
		}
		assert_true(at > 0 && at % PAGE == 0);
		fake_ring_unmap(event);
		assert_int_equal(core_event(event)->ring, 0);
		assert_int_equal(core_event(event)->maps, 0);
	}
}

static void inherited_ones_need_a_processor(void **state)
{
	struct perf_event_attr attr = small();
	uint32_t event;

	(void)state;
	attr.inherit = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	assert_int_equal(fake_ring_map(event, 0, 2 * PAGE, true, &rights), -EINVAL);
	core_event(event)->cpu = 0;
	assert_true(fake_ring_map(event, 0, 2 * PAGE, true, &rights) > 0);
}

static void mapped_twice(void **state)
{
	const struct perf_event_attr attr = small();
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	assert_int_equal(fake_ring_map(event, 0, 3 * PAGE, true, &rights), -EINVAL);
	assert_int_equal(fake_ring_map(event, 0, 2 * PAGE, true, &rights), ring.at);
	samples(3);
	fake_ring_unmap(event);
	assert_int_equal(ring.page->data_head, 48);
	assert_int_equal(core_poll(event), 0);
	fake_ring_unmap(event);
	assert_int_equal(core_poll(event), POLLHUP);
	samples(1); /* goes nowhere */
	ring = fake_map(event, 2, true);
	assert_int_equal(ring.page->data_head, 0);
	samples(1);
	assert_int_equal(ring.page->data_head, 16);
}

static void pages_come_back_clean(void **state)
{
	const struct perf_event_attr attr = small();
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	int64_t first = 0;

	(void)state;
	for (unsigned int i = 0; i < 3 * CORE_RINGS; i++) {
		struct fake_ring ring = fake_map(event, 4, true);

		if (!first)
			first = ring.at;
		assert_int_equal(ring.at, first);
		assert_int_equal(ring.data[0], 0);
		samples(1);
		assert_int_not_equal(ring.data[0], 0);
		fake_ring_unmap(event);
	}
	assert_int_equal(fake.discarded, 3 * CORE_RINGS * 5 * PAGE);
}

static void all_is_given_away_once(void **state)
{
	const struct core_rights all = {.mlock = UINT64_MAX};
	const struct perf_event_attr attr = small();
	uint32_t events[64];
	uint64_t end_of_last = 0;
	unsigned int n = 0;
	int64_t at;

	(void)state;
	for (; n < 64; n++) {
		events[n] = fake_event(&attr, CORE_INSTRUCTIONS);
		at = fake_ring_map(events[n], 0, (1 + 8192) * PAGE, true, &all);
		if (at == -ENOMEM)
			break;
		assert_true((uint64_t)at >= end_of_last);
		end_of_last = (uint64_t)at + (1 + 8192) * PAGE;
		assert_true(end_of_last <= ARENA_SIZE);
	}
	assert_in_range(n, 30, 31);
	/* A hole is found again, if it is large enough. */
	fake_ring_unmap(events[3]);
	assert_int_equal(fake_ring_map(events[n], 0, (1 + 16384) * PAGE, true, &all), -ENOMEM);
	assert_true(fake_ring_map(events[n], 0, (1 + 8192) * PAGE, true, &all) > 0);
}

/* ---- locked memory ---- */

/* Whatever became of a list: a ring goes, and takes nothing with it that is another's. */
static void a_list_that_has_what_is_not_its_own(void **state)
{
	const struct perf_event_attr attr = small();
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	uint32_t other = fake_event(&attr, CORE_INSTRUCTIONS);
	uint32_t none = fake_event(&attr, CORE_INSTRUCTIONS);
	struct core_ring *ring;

	(void)state;
	fake_map(event, 1, true);
	fake_map(other, 1, true);
	ring = core_ring(core_event(event)->ring);
	core_event(none)->ring_next = ring->events;
	core_event(none)->parent = other;
	ring->events = none;
	fake_ring_unmap(event);
	assert_int_equal(ring->at, 0);
	assert_int_equal(core_event(event)->ring, 0);
	assert_int_not_equal(core_event(other)->ring, 0);
	assert_int_equal(core_ring(core_event(other)->ring)->events, other);
	core_event(none)->parent = 0;
}

static void locked_memory(void **state)
{
	/* 516 kB for each of two processors, and 64 kB of the process's own: 258 and 16 pages */
	const struct perf_event_attr attr = small();
	uint32_t first = fake_event(&attr, CORE_INSTRUCTIONS);
	uint32_t second = fake_event(&attr, CORE_INSTRUCTIONS);
	uint32_t third = fake_event(&attr, CORE_INSTRUCTIONS);
	struct core_settings *settings = &core_tree()->settings;

	(void)state;
	assert_true(fake_ring_map(first, 0, (1 + 128) * PAGE, true, &rights) > 0);
	assert_true(fake_ring_map(second, 0, (1 + 128) * PAGE, true, &rights) > 0);
	assert_true(fake_ring_map(third, 0, (1 + 8) * PAGE, true, &rights) > 0);
	fake_ring_unmap(third);
	assert_int_equal(fake_ring_map(third, 0, (1 + 16) * PAGE, true, &rights), -EPERM);
	settings->paranoid = -1;
	assert_true(fake_ring_map(third, 0, (1 + 16) * PAGE, true, &rights) > 0);
	fake_ring_unmap(third);
	settings->paranoid = 2;
	fake_ring_unmap(first);
	assert_true(fake_ring_map(third, 0, (1 + 128) * PAGE, true, &rights) > 0);
}

/* ---- room ---- */

static void wraps(void **state)
{
	/* 24 bytes do not divide a page */
	struct perf_event_attr attr = small();
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	attr.sample_type |= PERF_SAMPLE_ADDR;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 1, true);
	for (unsigned int round = 1; round <= 20; round++) {
		fake.regs[PERF_REG_X86_IP] = round;
		samples(50);
		assert_int_equal(ring.page->data_head, round * 50 * 24);
		for (unsigned int i = 0; i < 50; i++) {
			const struct tally_record *record = fake_next(&ring, &attr);

			assert_non_null(record);
			assert_int_equal(record->sample.ip, round);
		}
		assert_null(fake_next(&ring, &attr));
	}
}

static void what_does_not_fit_is_told_later(void **state)
{
	struct perf_event_attr attr = small();
	const struct tally_record *record;
	unsigned int kept = 0;
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 1, true);
	samples(300);
	assert_int_equal(ring.page->data_head, 170 * 24); /* one more would fill it */
	assert_int_equal(core_event(event)->lost, 130);
	while ((record = fake_next(&ring, &attr)) && record->type == PERF_RECORD_SAMPLE)
		kept++;
	assert_null(record);
	assert_int_equal(kept, 170);
	samples(1);
	record = fake_next(&ring, &attr);
	assert_int_equal(record->type, PERF_RECORD_LOST);
	assert_int_equal(record->lost.id, core_event(event)->id);
	assert_int_equal(record->lost.lost, 130);
	assert_int_equal(record->id.tid, 1001);
	assert_int_equal(fake_next(&ring, &attr)->type, PERF_RECORD_SAMPLE);
	assert_null(fake_next(&ring, &attr));
	samples(1);
	assert_int_equal(fake_next(&ring, &attr)->type, PERF_RECORD_SAMPLE);
}

static void any_tail_is_believed(void **state)
{
	static const uint64_t tails[] = {1, 7, UINT64_MAX, UINT64_C(1) << 63, 4097, -4096ULL};
	const struct perf_event_attr attr = small();
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 1, true);

	(void)state;
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		ring.page->data_tail = tails[i];
		memset((char *)ring.page + 1048, 0xff, 48); /* and what only we write */
		samples(600);
		assert_int_equal(ring.page->data_head % 8, 0);
	}
}

static void overwritten(void **state)
{
	const struct perf_event_attr attr = small();
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 1, false);
	const struct tally_record *record;

	(void)state;
	for (unsigned int i = 1; i <= 1000; i++) {
		fake.regs[PERF_REG_X86_IP] = i;
		samples(1);
	}
	assert_int_equal(ring.page->data_head, 16000);
	assert_int_equal(core_event(event)->lost, 0);
	ring.tail = 16000 - 4096;
	for (unsigned int i = 1000 - 255; i <= 1000; i++) {
		record = fake_next(&ring, &attr);
		assert_int_equal(record->sample.ip, i);
	}
}

static void backwards(void **state)
{
	struct perf_event_attr attr = small();
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	attr.write_backward = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 1, false);
	for (unsigned int i = 1; i <= 400; i++) {
		fake.regs[PERF_REG_X86_IP] = i;
		samples(1);
		assert_int_equal(ring.page->data_head, -16ULL * i);
	}
	ring.tail = ring.page->data_head;
	ring.head = ring.tail + 4096;
	for (unsigned int i = 400; i > 400 - 256; i--)
		assert_int_equal(fake_next(&ring, &attr)->sample.ip, i);
}

static void backwards_with_a_tail(void **state)
{
	struct perf_event_attr attr = small();
	struct fake_ring ring;
	uint32_t event;

	(void)state;
	attr.write_backward = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	ring = fake_map(event, 1, true);
	samples(300);
	assert_int_equal(ring.page->data_head, -16ULL * 255);
	assert_int_equal(core_event(event)->lost, 45);
	ring.page->data_tail = ring.page->data_head;
	samples(1);
	assert_int_equal(ring.page->data_head, -16ULL * 255 - 16 - 24); /* LOST comes first */
}

static void paused(void **state)
{
	const struct perf_event_attr attr = small();
	uint32_t event = fake_event(&attr, CORE_INSTRUCTIONS);
	struct fake_ring ring;

	(void)state;
	assert_int_equal(core_pause_output(event, true), -EINVAL);
	ring = fake_map(event, 0, true);
	assert_int_equal(core_pause_output(event, true), -EINVAL);
	samples(2);
	assert_int_equal(core_event(event)->lost, 0); /* there is nothing to be lost from */
	fake_ring_unmap(event);
	ring = fake_map(event, 1, true);
	assert_int_equal(core_pause_output(event, true), 0);
	samples(2);
	assert_int_equal(ring.page->data_head, 0);
	assert_int_equal(core_event(event)->lost, 2);
	assert_int_equal(core_pause_output(event, false), 0);
	samples(1);
	assert_int_equal(fake_next(&ring, &attr)->lost.lost, 2);
}

/* ---- who is woken ---- */

/* The sample at which the event becomes ready, and how many more it takes then. */
static void becomes_ready(uint32_t event, struct fake_ring *ring, unsigned int first,
			  unsigned int again)
{
	const struct perf_event_attr attr = small();

	samples(first - 1);
	assert_int_equal(core_poll(event), 0);
	assert_int_equal(fake.wakes.nr, 0);
	samples(1);
	assert_int_equal(fake.wakes.nr, 1);
	assert_int_equal(fake.wakes.of[0].event, event);
	assert_int_equal(fake.wakes.of[0].what, POLLIN);
	assert_int_equal(core_poll(event), POLLIN | POLLRDNORM);
	assert_int_equal(core_poll(event), 0);
	while (fake_next(ring, &attr))
		;
	samples(again - 1);
	assert_int_equal(core_poll(event), 0);
	samples(1);
	assert_int_equal(core_poll(event), POLLIN | POLLRDNORM);
	fake.wakes.nr = 0;
}

static void thresholds(void **state)
{
	static const struct {
		bool watermark;
		uint32_t wakeup;
		unsigned int first, again;
	} cases[] = {
		{false, 1, 1, 1}, {false, 3, 3, 3},	{true, 1, 1, 1},     {true, 48, 4, 3},
		{true, 47, 3, 3}, {false, 0, 129, 128}, {true, 0, 129, 128},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct perf_event_attr attr = small();
		struct fake_ring ring;
		uint32_t event;

		attr.watermark = cases[i].watermark;
		attr.wakeup_events = cases[i].wakeup;
		event = fake_event(&attr, CORE_INSTRUCTIONS);
		ring = fake_map(event, 1, true);
		becomes_ready(event, &ring, cases[i].first, cases[i].again);
		core_event(event)->state = CORE_OFF;
	}
}

static void who_has_not_looked_is_not_woken_again(void **state)
{
	struct perf_event_attr attr = small();
	uint32_t event;

	(void)state;
	attr.wakeup_events = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	fake_map(event, 1, true);
	samples(10);
	assert_int_equal(fake.wakes.nr, 1);
	assert_int_equal(core_poll(event), POLLIN | POLLRDNORM);
	samples(10);
	assert_int_equal(fake.wakes.nr, 2);
}

/* ---- one ring for several ---- */

/* O_ASYNC: of samples each overflow tells, of other records those that pass the watermark. */
static void signals(void **state)
{
	struct perf_event_attr attr = small();
	uint32_t event;

	(void)state;
	attr.comm = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = 1;
	event = fake_event(&attr, CORE_INSTRUCTIONS);
	fake_map(event, 1, true);
	core_task_comm(fake.task, fake.task, "quiet");
	assert_int_equal(fake.signals.nr, 0);
	core_event(event)->owner = (struct core_owner){.pid = 1000, .async = true};
	core_task_comm(fake.task, fake.task, "one");
	assert_int_equal(fake.signals.nr, 1);
	assert_int_equal(fake.signals.of[0].event, event);
	assert_int_equal(fake.signals.of[0].what, POLL_IN);
	core_task_comm(fake.task, fake.task, "another"); /* whether or not somebody has looked */
	assert_int_equal(fake.signals.nr, 2);
	samples(1);
	assert_int_equal(fake.signals.nr, 3);
}

static void shared(void **state)
{
	struct perf_event_attr attr = small();
	uint32_t target, other;
	struct fake_ring ring;

	(void)state;
	attr.wakeup_events = 1;
	target = fake_event(&attr, CORE_LOADS);
	other = fake_event(&attr, CORE_INSTRUCTIONS);
	assert_int_equal(core_set_output(other, target), -EINVAL); /* nothing is mapped */
	ring = fake_map(target, 1, true);
	assert_int_equal(core_set_output(other, target), 0);
	assert_int_equal(core_set_output(target, other), -EINVAL); /* it is mapped */
	assert_int_equal(core_set_output(other, other), -EINVAL);
	assert_int_equal(fake_ring_map(other, 0, 2 * PAGE, true, &rights), -EBUSY);
	samples(1);
	assert_int_equal(ring.page->data_head, 16);
	assert_int_equal(fake.wakes.nr, 2); /* who polls either */
	assert_int_equal(core_poll(target), POLLIN | POLLRDNORM);
	assert_int_equal(core_poll(other), 0);
	assert_int_equal(core_set_output(other, 0), 0);
	samples(1);
	assert_int_equal(ring.page->data_head, 16);
	assert_int_equal(core_set_output(other, target), 0);
	fake_ring_unmap(target);
	assert_int_equal(core_event(other)->ring, 0);
	assert_int_equal(core_poll(other), POLLHUP);
	samples(1);
}

static void not_any_two_share(void **state)
{
	struct perf_event_attr attr = small();
	uint32_t target = fake_event(&attr, CORE_LOADS), other;

	(void)state;
	fake_map(target, 1, true);
	other = fake_event(&attr, CORE_LOADS);
	core_event(other)->cpu = 1;
	assert_int_equal(core_set_output(other, target), -EINVAL);
	attr.use_clockid = 1;
	assert_int_equal(core_set_output(fake_event(&attr, CORE_LOADS), target), -EINVAL);
	attr.use_clockid = 0;
	attr.write_backward = 1;
	assert_int_equal(core_set_output(fake_event(&attr, CORE_LOADS), target), -EINVAL);
}

static void leaving(void **state)
{
	const struct perf_event_attr attr = small();
	uint32_t target = fake_event(&attr, CORE_LOADS), others[3];
	struct fake_ring ring = fake_map(target, 1, true);

	(void)state;
	for (int i = 0; i < 3; i++) {
		others[i] = fake_event(&attr, CORE_INSTRUCTIONS);
		assert_int_equal(core_set_output(others[i], target), 0);
	}
	core_ring_leave(core_event(others[1]));
	samples(1);
	assert_int_equal(ring.page->data_head, 32);
	core_ring_leave(core_event(others[2]));
	core_ring_leave(core_event(others[0]));
	samples(1);
	assert_int_equal(ring.page->data_head, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, fake_teardown)
		CASE(sizes),
		CASE(inherited_ones_need_a_processor),
		CASE(mapped_twice),
		CASE(pages_come_back_clean),
		CASE(all_is_given_away_once),
		CASE(a_list_that_has_what_is_not_its_own),
		CASE(locked_memory),
		CASE(wraps),
		CASE(what_does_not_fit_is_told_later),
		CASE(any_tail_is_believed),
		CASE(overwritten),
		CASE(backwards),
		CASE(backwards_with_a_tail),
		CASE(paused),
		CASE(thresholds),
		CASE(who_has_not_looked_is_not_woken_again),
		CASE(signals),
		CASE(shared),
		CASE(not_any_two_share),
		CASE(leaving),
	};

	return cmocka_run_group_tests_name("core/ring", tests, NULL, NULL);
}
