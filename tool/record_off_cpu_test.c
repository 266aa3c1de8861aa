// SPDX-License-Identifier: MIT
/* Stories of threads, told in context switches, and the samples that come of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/record.h"

#define SAMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define OUT	PERF_RECORD_MISC_SWITCH_OUT
#define PREEMPT (PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)

static struct tally_record_format format = {.sample_type = SAMPLE_TYPE, .sample_id_all = true};

struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period;
};

static void feed_sample(struct off_cpu *off_cpu, uint32_t tid, uint64_t time)
{
	const struct sample sample = {
		{PERF_RECORD_SAMPLE, 0, sizeof(sample)}, 7, tid + 1000, 1, tid, time, 0, 0, 1};
	struct tally_record record;

	assert_true(tally_record_decode(&format, &sample, sizeof(sample), &record, NULL) > 0);
	assert_null(record_off_cpu_feed(off_cpu, &record));
}

static const struct sample *feed_switch(struct off_cpu *off_cpu, uint32_t tid, uint64_t time,
					uint16_t misc)
{
	const struct tally_record record = {
		.type = PERF_RECORD_SWITCH,
		.misc = misc,
		.size = 16,
		.id = {.has = SAMPLE_TYPE, .tid = tid, .time = time},
	};

	return (const struct sample *)record_off_cpu_feed(off_cpu, &record);
}

static void feed_task(struct off_cpu *off_cpu, uint32_t type, uint32_t tid)
{
	const struct tally_record record = {
		.type = type, .id = {.tid = 1}, .task = {.pid = 1, .tid = tid}};

	assert_null(record_off_cpu_feed(off_cpu, &record));
}

static void assert_sample(const struct sample *sample, uint32_t tid, uint64_t time, uint64_t period)
{
	assert_non_null(sample);
	assert_int_equal(sample->header.size, sizeof(*sample));
	assert_int_equal(sample->tid, tid);
	assert_int_equal(sample->ip, tid + 1000);
	assert_int_equal(sample->time, time);
	assert_int_equal(sample->period, period);
}

static void test_waits(void **state)
{
	struct off_cpu *off_cpu = record_off_cpu_new(&format);

	(void)state;
	/* Two threads, woven into each other; one twice. */
	feed_sample(off_cpu, 5, 100);
	assert_null(feed_switch(off_cpu, 5, 101, OUT));
	feed_sample(off_cpu, 6, 110);
	assert_null(feed_switch(off_cpu, 6, 111, OUT));
	assert_sample(feed_switch(off_cpu, 5, 601, 0), 5, 601, 500);
	feed_sample(off_cpu, 5, 700);
	assert_null(feed_switch(off_cpu, 5, 700, OUT));
	assert_sample(feed_switch(off_cpu, 5, 701, 0), 5, 701, 1);
	assert_sample(feed_switch(off_cpu, 6, 1111, 0), 6, 1111, 1000);
	assert_null(record_off_cpu_finish(off_cpu, 5000));
	record_off_cpu_free(off_cpu);
}

static void test_not_waits(void **state)
{
	struct off_cpu *off_cpu = record_off_cpu_new(&format);

	(void)state;
	/* Preempted. */
	feed_sample(off_cpu, 5, 100);
	assert_null(feed_switch(off_cpu, 5, 101, PREEMPT));
	assert_null(feed_switch(off_cpu, 5, 200, 0));
	/* The switch out, or the sample, was lost. */
	feed_sample(off_cpu, 6, 100);
	assert_null(feed_switch(off_cpu, 6, 200, 0));
	assert_null(feed_switch(off_cpu, 7, 100, OUT));
	assert_null(feed_switch(off_cpu, 7, 200, 0));
	/* The idle task. */
	feed_sample(off_cpu, 0, 100);
	assert_null(feed_switch(off_cpu, 0, 101, OUT));
	assert_null(feed_switch(off_cpu, 0, 200, 0));
	/* It has exited: the last switch. Its number is used again. */
	feed_task(off_cpu, PERF_RECORD_EXIT, 9);
	feed_sample(off_cpu, 9, 100);
	assert_null(feed_switch(off_cpu, 9, 101, OUT));
	feed_task(off_cpu, PERF_RECORD_FORK, 9);
	feed_sample(off_cpu, 9, 200);
	assert_null(feed_switch(off_cpu, 9, 201, OUT));
	assert_sample(feed_switch(off_cpu, 9, 301, 0), 9, 301, 100);
	/* A clock that went backwards. */
	feed_sample(off_cpu, 8, 100);
	assert_null(feed_switch(off_cpu, 8, 101, OUT));
	assert_null(feed_switch(off_cpu, 8, 50, 0));
	assert_null(record_off_cpu_finish(off_cpu, 5000));
	record_off_cpu_free(off_cpu);
}

static void test_still_waiting(void **state)
{
	struct off_cpu *off_cpu = record_off_cpu_new(&format);
	uint64_t total = 0;
	size_t nr = 0;

	(void)state;
	for (uint32_t tid = 1; tid <= 1000; tid++) {
		feed_sample(off_cpu, tid, tid);
		feed_switch(off_cpu, tid, tid, OUT);
	}
	for (const struct sample *sample;
	     (sample = (const struct sample *)record_off_cpu_finish(off_cpu, 1001));) {
		assert_sample(sample, sample->tid, 1001, 1001 - sample->tid);
		total += sample->period;
		nr++;
	}
	assert_int_equal(nr, 1000);
	assert_int_equal(total, 1000 * 1001 / 2);
	record_off_cpu_free(off_cpu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_not_waits),
		cmocka_unit_test(test_still_waiting),
	};

	tally_record_format_init(&format,
				 &(struct perf_event_attr){.size = sizeof(struct perf_event_attr),
							   .sample_type = SAMPLE_TYPE,
							   .sample_id_all = 1});
	return cmocka_run_group_tests(tests, NULL, NULL);
}
