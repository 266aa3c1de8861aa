// SPDX-License-Identifier: MIT
/*
 * One ring and several threads: they write, one reads at the same time, another maps and unmaps.
 * Each sample says who wrote it and counts up, so that what was torn, lost in silence or told twice
 * shows.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tally/record.h>

#include "core/arena.h"
#include "core/fake_host.h"
#include "core/fake_ring.h"
#include "core/ring.h"

enum { WRITERS = 3, SAMPLES = 20000, REMAPS = 300 };

static const struct perf_event_attr attr = {
	.size = sizeof(struct perf_event_attr),
	/* 32 bytes each, and LOST of 40 among them: the ends of the ring are met in any way */
	.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
	.sample_period = 1,
	.sample_id_all = 1,
};

struct writer {
	pthread_t thread;
	uint32_t page, target;
	uint32_t event; /* set by the writer */
	uint64_t seen;	/* of its samples, by the reader */
};

static int begin(void **state)
{
	(void)state;
	fake_begin();
	core_tree()->settings.max_sample_rate = UINT32_MAX;
	return 0;
}

/* Bound to a processor: tasks may share a ring of it. */
static uint32_t bound_event(enum core_kind kind)
{
	uint32_t event = fake_event(&attr, kind);

	core_event(event)->cpu = 0;
	return event;
}

static void *write_samples(void *arg)
{
	struct writer *writer = arg;

	fake.tsc = 1000000;
	fake_caller(writer->page);
	__atomic_store_n(&writer->event, bound_event(CORE_LOADS), __ATOMIC_RELEASE);
	while (core_set_output(writer->event, writer->target))
		sched_yield();
	for (uint64_t i = 1; i <= SAMPLES; i++) {
		fake.regs[PERF_REG_X86_IP] = i;
		fake_run(CORE_LOADS, 1);
	}
	return NULL;
}

static void begin_writers(struct writer *writers, uint32_t target)
{
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.page = 10 + i, .target = target};
		/* one after the other: the fake host makes events without the tree's lock */
		assert_int_equal(
			pthread_create(&writers[i].thread, NULL, write_samples, &writers[i]), 0);
		while (!__atomic_load_n(&writers[i].event, __ATOMIC_ACQUIRE))
			sched_yield();
	}
}

/* The record is whole, and the newest of its writer. */
static void check(struct writer *writers, const struct tally_record *record)
{
	struct writer *writer = &writers[record->id.tid - 1010];

	assert_int_equal(record->id.pid, 1000);
	assert_in_range(record->id.tid, 1010, 1010 + WRITERS - 1);
	assert_true(record->id.time >= 1000000);
	assert_true(record->sample.ip > writer->seen && record->sample.ip <= SAMPLES);
	writer->seen = record->sample.ip;
}

static void several_writers_and_a_reader(void **state)
{
	uint32_t target = bound_event(CORE_STORES);
	struct fake_ring ring = fake_map(target, 1, true);
	uint64_t samples = 0, lost = 0, missing = 0, ended = 0;
	struct writer writers[WRITERS];
	const struct tally_record *record;

	(void)state;
	begin_writers(writers, target);
	while (ended < WRITERS || ring.tail != ring.page->data_head) {
		record = fake_next(&ring, &attr);
		if (record && record->type == PERF_RECORD_SAMPLE) {
			check(writers, record);
			samples++;
		} else if (record) {
			assert_int_equal(record->type, PERF_RECORD_LOST);
			lost += record->lost.lost;
		} else if (ended < WRITERS && !pthread_tryjoin_np(writers[ended].thread, NULL)) {
			ended++;
		}
	}
	for (int i = 0; i < WRITERS; i++)
		missing += core_event(writers[i].event)->lost;
	assert_true(samples >= 4096 / 32 - 1);
	assert_int_equal(samples + missing, WRITERS * SAMPLES);
	assert_true(lost <= missing); /* the last losses nobody was told of */
}

static void mapped_and_unmapped_below_the_writers(void **state)
{
	const struct core_rights rights = {.mlock = UINT64_MAX};
	uint32_t target = bound_event(CORE_STORES);
	struct writer writers[WRITERS];
	uint64_t written = 0;

	(void)state;
	fake_map(target, 1, true);
	begin_writers(writers, target);
	for (int i = 0; i < REMAPS; i++) {
		fake_ring_unmap(target);
		assert_true(fake_ring_map(target, 0, (1 + (1UL << i % 4)) * ARENA_PAGE, true,
					  &rights) > 0);
		for (int w = 0; w < WRITERS; w++)
			core_set_output(writers[w].event, target);
	}
	for (int w = 0; w < WRITERS; w++)
		assert_int_equal(pthread_join(writers[w].thread, NULL), 0);
	/* Whatever came between: what is mapped now is sound. */
	fake_ring_unmap(target);
	{
		struct fake_ring ring = fake_map(target, 8, true);

		assert_int_equal(core_set_output(writers[0].event, target), 0);
		fake.task = core_task(writers[0].page);
		fake_run(CORE_LOADS, 100);
		while (fake_next(&ring, &attr))
			written++;
	}
	assert_int_equal(written, 100);
}

/* Killed while it held the ring's lock, in the middle of a record. */
static void a_writer_that_died(void **state)
{
	uint32_t event = fake_event(&attr, CORE_LOADS);
	struct fake_ring ring = fake_map(event, 1, true);
	struct core_ring *locked;
	struct core_output out;

	(void)state;
	assert_true(core_output_begin(&out, core_event(event), 64));
	core_output_put_u64(&out, 0xdead);
	locked = out.ring;
	assert_int_equal(locked->lock, fake.tid);
	fake.dead = fake.tid;
	fake.tid = 4711;
	fake_run(CORE_LOADS, 1);
	assert_int_equal(fake_next(&ring, &attr)->type, PERF_RECORD_SAMPLE);
	assert_null(fake_next(&ring, &attr));
	assert_int_equal(locked->lock, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, fake_teardown)
		CASE(several_writers_and_a_reader),
		CASE(mapped_and_unmapped_below_the_writers),
		CASE(a_writer_that_died),
	};

	return cmocka_run_group_tests_name("core/ring-race", tests, NULL, NULL);
}
