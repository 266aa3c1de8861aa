// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/sampler/fake_ring.h"

#define RING 4096

static void test_size_predicate(void **state)
{
	(void)state;
	assert_false(tly_record_size_ok(0, RING));
	assert_false(tly_record_size_ok(7, RING));
	assert_true(tly_record_size_ok(8, RING));
	assert_true(tly_record_size_ok(8, 8));
	assert_false(tly_record_size_ok(8, 7));
	assert_false(tly_record_size_ok(12, RING));
	assert_true(tly_record_size_ok(RING, RING));
	assert_false(tly_record_size_ok(RING + 8, RING));
	assert_true(tly_record_size_ok(65528, 65528));
}

static void test_forward_in_order(void **state)
{
	struct tally_record_format format = fake_format();
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, 0);
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 0);
	for (uint64_t time = 10; time < 13; time++)
		fake_ring_sample(&fake, 7, time);
	for (uint64_t time = 10; time < 13; time++) {
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
		assert_int_equal(record.id.time, time);
		assert_int_equal(record.id.id, 7);
		/* Given back one call later, as the record is read until then. */
		assert_int_equal(fake.page.data_tail, (time - 10) * sizeof(struct fake_sample));
	}
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 0);
	assert_int_equal(fake.page.data_tail, fake.page.data_head);
	assert_int_equal(tally_ring_dropped(&fake.ring), 0);
	fake_ring_release(&fake);
}

/* Every place where a record can wrap, and positions that wrap themselves. */
static void test_wrapped_records(void **state)
{
	struct tally_record_format format = fake_format();
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;

	(void)state;
	for (size_t gap = 0; gap <= 2 * sizeof(struct fake_sample); gap += 8) {
		fake_ring_init(&fake, RING, 0);
		fake_ring_start_at(&fake, UINT64_MAX - gap + 1);
		for (uint64_t time = 1; time <= 3; time++)
			fake_ring_sample(&fake, 9, time);
		for (uint64_t time = 1; time <= 3; time++) {
			assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
			assert_int_equal(record.id.time, time);
			assert_int_equal(record.id.id, 9);
		}
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 0);
		fake_ring_release(&fake);
	}
}

static void test_largest_record(void **state)
{
	struct tally_record_format format = fake_format();
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;
	struct {
		struct perf_event_header header;
		unsigned char body[65520];
	} large = {{PERF_RECORD_MAX + 1, 0, sizeof(large)}, {0}};

	(void)state;
	fake_ring_init(&fake, 65536, 0);
	fake_ring_start_at(&fake, 65536 - 8);
	fake_ring_write(&fake, &large, sizeof(large));
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
	assert_int_equal(record.size, 65528);
	fake_ring_release(&fake);
}

static void test_peek_and_consume(void **state)
{
	struct tally_sampler_stats stats = {0};
	struct tally_span piece[2];
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, 0);
	fake_ring_start_at(&fake, RING - 40);
	assert_int_equal(tally_ring_peek(&fake.ring, piece), 0);
	for (int i = 0; i < 3; i++)
		fake_ring_sample(&fake, 1, 5 + i);
	assert_int_equal(tally_ring_peek(&fake.ring, piece), 3 * sizeof(struct fake_sample));
	assert_int_equal(piece[0].size, 40);
	assert_ptr_equal(piece[0].data, fake.data + RING - 40);
	assert_int_equal(piece[1].size, 3 * sizeof(struct fake_sample) - 40);
	assert_ptr_equal(piece[1].data, fake.data);
	assert_int_equal(tally_ring_scan(piece, SIZE_MAX, &stats), 3 * sizeof(struct fake_sample));
	assert_int_equal(stats.samples, 3);
	assert_int_equal(stats.last_time, 0);
	assert_int_equal(tally_ring_scan(piece, 16, &stats), 3 * sizeof(struct fake_sample));
	assert_int_equal(stats.first_time, 5);
	assert_int_equal(stats.last_time, 7);
	/* No sample is that long. */
	assert_int_equal(tally_ring_scan(piece, 24, &stats), 3 * sizeof(struct fake_sample));
	assert_int_equal(stats.samples, 9);
	assert_int_equal(stats.last_time, 7);
	assert_int_equal(stats.corrupt, 0);
	tally_ring_consume(&fake.ring, 3 * sizeof(struct fake_sample));
	assert_int_equal(fake.page.data_tail, fake.page.data_head);
	assert_int_equal(tally_ring_peek(&fake.ring, piece), 0);
	fake_ring_release(&fake);
}

