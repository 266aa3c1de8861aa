/* SPDX-License-Identifier: MIT */
/*
 * Records into PERF_RECORD_COMPRESSED carriers, the other way round from inflate.h.
 *
 * perf decompresses one carrier at a time into a buffer whose size is in the file, and gives up on
 * a carrier that yields nothing. So each carrier holds one chunk of input, flushed, that is small
 * enough to fit even when it does not compress.
 */
#ifndef LIB_PERFDATA_DEFLATE_H
#define LIB_PERFDATA_DEFLATE_H

#include <stdint.h>
#include <sys/uio.h>

#include "lib/perfdata/bytes.h"

/* No carrier expands to more. */
#define TLY_DEFLATE_CHUNK 64512u

struct tly_deflate;

/* NULL when memory is short; @level is 1 to 22. */
struct tly_deflate *tly_deflate_new(int level);
void tly_deflate_free(struct tly_deflate *deflate);

/* Appends the carriers of all @pieces to @out. -ENOMEM, or -EIO when zstd fails. */
int tly_deflate(struct tly_deflate *deflate, const struct iovec *pieces, int nr_pieces,
		struct tly_bytes *out);

#endif
