// SPDX-License-Identifier: MIT
/* Records of the kernel's, from a ring that is written here, to one of ours. */
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
#include "core/fake_ring.h"
#include "core/forward.h"
#include "core/test_tree.h"

enum { AHEAD = 1000, KERNELS_ID = 77 };

static struct {
	_Alignas(ARENA_PAGE) char memory[2 * ARENA_PAGE];
} kernels;

static struct perf_event_mmap_page *page(void)
{
	return (struct perf_event_mmap_page *)kernels.memory;
}

static void write_words(const uint64_t *words, size_t nr)
{
	uint64_t head = page()->data_head;

	for (size_t i = 0; i < nr; i++, head += 8)
		memcpy(kernels.memory + ARENA_PAGE + head % ARENA_PAGE, &words[i], 8);
	page()->data_head = head;
}

static void write_record(uint32_t type, uint64_t first, uint64_t second, uint64_t third)
{
	const struct perf_event_header header = {.type = type, .size = 32};
	uint64_t words[4] = {0, first, second, third};

	memcpy(words, &header, sizeof(header));
	write_words(words, 4);
}

static void write_sample(uint64_t value)
{
	write_record(PERF_RECORD_SAMPLE, KERNELS_ID, 5000, value);
}

/* A tracepoint whose samples have an id, a time, and one word more. */
static struct perf_event_attr sampling(void)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_TRACEPOINT, 0);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
	attr.wakeup_events = 2;
	return attr;
}

static struct core_forward feeding(uint32_t event, const struct perf_event_attr *attr)
{
	memset(&kernels, 0, sizeof(kernels));
	return (struct core_forward){
		.event = core_name(event, core_event(event)->generation),
		.feeds = true,
		.sample_type = attr->sample_type,
		.ahead = AHEAD,
		.page = page(),
		.size = sizeof(kernels.memory),
	};
}

static void it_is_as_if_ours_had_written_it(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);
	struct fake_ring ring = fake_map(event, 16, true);
	const struct tally_record *record;

	(void)state;
	/* Over the end of the kernel's ring, and more than it has room for at once. */
	for (uint64_t i = 0; i < 300; i++) {
		write_sample(i);
		if (i % 7 == 6)
			core_forward(&from);
	}
	core_forward(&from);
	assert_int_equal(page()->data_tail, page()->data_head);
	for (uint64_t i = 0; i < 300; i++) {
		record = fake_next(&ring, &attr);
		assert_non_null(record);
		assert_int_equal(record->id.id, core_event(event)->id);
		assert_int_equal(record->id.time, 5000 - AHEAD);
		assert_int_equal(record->sample.period, i);
	}
	assert_null(fake_next(&ring, &attr));
	/* Nothing is left to be forwarded again. */
	core_forward(&from);
	assert_null(fake_next(&ring, &attr));
}

static void who_waits_is_told(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);

	(void)state;
	core_event(event)->owner.async = true;
	fake_map(event, 16, true);
	fake.wakes.nr = 0;
	write_sample(1);
	core_forward(&from);
	assert_int_equal(fake.wakes.nr, 0);
	assert_int_equal(fake.signals.nr, 1);
	write_sample(2);
	write_sample(3);
	core_forward(&from);
	assert_int_equal(fake.wakes.nr, 1);
	assert_int_equal(fake.signals.nr, 3);
	assert_int_equal(fake.signals.of[2].what, POLL_IN);
}

/* Signals are for each overflow, wherever it is written. */
static void without_a_ring_there_are_signals(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);

	(void)state;
	core_event(event)->owner.async = true;
	write_sample(1);
	write_record(PERF_RECORD_LOST, KERNELS_ID, 9, 0);
	core_forward(&from);
	assert_int_equal(fake.signals.nr, 1);
}

/* The kernel has counted them, too, and those that it had no room for. */
static void at_its_limit_it_is_off(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);

	(void)state;
	core_event(event)->owner.async = true;
	core_refresh(event, 5);
	write_sample(1);
	write_record(PERF_RECORD_LOST, KERNELS_ID, 3, 0);
	core_forward(&from);
	assert_int_equal(core_event(event)->limit, 1);
	assert_true(core_event(event)->state != CORE_OFF);
	write_sample(1);
	core_forward(&from);
	assert_int_equal(core_event(event)->state, CORE_OFF);
	assert_int_equal(fake.signals.of[0].what, POLL_IN);
	assert_int_equal(fake.signals.of[1].what, POLL_HUP);
	/* More of them are not of this limit. */
	write_sample(1);
	core_forward(&from);
	assert_int_equal(fake.signals.of[2].what, POLL_IN);
}

/* PERF_FORMAT_LOST says what the records say. */
static void what_the_kernel_had_no_room_for_is_lost(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);

	(void)state;
	write_sample(1);
	write_record(PERF_RECORD_LOST, KERNELS_ID, 3, 0);
	write_record(PERF_RECORD_LOST, KERNELS_ID, 2, 0);
	core_forward(&from);
	assert_int_equal(core_event(event)->lost, 5);
}