static void test_scan_accounts(void **state)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} lost = {{PERF_RECORD_LOST, 0, sizeof(lost)}, 1, 5};
	struct {
		struct perf_event_header header;
		uint64_t lost;
	} lost_samples = {{PERF_RECORD_LOST_SAMPLES, 0, sizeof(lost_samples)}, 3};
	struct perf_event_header throttle = {PERF_RECORD_THROTTLE, 0, sizeof(throttle)};
	struct perf_event_header empty_lost = {PERF_RECORD_LOST, 0, sizeof(empty_lost)};
	struct tally_sampler_stats stats = {0};
	struct tally_span piece[2];
	struct fake_ring fake;

	(void)state;
	/* The lost count of the first record lies across the end of the ring. */
	fake_ring_init(&fake, RING, 0);
	fake_ring_start_at(&fake, RING - 16);
	fake_ring_write(&fake, &lost, sizeof(lost));
	fake_ring_write(&fake, &lost_samples, sizeof(lost_samples));
	fake_ring_write(&fake, &throttle, sizeof(throttle));
	fake_ring_write(&fake, &empty_lost, sizeof(empty_lost));
	size_t bytes = tally_ring_peek(&fake.ring, piece);

	assert_int_equal(tally_ring_scan(piece, SIZE_MAX, &stats), bytes);
	assert_int_equal(stats.records, 4);
	assert_int_equal(stats.samples, 0);
	assert_int_equal(stats.lost, 8);
	assert_int_equal(stats.throttled, 1);

	/* A record that claims more than there is ends the scan in front of it. */
	struct perf_event_header liar = {PERF_RECORD_SAMPLE, 0, 4096};

	fake_ring_write(&fake, &liar, sizeof(liar));
	tally_ring_peek(&fake.ring, piece);
	memset(&stats, 0, sizeof(stats));
	assert_int_equal(tally_ring_scan(piece, SIZE_MAX, &stats), bytes);
	assert_int_equal(stats.corrupt, sizeof(liar));
	assert_int_equal(stats.samples, 0);
	fake_ring_release(&fake);
}

/* Sizes that no record can have: the rest is dropped, the ring goes on afterwards. */
static void test_corrupt_sizes(void **state)
{
	static const uint16_t sizes[] = {0, 1, 7, 12, 40, 4096, 8192, 65535};
	struct tally_record_format format = fake_format();
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct fake_sample bad = fake_sample(1, 2);

		bad.header.size = sizes[i];
		fake_ring_init(&fake, RING, 0);
		fake_ring_start_at(&fake, RING - 24);
		fake_ring_sample(&fake, 1, 1);
		fake_ring_write(&fake, &bad, sizeof(bad));
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), -EBADMSG);
		assert_int_equal(tally_ring_dropped(&fake.ring), sizeof(bad));
		assert_int_equal(fake.page.data_tail, fake.page.data_head);
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 0);
		fake_ring_sample(&fake, 1, 3);
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
		assert_int_equal(record.id.time, 3);
		fake_ring_release(&fake);
	}
}

/* A record of a good size whose fields do not fit in it is dropped alone. */
static void test_contradicting_record(void **state)
{
	struct tally_record_format format = fake_format();
	struct perf_event_header bare = {PERF_RECORD_SAMPLE, 0, sizeof(bare)};
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, 0);
	fake_ring_write(&fake, &bare, sizeof(bare));
	fake_ring_sample(&fake, 1, 5);
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), -EBADMSG);
	assert_non_null(strstr(err.what, "contradicts itself"));
	assert_int_equal(tally_ring_dropped(&fake.ring), sizeof(bare));
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
	assert_int_equal(record.id.time, 5);
	fake_ring_release(&fake);
}

