// SPDX-License-Identifier: MIT
/* The mmap page, read by the protocol that <linux/perf_event.h> gives; and poll(2). */
#include <linux/perf_event.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/fake_host.h"
#include "core/fake_ring.h"
#include "core/output.h"
#include "core/ring.h"
#include "core/test_tree.h"
#include "core/time.h"

static int begin(void **state)
{
	(void)state;
	fake_begin();
	core_clock_start(fake.task);
	return 0;
}

static const struct perf_event_attr counting = {.size = sizeof(struct perf_event_attr)};

static uint64_t rdpmc(uint32_t index)
{
	uint64_t value;

	assert_true(core_rdpmc(fake.task, index, &value));
	return value;
}

static uint64_t read_in_user_space(const struct perf_event_mmap_page *page)
{
	uint64_t count = (uint64_t)page->offset;
	unsigned int unused = 64 - page->pmc_width;

	if (page->cap_user_rdpmc && page->index)
		count += (uint64_t)((int64_t)(rdpmc(page->index - 1) << unused) >> unused);
	return count;
}

/* How long the event has been enabled by the time stamp counter's word. */
static uint64_t enabled_in_user_space(const struct perf_event_mmap_page *page)
{
	uint64_t since;

	assert_true(page->cap_user_time);
	since = page->time_offset + (fake.tsc * page->time_mult >> page->time_shift);
	return page->time_enabled + since;
}

static void layout(void **state)
{
	uint32_t event = fake_event(&counting, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 4, true);
	const unsigned char *bytes = (const unsigned char *)ring.page;

	(void)state;
	assert_int_equal(ring.page->version, 0);
	assert_int_equal(ring.page->compat_version, 0);
	assert_int_equal(ring.page->lock % 2, 0);
	assert_int_equal(ring.page->cap_bit0, 0);
	assert_int_equal(ring.page->cap_bit0_is_deprecated, 1);
	assert_int_equal(ring.page->cap_user_time_short, 0);
	assert_int_equal(ring.page->size, offsetof(struct perf_event_mmap_page, __reserved));
	for (size_t i = ring.page->size; i < 1024; i++)
		assert_int_equal(bytes[i], 0);
	assert_int_equal(ring.page->data_offset, ARENA_PAGE);
	assert_int_equal(ring.page->data_size, 4 * ARENA_PAGE);
	assert_int_equal(ring.page->data_head, 0);
	assert_int_equal(ring.page->data_tail, 0);
	assert_int_equal(ring.page->aux_size, 0);
}

/* Then it is read(2) that tells. */
static void no_index_leads_to_counts_of_others(void **state)
{
	uint32_t event = fake_event(&counting, CORE_LOADS);
	struct fake_ring ring = fake_map(event, 0, true);

	(void)state;
	assert_int_equal(core_event(event)->state, CORE_ACTIVE);
	assert_int_equal(ring.page->index, CORE_LOADS + 1);
	core_event(event)->everybody = true;
	core_page_update(core_event(event));
	assert_int_equal(ring.page->index, 0);
	core_event(event)->everybody = false;
	fake.task->process++; /* than that of the process that has mapped it */
	core_page_update(core_event(event));
	assert_int_equal(ring.page->index, 0);
	fake.task->process--;
	core_page_update(core_event(event));
	assert_int_equal(ring.page->index, CORE_LOADS + 1);
}

static void counts(void **state)
{
	uint32_t event = fake_event(&counting, CORE_LOADS);
	struct fake_ring ring;
	uint32_t lock;

	(void)state;
	fake_run(CORE_LOADS, 1000);
	ring = fake_map(event, 0, true);
	assert_int_not_equal(ring.page->index, 0);
	assert_int_equal(read_in_user_space(ring.page), 1000);
	fake_run(CORE_LOADS, 5);
	assert_int_equal(read_in_user_space(ring.page), 1005);
	lock = ring.page->lock;
	core_disable(event, false);
	assert_int_equal(ring.page->index, 0);
	assert_int_equal(ring.page->offset, 1005);
	assert_true(ring.page->lock > lock && ring.page->lock % 2 == 0);
	fake_run(CORE_LOADS, 500);
	assert_int_equal(read_in_user_space(ring.page), 1005);
	core_enable(event, false);
	fake_run(CORE_LOADS, 10);
	assert_int_equal(read_in_user_space(ring.page), 1015);
	core_reset(event, false);
	assert_int_equal(read_in_user_space(ring.page), 0);
	fake_run(CORE_LOADS, 1);
	assert_int_equal(read_in_user_space(ring.page), 1);
}

