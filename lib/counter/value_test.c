// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/counter/value.h"

#define ENABLED PERF_FORMAT_TOTAL_TIME_ENABLED
#define RUNNING PERF_FORMAT_TOTAL_TIME_RUNNING
#define ID	PERF_FORMAT_ID
#define GROUP	PERF_FORMAT_GROUP
#define LOST	PERF_FORMAT_LOST

static int decode(uint64_t format, const uint64_t *words, size_t size, struct tally_value *values,
		  size_t max)
{
	struct tly_read_layout layout;

	tly_read_layout_init(&layout, format);
	return tly_value_decode(&layout, words, size, values, max);
}

static int decode_member(uint64_t format, const uint64_t *words, size_t size, uint64_t id,
			 struct tally_value *value)
{
	struct tly_read_layout layout;

	tly_read_layout_init(&layout, format);
	return tly_value_decode_member(&layout, words, size, id, value);
}

static void test_scale(void **state)
{
	static const struct {
		uint64_t raw, enabled, running, scaled;
	} rows[] = {
		{100, 10, 10, 100},
		{100, 10, 5, 200},
		{1, 3, 2, 2},	 /* 1.5 rounds up */
		{1, 10, 7, 1},	 /* 1.43 rounds down */
		{100, 10, 0, 0}, /* never ran */
		{0, 10, 5, 0},
		{1ull << 63, 1ull << 40, 1ull << 40, 1ull << 63}, /* the product needs 104 bits */
		{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
		{UINT64_MAX, 3, 2, UINT64_MAX}, /* saturates */
		{UINT64_MAX - 1, 1000000007, 1000000007, UINT64_MAX - 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(tly_scale(rows[i].raw, rows[i].enabled, rows[i].running),
				 rows[i].scaled);
}

static void test_every_single_layout(void **state)
{
	(void)state;
	for (uint64_t format = 0; format < 32; format++) {
		struct tally_value value;
		uint64_t words[5] = {1000};
		size_t nr = 1;

		if (format & GROUP)
			continue;
		if (format & ENABLED)
			words[nr++] = 77;
		if (format & RUNNING)
			words[nr++] = 77;
		if (format & ID)
			words[nr++] = 42;
		if (format & LOST)
			words[nr++] = 3;
		assert_int_equal(decode(format, words, nr * 8, &value, 1), 1);
		assert_int_equal(value.raw, 1000);
		assert_int_equal(value.scaled, 1000);
		assert_int_equal(value.time_enabled, format & ENABLED ? 77 : 0);
		assert_int_equal(value.time_running, format & RUNNING ? 77 : 0);
		assert_int_equal(value.id, format & ID ? 42 : 0);
		assert_int_equal(value.lost, format & LOST ? 3 : 0);
		assert_int_equal(value.state, TALLY_COUNTED);
		assert_int_equal(value.source, TALLY_SOURCE_KERNEL);
		/* One word less or more is another layout. */
		assert_int_equal(decode(format, words, nr * 8 + 8, &value, 1), -EBADMSG);
		assert_int_equal(decode(format, words, nr * 8 - 1, &value, 1), -EBADMSG);
		if (nr > 1)
			assert_int_equal(decode(format, words, nr * 8 - 8, &value, 1), -EBADMSG);
	}
}

static void test_every_group_layout(void **state)
{
	(void)state;
	for (uint64_t bits = 0; bits < 32; bits++) {
		const uint64_t format = bits | GROUP;
		struct tally_value values[3];
		uint64_t words[16] = {3};
		size_t nr = 1;

		if (format & ENABLED)
			words[nr++] = 200;
		if (format & RUNNING)
			words[nr++] = format & ENABLED ? 100 : 200;
		for (uint64_t i = 0; i < 3; i++) {
			words[nr++] = 10 + i;
			if (format & ID)
				words[nr++] = 50 + i;
			if (format & LOST)
				words[nr++] = i;
		}
		assert_int_equal(decode(format, words, nr * 8, values, 3), 3);
		for (uint64_t i = 0; i < 3; i++) {
			const bool half = (format & ENABLED) && (format & RUNNING);

			assert_int_equal(values[i].raw, 10 + i);
			assert_int_equal(values[i].scaled, half ? 20 + 2 * i : 10 + i);
			assert_int_equal(values[i].source,
					 half ? TALLY_SOURCE_SCALED : TALLY_SOURCE_KERNEL);
			assert_int_equal(values[i].id, format & ID ? 50 + i : 0);
			assert_int_equal(values[i].lost, format & LOST ? i : 0);
		}
		assert_int_equal(decode(format, words, nr * 8, values, 2), -ENOSPC);
		assert_int_equal(decode(format, words, nr * 8 - 8, values, 3), -EBADMSG);
		words[0] = 4;
		assert_int_equal(decode(format, words, nr * 8, values, 3), -EBADMSG);
		/* A count with which the size would overflow. */
		words[0] = UINT64_MAX / 2;
		assert_int_equal(decode(format, words, nr * 8, values, 3), -EBADMSG);
	}
}

static void test_member_by_id(void **state)
{
	const uint64_t words[] = {2, 9, 9, 100, 51, 200, 52};
	const uint64_t format = GROUP | ENABLED | RUNNING | ID;
	struct tally_value value;

	(void)state;
	assert_int_equal(decode_member(format, words, sizeof(words), 52, &value), 0);
	assert_int_equal(value.raw, 200);
	assert_int_equal(value.time_running, 9);
	assert_int_equal(decode_member(format, words, sizeof(words), 0, &value), 0);
	assert_int_equal(value.raw, 100);
	assert_int_equal(decode_member(format, words, sizeof(words), 53, &value), -ENOENT);
	assert_int_equal(decode_member(GROUP, (const uint64_t[]){1, 5}, 16, 52, &value), -EINVAL);
	assert_int_equal(decode_member(GROUP, (const uint64_t[]){0}, 8, 0, &value), -EBADMSG);
}

static void test_not_counted(void **state)
{
	const uint64_t waiting[] = {0, 500, 0}, lagging[] = {7, 0, 0};
	struct tally_value value;

	(void)state;
	assert_int_equal(decode(ENABLED | RUNNING, waiting, sizeof(waiting), &value, 1), 1);
	assert_int_equal(value.state, TALLY_NOT_COUNTED);
	assert_int_equal(value.source, TALLY_SOURCE_NONE);
	assert_int_equal(value.time_enabled, 500);
	/* Times that lag behind. */
	assert_int_equal(decode(ENABLED | RUNNING, lagging, sizeof(lagging), &value, 1), 1);
	assert_int_equal(value.state, TALLY_COUNTED);
	assert_int_equal(value.source, TALLY_SOURCE_KERNEL);
	assert_int_equal(value.scaled, 7);
	/* What a pinned event in error reads. */
	memset(&value, 0xff, sizeof(value));
	assert_int_equal(decode(ENABLED, waiting, 0, &value, 1), 1);
	assert_int_equal(value.state, TALLY_NOT_COUNTED);
	assert_int_equal(value.raw, 0);
	memset(&value, 0xff, sizeof(value));
	assert_int_equal(decode_member(GROUP, waiting, 0, 0, &value), 0);
	assert_int_equal(value.state, TALLY_NOT_COUNTED);
	assert_int_equal(decode(ENABLED, waiting, 0, NULL, 0), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_every_single_layout),
		cmocka_unit_test(test_every_group_layout),
		cmocka_unit_test(test_member_by_id),
		cmocka_unit_test(test_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