static void test_impossible_heads(void **state)
{
	static const uint64_t heads[] = {RING + 8, UINT64_MAX - 7, 4, 33, (uint64_t)1 << 63};
	struct tally_record_format format = fake_format();
	struct tally_span piece[2];
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		fake_ring_init(&fake, RING, 0);
		fake.page.data_head = heads[i];
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), -EBADMSG);
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 0);
		fake_ring_release(&fake);

		fake_ring_init(&fake, RING, 0);
		fake.page.data_head = heads[i];
		assert_int_equal(tally_ring_peek(&fake.ring, piece), 0);
		assert_true(tally_ring_dropped(&fake.ring) > 0);
		fake_ring_release(&fake);
	}
}

/* Random bytes for records, random heads: nothing is read outside the data (a sanitizer looks). */
static void test_noise(void **state)
{
	struct tally_record_format format = fake_format();
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;
	uint64_t seed = 42;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		unsigned int flags = round % 3 == 0   ? 0
				     : round % 3 == 1 ? TALLY_RING_OVERWRITE | TALLY_RING_BACKWARD
						      : TALLY_RING_OVERWRITE;
		struct tally_sampler_stats stats = {0};
		struct tally_span piece[2];

		fake_ring_init(&fake, 512, flags);
		for (size_t i = 0; i < 512; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			/* Mostly zero, so that small sizes are common. */
			fake.data[i] = seed >> 62 ? 0 : seed >> 56;
		}
		fake.page.data_head = (seed >> 40) % 1024 & (round % 7 ? ~7ull : ~0ull);
		if (flags & TALLY_RING_BACKWARD)
			fake.page.data_head = -fake.page.data_head;
		size_t bytes = tally_ring_peek(&fake.ring, piece);

		assert_true(bytes <= 512);
		assert_int_equal(bytes, piece[0].size + piece[1].size);
		assert_true(tally_ring_scan(piece, SIZE_MAX, &stats) <= bytes);
		for (int calls = 0; calls < 200; calls++)
			if (!tally_ring_next(&fake.ring, &format, &record, &err))
				break;
		assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 0);
		fake_ring_release(&fake);
	}
}

static void check_backward(struct fake_ring *fake, uint64_t first, uint64_t last)
{
	struct tally_record_format format = fake_format();
	struct tally_record record;
	struct tally_error err;

	for (uint64_t time = first; time <= last; time++) {
		assert_int_equal(tally_ring_next(&fake->ring, &format, &record, &err), 1);
		assert_int_equal(record.id.time, time);
	}
	assert_int_equal(tally_ring_next(&fake->ring, &format, &record, &err), 0);
}

static void test_backward_oldest_first(void **state)
{
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, TALLY_RING_OVERWRITE | TALLY_RING_BACKWARD);
	check_backward(&fake, 1, 0);
	for (uint64_t time = 1; time <= 5; time++)
		fake_ring_sample(&fake, 1, time);
	check_backward(&fake, 1, 5);
	/* The next snapshot has only what came since, and the page was never written. */
	fake_ring_sample(&fake, 1, 6);
	check_backward(&fake, 6, 6);
	assert_int_equal(fake.page.data_tail, 0);
	assert_int_equal(tally_ring_dropped(&fake.ring), 0);
	fake_ring_release(&fake);
}

/* Filled three times over: as many as fit whole, the newest; the torn one is no corruption. */
static void test_backward_overwritten(void **state)
{
	const size_t fit = RING / sizeof(struct fake_sample);
	struct tally_sampler_stats stats = {0};
	struct tally_span piece[2];
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, TALLY_RING_OVERWRITE | TALLY_RING_BACKWARD);
	for (uint64_t time = 1; time <= 3 * fit; time++)
		fake_ring_sample(&fake, 1, time);
	assert_int_equal(tally_ring_peek(&fake.ring, piece), fit * sizeof(struct fake_sample));
	assert_int_equal(tally_ring_scan(piece, SIZE_MAX, &stats),
			 fit * sizeof(struct fake_sample));
	assert_int_equal(stats.samples, fit);
	check_backward(&fake, 2 * fit + 1, 3 * fit);
	assert_int_equal(tally_ring_dropped(&fake.ring), 0);
	assert_int_equal(tally_ring_peek(&fake.ring, piece), 0);
	fake_ring_release(&fake);
}