/* However far the counter's words are apart. */
static void counts_while_somebody_samples(void **state)
{
	struct perf_event_attr sampling = counting;
	uint32_t event = fake_event(&counting, CORE_BRANCHES);
	struct fake_ring ring = fake_map(event, 0, true);

	(void)state;
	sampling.sample_period = 7;
	fake_event(&sampling, CORE_BRANCHES);
	for (unsigned int i = 1; i < 50; i++) {
		fake_run(CORE_BRANCHES, 1);
		assert_int_equal(read_in_user_space(ring.page), i);
	}
}

static void times(void **state)
{
	uint32_t event = fake_event(&counting, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 0, true);

	(void)state;
	assert_int_equal(enabled_in_user_space(ring.page), 0);
	fake.tsc += 1000;
	assert_int_equal(enabled_in_user_space(ring.page), 1000);
	core_disable(event, false);
	assert_int_equal(ring.page->time_enabled, 1000);
	assert_int_equal(ring.page->time_running, 1000);
	fake.tsc += 500;
	core_enable(event, false);
	assert_int_equal(enabled_in_user_space(ring.page), 1000);
	fake.tsc += 10;
	assert_int_equal(enabled_in_user_space(ring.page), 1010);
}

/* As in the kernel's pages some time has passed, and readers may divide by it. */
static void times_of_one_just_enabled(void **state)
{
	uint32_t event = fake_event(&counting, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 0, true);

	(void)state;
	core_disable(event, false);
	assert_int_equal(ring.page->time_running, 0);
	fake.tick = 3;
	core_enable(event, false);
	assert_in_range(ring.page->time_running, 1, 1000);
	assert_int_equal(ring.page->time_enabled, ring.page->time_running);
	/* it was written when it says */
	assert_in_range(enabled_in_user_space(ring.page), ring.page->time_enabled,
			ring.page->time_enabled + 100);
	core_disable(event, false);
	assert_in_range(ring.page->time_enabled, 1, 1000);
	assert_int_equal(ring.page->time_enabled, ring.page->time_running);
}

/* Who finds the times apart takes the count for an estimate: however a group is switched. */
static void times_of_a_group_are_the_same(void **state)
{
	struct perf_event_attr attr = test_instructions();
	uint32_t events[2];
	struct fake_ring rings[2];

	(void)state;
	events[0] = tree_open(&attr, fake.task, -1, 0);
	events[1] = tree_open(&attr, fake.task, -1, events[0]);
	for (unsigned int which = 0; which < 2; which++)
		rings[which] = fake_map(events[which], 0, true);
	fake.tick = 3;
	for (unsigned int i = 0; i < 16; i++) {
		if (i & 4)
			core_enable(events[i >> 1 & 1], i & 1);
		else
			core_disable(events[i >> 1 & 1], i & 1);
		for (unsigned int which = 0; which < 2; which++)
			assert_int_equal(rings[which].page->time_enabled,
					 rings[which].page->time_running);
	}
}

/* What passes in system calls is not the task's, also for who reads the page behind one. */
static void times_behind_a_system_call(void **state)
{
	uint32_t event = fake_event(&counting, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 0, true);

	(void)state;
	fake.tsc += 1000;
	core_clock_stop(fake.task);
	fake.tsc += 1000000;
	core_clock_start(fake.task);
	fake.tsc += 10;
	assert_int_equal(enabled_in_user_space(ring.page), 1010);
	core_disable(event, false);
	core_clock_stop(fake.task);
	core_clock_start(fake.task);
	assert_false(fake.task->mapped); /* nothing to be kept up to date any more */
	core_enable(event, false);
	assert_true(fake.task->mapped);
	assert_int_equal(enabled_in_user_space(ring.page), 1010);
}

