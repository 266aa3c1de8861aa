/* SPDX-License-Identifier: MIT */
/*
 * For the tests of the decoder: records built byte by byte, decoded from buffers of their exact
 * size so that the sanitized build sees a read past the end, and cut at every byte.
 */
#ifndef ABI_RECORD_BUILD_H
#define ABI_RECORD_BUILD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tally/record.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define ALL_IDS                                                                                    \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

struct bytes {
	uint8_t data[65536];
	size_t size;
};

static inline void put(struct bytes *b, const void *p, size_t size)
{
	assert_true(size <= sizeof(b->data) - b->size);
	memcpy(b->data + b->size, p, size);
	b->size += size;
}

static inline void put64(struct bytes *b, uint64_t value)
{
	put(b, &value, 8);
}

static inline void put32(struct bytes *b, uint32_t value)
{
	put(b, &value, 4);
}

static inline void put16(struct bytes *b, uint16_t value)
{
	put(b, &value, 2);
}

/* Padded with zeros to a multiple of 8, as the kernel does. */
static inline void put_string(struct bytes *b, const char *s)
{
	static const char zero[8];
	size_t size = strlen(s) + 1;

	put(b, s, size);
	put(b, zero, -size % 8);
}

static inline void begin(struct bytes *b, uint32_t type, uint16_t misc)
{
	b->size = 0;
	put32(b, type);
	put16(b, misc);
	put16(b, 0);
}

static inline void set_size(struct bytes *b, uint16_t size)
{
	memcpy(b->data + 6, &size, 2);
}

/* An allocation of exactly @size bytes of @b, so that ASan watches both ends. */
static inline uint8_t *exact(const struct bytes *b, size_t size)
{
	uint8_t *p = malloc(size ? size : 1);

	assert_non_null(p);
	memcpy(p, b->data, size);
	return p;
}

/* The decoded record, whose raw buffer the caller frees. */
static inline struct tally_record decode_ok(const struct tally_record_format *format,
					    struct bytes *b)
{
	struct tally_record record;
	const char *why = "";
	uint8_t *buf;

	set_size(b, b->size);
	buf = exact(b, b->size);
	memset(&record, 0xee, sizeof(record));
	if (tally_record_decode(format, buf, b->size, &record, &why) != (long)b->size)
		fail_msg("type %u refused: %s", record.type, why);
	assert_int_equal(record.size, b->size);
	assert_ptr_equal(record.raw, buf);
	assert_ptr_equal(record.body, buf + 8);
	return record;
}

static inline void release(struct tally_record *record)
{
	free((void *)(uintptr_t)record->raw);
}

/*
 * Every shorter version: as a buffer cut off (-EAGAIN), and as a record whose size field says the
 * shorter size (refused, or decoded within it).
 */
static inline void cut_everywhere(const struct tally_record_format *format, struct bytes *b)
{
	struct tally_record record;
	const char *why;

	for (size_t size = 0; size < b->size; size++) {
		uint8_t *buf;
		long ret;

		set_size(b, b->size);
		buf = exact(b, size);
		assert_int_equal(tally_record_decode(format, buf, size, &record, NULL), -EAGAIN);
		free(buf);
		if (size < 8)
			continue;
		set_size(b, size);
		buf = exact(b, size);
		why = NULL;
		ret = tally_record_decode(format, buf, size, &record, &why);
		if (ret != (long)size) {
			assert_int_equal(ret, -EBADMSG);
			assert_non_null(why);
		}
		assert_int_equal(record.size, size);
		free(buf);
	}
}

/* xorshift64*: the same cases in every run. */
static inline uint64_t next_random(void)
{
	static uint64_t state = 0x74616c6c79;

	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
