/* SPDX-License-Identifier: MIT */
/*
 * The records inside PERF_RECORD_COMPRESSED and PERF_RECORD_COMPRESSED2. The payloads of all
 * carriers are one zstd stream, and a record may begin in one carrier and end in the next. However
 * much a payload expands to, no more than one buffer of it is held.
 */
#ifndef LIB_PERFDATA_INFLATE_H
#define LIB_PERFDATA_INFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tly_inflate;

struct tly_inflate *tly_inflate_new(void);
void tly_inflate_free(struct tly_inflate *inflate);
/* As at the start of a stream. */
void tly_inflate_reset(struct tly_inflate *inflate);

/* The next payload, which must stay where it is until tly_inflate_fill() has come to its end. */
void tly_inflate_feed(struct tly_inflate *inflate, const void *payload, size_t size);

/*
 * Makes @want bytes (at most 64 KiB) contiguous and points *@data at them. Returns how many there
 * are, less than @want only when the payload is used up, or -EBADMSG with the reason in *@why.
 */
ssize_t tly_inflate_fill(struct tly_inflate *inflate, size_t want, const uint8_t **data,
			 const char **why);
void tly_inflate_consume(struct tly_inflate *inflate, size_t bytes);

#endif