/* Who looks from elsewhere while the task is about to stop sees a clock that is late, and then is
 * not. */
static void times_do_not_go_back(void **state)
{
	uint32_t event = fake_event(&counting, CORE_INSTRUCTIONS);
	struct fake_ring ring = fake_map(event, 0, true);
	uint64_t enabled;

	(void)state;
	fake.tsc += 5000;
	core_page_update(core_event(event));
	enabled = ring.page->time_enabled;
	assert_true(enabled >= 5000);
	fake.task->clock_tsc += 3000; /* it had stopped for that long */
	core_disable(event, false);
	assert_int_equal(ring.page->time_enabled, enabled);
	assert_int_equal(ring.page->time_running, enabled);
}

/* Time stamps of samples are what the page turns the counter into. */
static void time_stamps(void **state)
{
	struct perf_event_attr attr = counting;
	const struct tally_record *record;
	struct fake_ring ring;

	(void)state;
	attr.sample_type = PERF_SAMPLE_TIME;
	attr.sample_period = 1;
	ring = fake_map(fake_event(&attr, CORE_INSTRUCTIONS), 1, true);
	fake.tsc = 123456789;
	fake_run(CORE_INSTRUCTIONS, 1);
	record = fake_next(&ring, &attr);
	assert_true(ring.page->cap_user_time_zero);
	assert_int_equal(record->id.time, ring.page->time_zero + (fake.tsc * ring.page->time_mult >>
								  ring.page->time_shift));
	attr.use_clockid = 1;
	ring = fake_map(fake_event(&attr, CORE_LOADS), 1, true);
	assert_false(ring.page->cap_user_time_zero);
}

static void software(void **state)
{
	uint32_t event = fake_event(&counting, CORE_PAGE_FAULTS);
	struct fake_ring ring = fake_map(event, 0, true);

	(void)state;
	assert_int_equal(ring.page->index, 0);
	assert_int_equal(ring.page->cap_user_rdpmc, 0);
	fake.software[CORE_PAGE_FAULTS] = 3;
	fake.task->software = CORE_KIND_BIT(CORE_PAGE_FAULTS);
	core_disable(event, false);
	assert_int_equal(ring.page->offset, 3);
}

/* Whom the ring is redirected to does not write to a page that tells of another. */
static void the_page_is_one_events(void **state)
{
	uint32_t target = fake_event(&counting, CORE_LOADS);
	uint32_t other = fake_event(&counting, CORE_STORES);
	struct fake_ring ring = fake_map(target, 1, true);

	(void)state;
	assert_int_equal(core_set_output(other, target), 0);
	fake_run(CORE_STORES, 100);
	core_disable(other, false);
	assert_int_equal(ring.page->index, CORE_LOADS + 1);
	assert_int_equal(read_in_user_space(ring.page), 0);
}

/* What it waited for is in its times, and in its page when it waits no longer. */
static void who_waited_for_a_counter(void **state)
{
	struct test_count count;
	uint32_t waits;
	struct fake_ring ring;
	struct perf_event_attr attr;

	(void)state;
	fake_end();
	tree_begin(1);
	attr = test_instructions();
	tree_open(&attr, fake.task, -1, 0);
	waits = tree_open(&attr, fake.task, -1, 0);
	ring = fake_map(waits, 0, true);
	tree_work(7);
	core_disable(waits, false);
	count = tree_read(waits);
	assert_int_equal(count.enabled, 7000);
	assert_int_equal(count.running, 0);
	assert_int_equal(ring.page->time_enabled, 7000);
	assert_int_equal(ring.page->time_running, 0);
}

/* ---- poll(2) ---- */

