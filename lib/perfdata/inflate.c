// SPDX-License-Identifier: MIT
#include "lib/perfdata/inflate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#define CAPACITY (256u << 10)

struct tly_inflate {
	ZSTD_DStream *stream;
	ZSTD_inBuffer in;
	bool more; /* zstd may hold output back although its input is used up */
	size_t head, tail;
	uint8_t buf[CAPACITY];
};

struct tly_inflate *tly_inflate_new(void)
{
	struct tly_inflate *inflate = malloc(sizeof(*inflate));

	if (!inflate)
		return NULL;
	inflate->stream = ZSTD_createDStream();
	if (!inflate->stream) {
		free(inflate);
		return NULL;
	}
	tly_inflate_reset(inflate);
	return inflate;
}

void tly_inflate_free(struct tly_inflate *inflate)
{
	if (!inflate)
		return;
	ZSTD_freeDStream(inflate->stream);
	free(inflate);
}

void tly_inflate_reset(struct tly_inflate *inflate)
{
	ZSTD_DCtx_reset(inflate->stream, ZSTD_reset_session_only);
	inflate->in = (ZSTD_inBuffer){0};
	inflate->more = false;
	inflate->head = 0;
	inflate->tail = 0;
}

void tly_inflate_feed(struct tly_inflate *inflate, const void *payload, size_t size)
{
	inflate->in = (ZSTD_inBuffer){payload, size, 0};
	inflate->more = true;
}

ssize_t tly_inflate_fill(struct tly_inflate *inflate, size_t want, const uint8_t **data,
			 const char **why)
{
	size_t have = inflate->tail - inflate->head;

	if (have < want && inflate->more) {
		memmove(inflate->buf, inflate->buf + inflate->head, have);
		inflate->head = 0;
		inflate->tail = have;
	}
	while (inflate->tail - inflate->head < want && inflate->more) {
		ZSTD_outBuffer out = {inflate->buf, CAPACITY, inflate->tail};
		size_t ret = ZSTD_decompressStream(inflate->stream, &out, &inflate->in);

		if (ZSTD_isError(ret)) {
			inflate->more = false;
			*why = ZSTD_getErrorName(ret);
			return -EBADMSG;
		}
		inflate->tail = out.pos;
		inflate->more = inflate->in.pos < inflate->in.size || out.pos == out.size;
	}
	*data = inflate->buf + inflate->head;
	return (ssize_t)(inflate->tail - inflate->head);
}

void tly_inflate_consume(struct tly_inflate *inflate, size_t bytes)
{
	inflate->head += bytes;
}
