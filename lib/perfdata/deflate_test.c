// SPDX-License-Identifier: MIT
/* Carriers written and read: all bytes come back, however they were cut and however they compress.
 */
#include <linux/perf_event.h>

#include <tally/perfdata.h>

#include "abi/record_build.h"
#include "lib/perfdata/deflate.h"
#include "lib/perfdata/inflate.h"

#define SIZE (400u << 10)

/* Feeds every carrier in @out and compares what comes out with @plain, @want bytes at a time. */
static void inflate_and_compare(const struct tly_bytes *out, const uint8_t *plain, size_t size,
				size_t want)
{
	struct tly_inflate *inflate = tly_inflate_new();
	size_t at = 0;

	assert_non_null(inflate);
	for (size_t pos = 0; pos < out->size;) {
		struct perf_event_header header;
		const uint8_t *data;
		const char *why = "";
		size_t before = at;
		ssize_t n;

		memcpy(&header, out->data + pos, sizeof(header));
		assert_int_equal(header.type, TALLY_RECORD_COMPRESSED);
		assert_true(header.size > sizeof(header) && header.size <= out->size - pos);
		tly_inflate_feed(inflate, out->data + pos + sizeof(header),
				 header.size - sizeof(header));
		pos += header.size;
		while ((n = tly_inflate_fill(inflate, want, &data, &why)) > 0) {
			if ((size_t)n > want)
				n = (ssize_t)want;
			assert_true((size_t)n <= size - at);
			assert_memory_equal(data, plain + at, n);
			tly_inflate_consume(inflate, (size_t)n);
			at += (size_t)n;
		}
		if (n < 0)
			fail_msg("%s", why);
		/* What perf asks of a carrier: it yields something, and no more than promised. */
		assert_true(at > before && at - before <= TLY_DEFLATE_CHUNK);
	}
	assert_int_equal(at, size);
	tly_inflate_free(inflate);
}

static void round_trip(const uint8_t *plain, int level)
{
	static const size_t wants[] = {1, 8, 4096, 65535};
	struct tly_deflate *deflate = tly_deflate_new(level);
	struct tly_bytes out = {0};

	assert_non_null(deflate);
	/* In writes of a few pieces, empty ones among them. */
	for (size_t at = 0; at < SIZE;) {
		struct iovec pieces[4];

		for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
			size_t size = next_random() % 3 ? next_random() % 100000 : 0;

			if (size > SIZE - at)
				size = SIZE - at;
			pieces[i] = (struct iovec){(void *)(uintptr_t)(plain + at), size};
			at += size;
		}
		assert_int_equal(tly_deflate(deflate, pieces, ARRAY_SIZE(pieces), &out), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wants); i++)
		inflate_and_compare(&out, plain, SIZE, wants[i]);
	tly_bytes_free(&out);
	tly_deflate_free(deflate);
}

static void test_random_bytes(void **state)
{
	static uint64_t plain[SIZE / 8];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		plain[i] = next_random();
	round_trip((const uint8_t *)plain, 1);
	round_trip((const uint8_t *)plain, 19);
}

static void test_zeros(void **state)
{
	static uint8_t plain[SIZE];

	(void)state;
	round_trip(plain, 3);
}

static void test_words_that_differ_a_little(void **state)
{
	static uint64_t plain[SIZE / 8];

	(void)state;
	for (size_t i = 1; i < ARRAY_SIZE(plain); i++)
		plain[i] = plain[i - 1] + next_random() % 1000;
	round_trip((const uint8_t *)plain, 1);
	round_trip((const uint8_t *)plain, 22);
}

/* A carrier of a few bytes that stands for far more than any buffer. */
static void test_little_that_is_much(void **state)
{
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0x58};
	static uint8_t payload[60000];
	struct tly_inflate *inflate = tly_inflate_new();
	uint64_t total = 0, expected = 0;
	const uint8_t *data;
	const char *why = "";
	size_t size = sizeof(frame);
	ssize_t n;

	(void)state;
	assert_non_null(inflate);
	memcpy(payload, frame, sizeof(frame));
	while (size + 4 <= sizeof(payload)) { /* blocks of 128 KiB of one byte */
		uint32_t block = (128u << 10) << 3 | 1 << 1;

		memcpy(payload + size, &block, 3);
		payload[size + 3] = 7;
		size += 4;
		expected += 128 << 10;
	}
	tly_inflate_feed(inflate, payload, size);
	while ((n = tly_inflate_fill(inflate, 65535, &data, &why)) > 0) {
		assert_int_equal(data[n - 1], 7);
		tly_inflate_consume(inflate, (size_t)n);
		total += (uint64_t)n;
	}
	assert_int_equal(n, 0);
	assert_int_equal(total, expected);
	tly_inflate_free(inflate);
}

static void test_corrupt(void **state)
{
	struct tly_inflate *inflate = tly_inflate_new();
	const uint8_t *data;
	const char *why = NULL;

	(void)state;
	assert_non_null(inflate);
	tly_inflate_feed(inflate, "not a zstd stream", 17);
	assert_int_equal(tly_inflate_fill(inflate, 1, &data, &why), -EBADMSG);
	assert_non_null(why);
	tly_inflate_free(inflate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_zeros),
		cmocka_unit_test(test_words_that_differ_a_little),
		cmocka_unit_test(test_little_that_is_much),
		cmocka_unit_test(test_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
