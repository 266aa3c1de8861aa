// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/sampler/fake_ring.h"
#include "lib/sampler/merge.h"

#define RING  4096
#define RINGS 3

struct fixture {
	struct fake_ring fakes[RINGS];
	struct tally_ring *rings[RINGS];
	struct tally_record_format formats[2];
	struct tly_id ids[2];
	struct tly_merge merge;
};

static void set_up(struct fixture *f, unsigned int flags, bool ordered)
{
	for (int i = 0; i < RINGS; i++) {
		fake_ring_init(&f->fakes[i], RING, flags);
		f->rings[i] = &f->fakes[i].ring;
	}
	f->formats[0] = f->formats[1] = fake_format();
	f->ids[0] = (struct tly_id){200, 1};
	f->ids[1] = (struct tly_id){100, 0};
	assert_int_equal(
		tly_merge_init(&f->merge, f->rings, RINGS, f->formats, 2, f->ids, 2, ordered), 0);
}

static void tear_down(struct fixture *f)
{
	tly_merge_release(&f->merge);
	for (int i = 0; i < RINGS; i++)
		fake_ring_release(&f->fakes[i]);
}

/* The time of the next record, 0 when none is ready, or a negative error. */
static int64_t next_time(struct fixture *f, bool flush)
{
	struct tally_record record;
	struct tally_error err;
	size_t event;
	int ret = tly_merge_next(&f->merge, flush, &record, &event, &err);

	if (ret != 1)
		return ret;
	assert_int_equal(event, record.id.id == 200);
	return record.id.time;
}

static void test_flushed_in_order(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 0, true);
	for (uint64_t time = 1; time <= 60; time++)
		fake_ring_sample(&f.fakes[time * time % RINGS], time % 2 ? 100 : 200, time);
	for (int64_t time = 1; time <= 60; time++)
		assert_int_equal(next_time(&f, true), time);
	assert_int_equal(next_time(&f, true), 0);
	assert_int_equal(f.merge.stats.samples, 60);
	assert_int_equal(f.merge.stats.out_of_order, 0);
	tear_down(&f);
}

/* A record waits until a second pass has found nothing that could come before it. */
static void test_held_back_until_settled(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 0, true);
	fake_ring_sample(&f.fakes[0], 100, 10);
	assert_int_equal(next_time(&f, false), 0);
	/* Between the passes an earlier record turns up in another ring. */
	fake_ring_sample(&f.fakes[1], 100, 5);
	fake_ring_sample(&f.fakes[0], 100, 20);
	assert_int_equal(next_time(&f, false), 0);
	assert_int_equal(next_time(&f, false), 5);
	assert_int_equal(next_time(&f, false), 10);
	assert_int_equal(next_time(&f, false), 20);
	assert_int_equal(next_time(&f, false), 0);
	assert_int_equal(f.merge.stats.out_of_order, 0);
	tear_down(&f);
}

static void test_late_record_is_counted(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 0, true);
	fake_ring_sample(&f.fakes[0], 100, 10);
	assert_int_equal(next_time(&f, true), 10);
	fake_ring_sample(&f.fakes[1], 100, 9);
	assert_int_equal(next_time(&f, true), 9);
	assert_int_equal(f.merge.stats.out_of_order, 1);
	tear_down(&f);
}

static void test_unordered_drains_all(void **state)
{
	struct fixture f;
	uint64_t sum = 0;

	(void)state;
	set_up(&f, 0, false);
	for (uint64_t time = 1; time <= 30; time++)
		fake_ring_sample(&f.fakes[time % RINGS], 100, time);
	for (int i = 0; i < 30; i++)
		sum += next_time(&f, false);
	assert_int_equal(sum, 30 * 31 / 2);
	assert_int_equal(next_time(&f, false), 0);
	tear_down(&f);
}

static void test_backward_rings(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, TALLY_RING_OVERWRITE | TALLY_RING_BACKWARD, true);
	for (int snapshot = 0; snapshot < 2; snapshot++) {
		for (uint64_t time = 1; time <= 20; time++)
			fake_ring_sample(&f.fakes[time % 2], 100, 100 * snapshot + time);
		for (uint64_t time = 1; time <= 20; time++)
			assert_int_equal(next_time(&f, false), 100 * snapshot + time);
		assert_int_equal(next_time(&f, false), 0);
	}
	tear_down(&f);
}

/* Corruption in one ring: reported, and the others go on. */
static void test_corrupt_ring(void **state)
{
	struct perf_event_header bad = {PERF_RECORD_SAMPLE, 0, 3};
	struct tally_sampler_stats stats;
	struct fixture f;

	(void)state;
	set_up(&f, 0, true);
	fake_ring_sample(&f.fakes[0], 100, 1);
	fake_ring_write(&f.fakes[1], &bad, sizeof(bad));
	fake_ring_sample(&f.fakes[2], 100, 2);
	assert_int_equal(next_time(&f, true), -EBADMSG);
	assert_int_equal(next_time(&f, true), 1);
	assert_int_equal(next_time(&f, true), 2);
	assert_int_equal(next_time(&f, true), 0);
	tly_merge_stats(&f.merge, &stats);
	assert_int_equal(stats.corrupt, sizeof(bad));
	/* In the ring that was handed out from last, too. */
	fake_ring_sample(&f.fakes[0], 100, 3);
	fake_ring_write(&f.fakes[0], &bad, sizeof(bad));
	fake_ring_sample(&f.fakes[2], 100, 4);
	assert_int_equal(next_time(&f, true), 3);
	assert_int_equal(next_time(&f, true), -EBADMSG);
	assert_int_equal(next_time(&f, true), 4);
	assert_int_equal(next_time(&f, true), 0);
	tear_down(&f);
}

static void test_unknown_id(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 0, true);
	fake_ring_sample(&f.fakes[0], 300, 1);
	fake_ring_sample(&f.fakes[0], 200, 2);
	assert_int_equal(next_time(&f, true), -EBADMSG);
	assert_int_equal(next_time(&f, true), 2);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flushed_in_order),
		cmocka_unit_test(test_held_back_until_settled),
		cmocka_unit_test(test_late_record_is_counted),
		cmocka_unit_test(test_unordered_drains_all),
		cmocka_unit_test(test_backward_rings),
		cmocka_unit_test(test_corrupt_ring),
		cmocka_unit_test(test_unknown_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