static void test_backward_consumed(void **state)
{
	struct tally_span piece[2];
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, TALLY_RING_BACKWARD);
	fake_ring_sample(&fake, 1, 1);
	fake_ring_sample(&fake, 1, 2);
	tally_ring_consume(&fake.ring, tally_ring_peek(&fake.ring, piece));
	assert_int_equal(tally_ring_peek(&fake.ring, piece), 0);
	assert_int_equal(fake.page.data_tail, fake.page.data_head);
	fake_ring_sample(&fake, 1, 3);
	check_backward(&fake, 3, 3);
	fake_ring_release(&fake);
}

static void test_backward_corrupt(void **state)
{
	struct tally_record_format format = fake_format();
	struct fake_sample bad = fake_sample(1, 2);
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;

	(void)state;
	bad.header.size = 4;
	fake_ring_init(&fake, RING, TALLY_RING_OVERWRITE | TALLY_RING_BACKWARD);
	fake_ring_write(&fake, &bad, sizeof(bad));
	fake_ring_sample(&fake, 1, 3);
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), -EBADMSG);
	check_backward(&fake, 3, 3);
	assert_int_equal(tally_ring_dropped(&fake.ring), sizeof(bad));
	fake_ring_release(&fake);
}

/* A forward ring that is overwritten: what was overrun is reported once, then reading goes on. */
static void test_forward_overrun(void **state)
{
	struct tally_record_format format = fake_format();
	struct tally_record record;
	struct tally_error err;
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, TALLY_RING_OVERWRITE);
	fake_ring_sample(&fake, 1, 1);
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
	for (uint64_t time = 2; time < 2 + 2 * RING / sizeof(struct fake_sample); time++)
		fake_ring_sample(&fake, 1, time);
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), -EBADMSG);
	fake_ring_sample(&fake, 1, 1000);
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 1);
	assert_int_equal(record.id.time, 1000);
	assert_int_equal(tally_ring_next(&fake.ring, &format, &record, &err), 0);
	assert_int_equal(tally_ring_dropped(&fake.ring), RING);
	fake_ring_release(&fake);
}

static void test_aux(void **state)
{
	unsigned char aux[64];
	struct tally_span piece[2];
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, RING, 0);
	assert_int_equal(tally_ring_peek_aux(&fake.ring, piece), 0);
	fake.ring.aux = aux;
	fake.ring.aux_size = sizeof(aux);
	fake.ring.aux_tail = fake.page.aux_tail = 48;
	fake.page.aux_head = 48 + 32;
	assert_int_equal(tally_ring_peek_aux(&fake.ring, piece), 32);
	assert_int_equal(piece[0].size, 16);
	assert_ptr_equal(piece[0].data, aux + 48);
	assert_int_equal(piece[1].size, 16);
	assert_ptr_equal(piece[1].data, aux);
	tally_ring_consume_aux(&fake.ring, 20);
	assert_int_equal(fake.page.aux_tail, 68);
	assert_int_equal(tally_ring_peek_aux(&fake.ring, piece), 12);
	/* A head that would mean more than the area holds. */
	fake.page.aux_head = 68 + 65;
	assert_int_equal(tally_ring_peek_aux(&fake.ring, piece), 0);
	assert_int_equal(tally_ring_dropped(&fake.ring), 64);
	/* A snapshot area: all of it, the byte behind the newest first. */
	fake.ring.aux_overwrite = true;
	fake.page.aux_head = 64 + 10;
	assert_int_equal(tally_ring_peek_aux(&fake.ring, piece), 64);
	assert_ptr_equal(piece[0].data, aux + 10);
	assert_int_equal(piece[0].size, 54);
	fake_ring_release(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size_predicate),
		cmocka_unit_test(test_forward_in_order),
		cmocka_unit_test(test_wrapped_records),
		cmocka_unit_test(test_largest_record),
		cmocka_unit_test(test_peek_and_consume),
		cmocka_unit_test(test_scan_accounts),
		cmocka_unit_test(test_corrupt_sizes),
		cmocka_unit_test(test_contradicting_record),
		cmocka_unit_test(test_impossible_heads),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_backward_oldest_first),
		cmocka_unit_test(test_backward_overwritten),
		cmocka_unit_test(test_backward_consumed),
		cmocka_unit_test(test_backward_corrupt),
		cmocka_unit_test(test_forward_overrun),
		cmocka_unit_test(test_aux),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
