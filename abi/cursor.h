/* SPDX-License-Identifier: MIT */
/* Taking a record apart from front to back, never past its end. */
#ifndef ABI_CURSOR_H
#define ABI_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tally/record.h>

#define WORD sizeof(uint64_t)

/* The fields that tell where and when: of a sample, and in the trailer of other records. */
#define ID_FIELDS                                                                                  \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* What is left to read of a record's body. */
struct cursor {
	const uint8_t *p;
	size_t left;
};

static inline unsigned int bits(uint64_t mask)
{
	unsigned int n = 0;

	for (; mask; mask &= mask - 1)
		n++;
	return n;
}

/* The caller has made sure that it is there. */
static inline uint64_t next_u64(struct cursor *c)
{
	uint64_t value = tally_u64(c->p);

	c->p += WORD;
	c->left -= WORD;
	return value;
}

static inline void next_two_u32(struct cursor *c, uint32_t *first, uint32_t *second)
{
	memcpy(first, c->p, sizeof(*first));
	memcpy(second, c->p + sizeof(*first), sizeof(*second));
	c->p += WORD;
	c->left -= WORD;
}

static inline bool take_u64(struct cursor *c, uint64_t *value)
{
	if (c->left < WORD)
		return false;
	*value = next_u64(c);
	return true;
}

static inline bool take_two_u32(struct cursor *c, uint32_t *first, uint32_t *second)
{
	if (c->left < WORD)
		return false;
	next_two_u32(c, first, second);
	return true;
}

static inline bool take_bytes(struct cursor *c, uint64_t size, const void **bytes)
{
	if (size > c->left)
		return false;
	*bytes = c->p;
	c->p += size;
	c->left -= size;
	return true;
}

static inline bool take_array(struct cursor *c, uint64_t nr, size_t size, const void **array)
{
	return nr <= c->left / size && take_bytes(c, nr * size, array);
}

/* Take a struct read_format, by the format's read_format (abi/read_format.c). */
bool tly_take_read(const struct tally_record_format *format, struct cursor *c,
		   struct tally_read_values *read);

/* Decodes the body of a PERF_RECORD_SAMPLE; returns how it contradicts itself, or NULL
 * (abi/sample.c). */
const char *tly_decode_sample(const struct tally_record_format *format, struct cursor *c,
			      struct tally_record *record);

#endif