/* As the program may write to that memory. */
static void what_makes_no_sense_is_left_alone(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);
	struct fake_ring ring = fake_map(event, 16, true);
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = 4};
	uint64_t word;

	(void)state;
	page()->data_size = UINT64_MAX / 2;
	page()->data_offset = UINT64_MAX / 2;
	write_sample(1);
	core_forward(&from);
	assert_non_null(fake_next(&ring, &attr));
	memcpy(&word, &header, sizeof(word));
	write_words(&word, 1);
	core_forward(&from);
	header.size = 16;
	memcpy(&word, &header, sizeof(word));
	page()->data_head -= 8;
	write_words(&word, 1); /* not all of it is there */
	core_forward(&from);
	assert_null(fake_next(&ring, &attr));
	page()->data_tail = page()->data_head + 8;
	core_forward(&from);
	page()->data_tail = page()->data_head - 2 * ARENA_PAGE;
	core_forward(&from);
	assert_null(fake_next(&ring, &attr));
	assert_int_equal(core_event(event)->forwarding, 0);
}

/* A header there may go on behind what is mapped, and kill who looks. */
static void what_is_not_of_whole_words_is_left_alone(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);
	struct fake_ring ring = fake_map(event, 16, true);
	const struct perf_event_header whole = {.type = PERF_RECORD_SAMPLE, .size = 32};
	const struct perf_event_header broken = {.type = PERF_RECORD_SAMPLE, .size = 28};

	(void)state;
	write_sample(1);
	memcpy(kernels.memory + ARENA_PAGE, &broken, sizeof(broken));
	core_forward(&from);
	assert_null(fake_next(&ring, &attr));
	write_sample(1);
	memcpy(kernels.memory + ARENA_PAGE + 4, &whole, sizeof(whole));
	page()->data_tail = 4;
	core_forward(&from);
	assert_null(fake_next(&ring, &attr));
	assert_int_equal(page()->data_tail, 4);
}

/* A tracer may have stopped who has the ring: it is forwarded when he goes on, by him. */
static void nobody_waits_who_must_not(void **state)
{
	const struct perf_event_attr attr = sampling();
	const uint32_t event = tree_open(&attr, fake.task, -1, 0);
	const struct core_forward from = feeding(event, &attr);
	struct fake_ring ring = fake_map(event, 16, true);

	(void)state;
	core_event(event)->forwarding = 5;
	write_sample(1);
	for (int i = 0; i < 2; i++) {
		core_forward_soon(&from);
		assert_null(fake_next(&ring, &attr));
		assert_int_equal(core_event(event)->forwarding, 5);
		assert_int_equal(core_event(event)->forwarding_wanted, 1);
	}
	assert_int_equal(fake.halted, 5);
	core_event(event)->forwarding = 0;
	core_forward(&from);
	assert_non_null(fake_next(&ring, &attr));
	assert_int_equal(core_event(event)->forwarding_wanted, 0);
	/* Who is gone does not see to anything. */
	core_event(event)->forwarding = 5;
	fake.dead = 5;
	write_sample(2);
	core_forward_soon(&from);
	assert_non_null(fake_next(&ring, &attr));
	assert_int_equal(core_event(event)->forwarding, 0);
}

/* Another event in its slot is not it, and does not free the lock that somebody has. */
static void who_comes_late_forwards_nothing(void **state)
{
	const struct perf_event_attr attr = sampling();
	uint32_t event = tree_open(&attr, fake.task, -1, 0), next;
	const struct core_forward from = feeding(event, &attr);
	struct fake_ring ring;

	(void)state;
	core_event(event)->forwarding = 5;
	tree_close(event);
	next = tree_open(&attr, fake.task, -1, 0);
	assert_int_equal(next, event);
	assert_int_equal(core_event(next)->forwarding, 5);
	core_event(next)->forwarding = 0;
	ring = fake_map(next, 16, true);
	write_sample(1);
	core_forward(&from);
	assert_null(fake_next(&ring, &attr));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(it_is_as_if_ours_had_written_it),
		TREE_CASE(who_waits_is_told),
		TREE_CASE(without_a_ring_there_are_signals),
		TREE_CASE(at_its_limit_it_is_off),
		TREE_CASE(what_the_kernel_had_no_room_for_is_lost),
		TREE_CASE(what_makes_no_sense_is_left_alone),
		TREE_CASE(what_is_not_of_whole_words_is_left_alone),
		TREE_CASE(nobody_waits_who_must_not),
		TREE_CASE(who_comes_late_forwards_nothing),
	};

	return cmocka_run_group_tests_name("core: records of the kernel's", tests, NULL, NULL);
}
