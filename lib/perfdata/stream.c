// SPDX-License-Identifier: MIT
/*
 * One record after the other, out of two layers:
 *
 *	window	the bytes of the file: records, carriers, payload behind records
 *	inflate	the bytes inside the carriers: records
 *
 * The inner layer goes first, until the carrier at hand is used up. Nothing is decoded or copied
 * here; a record is its place in one of the two buffers.
 */
#include "lib/perfdata/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/error.h"

/* Types have been handed out in turn; what lies far above them is not a record. */
#define MAX_TYPE 255

static const size_t header_size = sizeof(struct perf_event_header);

/* Returns false, with the error set, for what cannot be the header of a record. */
static bool parse_header(struct tally_perfdata *reader, const uint8_t *data, uint64_t offset,
			 struct tly_raw *raw)
{
	struct perf_event_header header;

	memcpy(&header, data, sizeof(header));
	raw->data = data;
	raw->type = header.type;
	raw->size = header.size;
	raw->offset = offset;
	if (header.size >= sizeof(header) && header.type && header.type <= MAX_TYPE)
		return true;
	if (offset >= reader->declared_end)
		return false;
	if (header.size < sizeof(header))
		tly_damaged(reader, offset, "a record cannot be %u bytes long", header.size);
	else
		tly_damaged(reader, offset, "there is no record type %u", header.type);
	return false;
}

/* The source has @have bytes of a record at @offset, and no more will come. */
static int cut_off(struct tally_perfdata *reader, uint64_t offset, size_t have, size_t want)
{
	if (offset >= reader->declared_end)
		return 0;
	tly_damaged(reader, offset, "a record of %zu bytes is cut off after %zu", want, have);
	tly_error_remedy(&reader->error, "the recording or a copy of it was cut short; all records "
					 "before that byte were read");
	return -EBADMSG;
}

static int read_failed(struct tally_perfdata *reader, ssize_t code)
{
	return tly_reader_fails(reader, (int)code, "reading at byte %" PRIu64 ": %s",
				reader->window.offset, strerror((int)-code));
}

/* Where the window ends although the header promised more. */
static int at_end(struct tally_perfdata *reader)
{
	uint64_t offset = reader->window.offset;

	if (offset >= reader->declared_end || reader->declared_end == UINT64_MAX)
		return 0;
	tly_damaged(reader, offset, "the file ends %" PRIu64 " bytes before its data does",
		    reader->declared_end - offset);
	tly_error_remedy(&reader->error, "the recording or a copy of it was cut short; all records "
					 "before that byte were read");
	return -EBADMSG;
}

static int next_in_window(struct tally_perfdata *reader, struct tly_raw *raw)
{
	struct tly_window *window = &reader->window;
	size_t have = window->tail - window->head;
	ssize_t n;

	if (reader->skip) {
		int ret = tly_window_skip(window, reader->skip);

		if (ret == -ENODATA)
			return tly_damaged(reader, window->offset,
					   "the file ends inside the AUX data of a record");
		if (ret)
			return read_failed(reader, ret);
		reader->skip = 0;
		have = window->tail - window->head;
	}
	if (have < header_size) {
		n = tly_window_fill(window, header_size);
		if (n < 0)
			return read_failed(reader, n);
		if (n == 0)
			return at_end(reader);
		have = (size_t)n;
		if (have < header_size)
			return cut_off(reader, window->offset, have, header_size);
	}
	if (!parse_header(reader, window->buf + window->head, window->offset, raw))
		return reader->failed;
	if (have < raw->size) {
		n = tly_window_fill(window, raw->size);
		if (n < 0)
			return read_failed(reader, n);
		if ((size_t)n < raw->size)
			return cut_off(reader, window->offset, (size_t)n, raw->size);
		raw->data = window->buf + window->head;
	}
	tly_window_consume(window, raw->size);
	return 1;
}

