/* SPDX-License-Identifier: MIT */
/*
 * A growing run of bytes, for parts of a file that are put together before they are written. When
 * memory is short it stops growing and says so at the end, so that putting needs no checks.
 */
#ifndef LIB_PERFDATA_BYTES_H
#define LIB_PERFDATA_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct tly_bytes {
	uint8_t *data;
	size_t size, room;
	bool failed;
};

void tly_bytes_free(struct tly_bytes *bytes);

/* Appends @size bytes to be filled in; NULL when memory is short. */
void *tly_bytes_add(struct tly_bytes *bytes, size_t size);
void tly_bytes_put(struct tly_bytes *bytes, const void *data, size_t size);
void tly_bytes_u32(struct tly_bytes *bytes, uint32_t value);
void tly_bytes_u64(struct tly_bytes *bytes, uint64_t value);
/* As header features have them: u32 size, then the string padded with zeros to that size. */
void tly_bytes_string(struct tly_bytes *bytes, const char *string);
/* Zeros up to a multiple of @to, a power of two. */
void tly_bytes_align(struct tly_bytes *bytes, size_t to);
/* All of a file that may lie about its size, as those of procfs do. Negative errno. */
int tly_bytes_file(struct tly_bytes *bytes, const char *path);

/*
 * Appends the header of a record whose body follows; tly_bytes_end_record() fills in its size,
 * padded to 8 bytes, and returns false when it is too large for a record (it is then taken back).
 */
size_t tly_bytes_begin_record(struct tly_bytes *bytes, uint32_t type, uint16_t misc);
bool tly_bytes_end_record(struct tly_bytes *bytes, size_t start);

#endif
