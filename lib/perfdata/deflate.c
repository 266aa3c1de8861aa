// SPDX-License-Identifier: MIT
#include "lib/perfdata/deflate.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include <tally/perfdata.h>

#define MAX_RECORD  65528u /* what the 16-bit size of a record can say, in words */
#define MAX_PAYLOAD (MAX_RECORD - sizeof(struct perf_event_header))

/* The first carrier has the stream's header too. */
_Static_assert(ZSTD_COMPRESSBOUND(TLY_DEFLATE_CHUNK) + 32 <= MAX_PAYLOAD,
	       "a chunk that does not compress fits one carrier");

struct tly_deflate {
	ZSTD_CCtx *stream;
};

struct tly_deflate *tly_deflate_new(int level)
{
	struct tly_deflate *deflate = malloc(sizeof(*deflate));

	if (!deflate)
		return NULL;
	deflate->stream = ZSTD_createCCtx();
	if (!deflate->stream) {
		free(deflate);
		return NULL;
	}
	ZSTD_CCtx_setParameter(deflate->stream, ZSTD_c_compressionLevel, level);
	return deflate;
}

void tly_deflate_free(struct tly_deflate *deflate)
{
	if (!deflate)
		return;
	ZSTD_freeCCtx(deflate->stream);
	free(deflate);
}

/* Takes up to @room bytes off the front of the pieces into the stream. */
static size_t compress_some(struct tly_deflate *deflate, ZSTD_outBuffer *out,
			    const struct iovec *pieces, int nr_pieces, int *piece, size_t *at,
			    size_t room)
{
	size_t taken = 0;

	while (*piece < nr_pieces && taken < room) {
		const struct iovec *from = &pieces[*piece];
		size_t size = from->iov_len - *at;
		ZSTD_inBuffer in;
		size_t ret;

		if (size > room - taken)
			size = room - taken;
		in = (ZSTD_inBuffer){(const char *)from->iov_base + *at, size, 0};
		while (in.pos < in.size) {
			ret = ZSTD_compressStream2(deflate->stream, out, &in, ZSTD_e_continue);
			if (ZSTD_isError(ret))
				return ret;
		}
		taken += size;
		*at += size;
		if (*at == from->iov_len) {
			(*piece)++;
			*at = 0;
		}
	}
	return taken;
}

int tly_deflate(struct tly_deflate *deflate, const struct iovec *pieces, int nr_pieces,
		struct tly_bytes *out)
{
	int piece = 0;
	size_t at = 0;

	while (piece < nr_pieces) {
		struct perf_event_header header = {.type = TALLY_RECORD_COMPRESSED};
		size_t start = out->size;
		uint8_t *carrier = tly_bytes_add(out, sizeof(header) + MAX_PAYLOAD);
		ZSTD_outBuffer payload = {carrier + sizeof(header), MAX_PAYLOAD, 0};
		ZSTD_inBuffer none = {NULL, 0, 0};
		size_t ret;

		if (!carrier)
			return -ENOMEM;
		ret = compress_some(deflate, &payload, pieces, nr_pieces, &piece, &at,
				    TLY_DEFLATE_CHUNK);
		if (ZSTD_isError(ret))
			return -EIO;
		if (!ret) { /* nothing but empty pieces was left */
			out->size = start;
			break;
		}
		/* The carrier has room for all of it, so that this ends at once. */
		ret = ZSTD_compressStream2(deflate->stream, &payload, &none, ZSTD_e_flush);
		if (ret)
			return -EIO;
		header.size = (uint16_t)(sizeof(header) + payload.pos);
		memcpy(carrier, &header, sizeof(header));
		out->size = start + header.size;
	}
	return 0;
}