static void polled(void **state)
{
	uint32_t event = fake_event(&counting, CORE_LOADS);

	(void)state;
	assert_int_equal(core_poll(event), POLLHUP); /* no ring */
	fake_map(event, 1, true);
	assert_int_equal(core_poll(event), 0);
	core_ring(core_event(event)->ring)->ready = POLLIN;
	assert_int_equal(core_poll_peek(event), POLLIN);
	assert_int_equal(core_poll(event), POLLIN);
	assert_int_equal(core_poll_peek(event), 0);
	core_event(event)->state = CORE_ERROR;
	assert_int_equal(core_poll(event), POLLERR);
	core_event(event)->state = CORE_EXITED;
	assert_int_equal(core_poll(event), POLLHUP);
	core_event(event)->children = 5; /* a copy still counts */
	assert_int_equal(core_poll(event), 0);
	core_event(event)->children = 0;
	core_event(event)->is_kept = true; /* the kernel has more to tell */
	assert_int_equal(core_poll(event), 0);
	core_event(event)->kept_ended = true;
	assert_int_equal(core_poll(event), POLLHUP);
}

static void woken_at_the_end(void **state)
{
	uint32_t opened = fake_event(&counting, CORE_LOADS);
	uint32_t copy = fake_event(&counting, CORE_LOADS);

	(void)state;
	core_event(copy)->parent = opened;
	core_poll_wake(core_event(copy));
	assert_int_equal(fake.wakes.nr, 1);
	assert_int_equal(fake.wakes.of[0].event, opened);
	assert_int_equal(fake.wakes.of[0].what, POLLHUP);
}

static void once_is_enough_until_somebody_looks(void **state)
{
	struct core_event *event = core_event(fake_event(&counting, CORE_LOADS));

	(void)state;
	assert_true(core_wake_begins(event));
	core_wake_ends(event, true);
	assert_false(core_wake_begins(event));
	core_wake_seen(event);
	assert_true(core_wake_begins(event));
	core_wake_ends(event, false);
	assert_true(core_wake_begins(event));
	core_wake_seen(event);
	core_wake_ends(event, true);
	assert_true(core_wake_begins(event));
}

static void who_is_killed_while_waking_leaves_it_to_the_next(void **state)
{
	struct core_event *event = core_event(fake_event(&counting, CORE_LOADS));

	(void)state;
	fake.tid = 70;
	assert_true(core_wake_begins(event));
	fake.tid = 71;
	assert_false(core_wake_begins(event)); /* it is about to */
	fake.dead = 70;
	assert_true(core_wake_begins(event));
	core_wake_ends(event, true);
	assert_false(core_wake_begins(event));
}

/* He had a record shown, or had said that there is something to see, and had woken nobody. */
static void who_is_killed_with_a_ring_wakes_nobody_himself(void **state)
{
	const uint32_t event = fake_event(&counting, CORE_LOADS);
	struct core_ring *ring;

	(void)state;
	fake_map(event, 1, true);
	fake.tid = 70;
	ring = core_ring_lock(core_event(event));
	ring->ready = POLLIN;
	fake.tid = 71;
	fake.dead = 70;
	assert_int_equal(fake.wakes.nr, 0);
	core_ring_unlock(core_ring_lock(core_event(event)));
	assert_int_equal(fake.wakes.nr, 1);
	assert_int_equal(fake.wakes.of[0].event, event);
	assert_int_equal(core_poll(event), POLLIN | POLLRDNORM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, fake_teardown)
		CASE(layout),
		CASE(no_index_leads_to_counts_of_others),
		CASE(counts),
		CASE(times),
		CASE(times_of_one_just_enabled),
		CASE(times_of_a_group_are_the_same),
		CASE(times_behind_a_system_call),
		CASE(times_do_not_go_back),
		CASE(counts_while_somebody_samples),
		CASE(time_stamps),
		CASE(software),
		CASE(who_waited_for_a_counter),
		CASE(polled),
		CASE(the_page_is_one_events),
		CASE(woken_at_the_end),
		CASE(once_is_enough_until_somebody_looks),
		CASE(who_is_killed_while_waking_leaves_it_to_the_next),
		CASE(who_is_killed_with_a_ring_wakes_nobody_himself),
	};

	return cmocka_run_group_tests_name("core/page", tests, NULL, NULL);
}