/* 0 when the carrier is used up; the start of a record may be left over for the next one. */
static int next_in_carrier(struct tally_perfdata *reader, struct tly_raw *raw)
{
	const char *why = "";
	const uint8_t *data;
	ssize_t n;

	n = tly_inflate_fill(reader->inflate, header_size, &data, &why);
	if (n >= (ssize_t)header_size) {
		if (!parse_header(reader, data, reader->carrier, raw)) {
			reader->inflating = false;
			return reader->failed;
		}
		n = tly_inflate_fill(reader->inflate, raw->size, &data, &why);
		if (n >= (ssize_t)raw->size) {
			raw->data = data;
			tly_inflate_consume(reader->inflate, raw->size);
			return 1;
		}
	}
	reader->inflating = false;
	if (n < 0)
		return tly_damaged(reader, reader->carrier, "its compressed data is corrupt: %s",
				   why);
	return 0;
}

static int open_carrier(struct tally_perfdata *reader, const struct tly_raw *raw)
{
	const uint8_t *payload = raw->data + header_size;
	size_t size = raw->size - header_size;

	if (!reader->inflate) {
		reader->inflate = tly_inflate_new();
		if (!reader->inflate)
			return tly_reader_fails(reader, -ENOMEM, "no memory to decompress with");
	}
	/* The newer carrier is padded to 8 bytes and says how many of them count. */
	if (raw->type == TALLY_RECORD_COMPRESSED2) {
		uint64_t used = size >= WORD ? tally_u64(payload) : UINT64_MAX;

		if (used > size - WORD)
			return tly_damaged(reader, raw->offset,
					   "compressed data runs past its record");
		payload += WORD;
		size = used;
	}
	reader->info.compressed = true;
	reader->carrier = raw->offset;
	reader->inflating = true;
	tly_inflate_feed(reader->inflate, payload, size);
	return 0;
}

/* Headers, carriers and payloads make sense in the window only. */
static bool nested(const struct tally_perfdata *reader, const struct tly_raw *raw)
{
	return reader->inflating &&
	       (raw->type == TALLY_RECORD_COMPRESSED || raw->type == TALLY_RECORD_COMPRESSED2 ||
		raw->type == TALLY_RECORD_AUXTRACE ||
		raw->type == TALLY_RECORD_HEADER_TRACING_DATA);
}

/* The end of the data. What a carrier left over is then a record cut off. */
static int finish(struct tally_perfdata *reader)
{
	const char *why = "";
	const uint8_t *data;
	ssize_t left = 0;

	if (reader->inflate)
		left = tly_inflate_fill(reader->inflate, 0, &data, &why);
	if (left > 0 && reader->carrier < reader->declared_end)
		return tly_damaged(reader, reader->carrier,
				   "the compressed data ends inside a record");
	if (reader->late.code) {
		reader->error = reader->late;
		reader->failed = reader->late.code;
	}
	return reader->failed;
}

int tly_stream_next(struct tally_perfdata *reader, struct tly_raw *raw)
{
	int ret;

	if (reader->failed)
		return reader->failed;
	if (reader->peeked) {
		reader->peeked = false;
		*raw = reader->next;
		return 1;
	}
	for (;;) {
		ret = reader->inflating ? next_in_carrier(reader, raw) : 0;
		if (!ret && !reader->failed)
			ret = next_in_window(reader, raw);
		if (ret < 0)
			return ret;
		if (ret == 0)
			return finish(reader);
		if (raw->type < TALLY_RECORD_HEADER_ATTR)
			return 1;
		if (nested(reader, raw))
			return tly_damaged(reader, raw->offset,
					   "a record of type %u inside a compressed one",
					   raw->type);
		if (raw->type == TALLY_RECORD_COMPRESSED || raw->type == TALLY_RECORD_COMPRESSED2)
			ret = open_carrier(reader, raw);
		else if (tly_is_header(raw->type))
			ret = tly_header_record(reader, raw);
		else
			break;
		if (ret)
			return ret;
	}
	if (raw->type == TALLY_RECORD_AUXTRACE) {
		if (raw->size < header_size + WORD)
			return tly_damaged(reader, raw->offset, "an AUXTRACE record has no size");
		reader->skip = tally_u64(raw->data + header_size);
	}
	return 1;
}

void tly_stream_rewind(struct tally_perfdata *reader)
{
	tly_window_seek(&reader->window, reader->data_offset, reader->data_end);
	if (reader->inflate)
		tly_inflate_reset(reader->inflate);
	reader->inflating = false;
	reader->skip = 0;
	reader->peeked = false;
	reader->nr_headers = 0;
}
