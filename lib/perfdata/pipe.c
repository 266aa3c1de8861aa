// SPDX-License-Identifier: MIT
/* Headers that come as records, among the others, because a pipe has no place to point to. */
#include "lib/perfdata/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/perfdata/format.h"

#define MAX_TRACING_DATA (256u << 20)

bool tly_is_header(uint32_t type)
{
	switch (type) {
	case TALLY_RECORD_HEADER_ATTR:
	case TALLY_RECORD_HEADER_EVENT_TYPE:
	case TALLY_RECORD_HEADER_TRACING_DATA:
	case TALLY_RECORD_HEADER_BUILD_ID:
	case TALLY_RECORD_EVENT_UPDATE:
	case TALLY_RECORD_HEADER_FEATURE:
		return true;
	default:
		return false;
	}
}

/* The attr, as long as its own size field says, then the ids to the end of the record. */
static int take_attr(struct tally_perfdata *reader, const struct tly_raw *raw)
{
	size_t header = sizeof(struct perf_event_header);
	const uint8_t *attr = raw->data + header;
	size_t left = raw->size - header;
	uint32_t size = 0;
	int ret;

	if (left >= PERF_ATTR_SIZE_VER0)
		memcpy(&size, attr + offsetof(struct perf_event_attr, size), sizeof(size));
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size > left || (left - size) % WORD)
		return tly_damaged(reader, raw->offset,
				   "an event's attributes run past their record");
	ret = tly_event_add(reader, attr, size, attr + size, (left - size) / WORD, raw->offset);
	/* Those that come before all other records get their names at the end of the headers. */
	return ret || !reader->nr_named ? ret : tly_events_name(reader);
}

static int take_update(struct tally_perfdata *reader, const struct tly_raw *raw)
{
	struct cursor c = {raw->data, raw->size};
	struct tly_event *event;
	uint64_t kind, id, value;
	const char *text;
	size_t index;

	next_u64(&c);
	if (!take_u64(&c, &kind) || !take_u64(&c, &id))
		return tly_damaged(reader, raw->offset, "an event update ends inside its header");
	index = tly_ids_find(&reader->ids, id);
	if (index == SIZE_MAX)
		return 0;
	event = reader->events[index];
	text = (const char *)c.p;
	switch (kind) {
	case TLY_UPDATE_NAME:
	case TLY_UPDATE_UNIT:
		text = tly_keep_string(reader, text, strnlen(text, c.left));
		if (!text)
			return tly_reader_fails(reader, -ENOMEM, "no memory for the events");
		if (kind == TLY_UPDATE_NAME)
			event->public.name = text;
		else
			event->public.unit = text;
		return 0;
	case TLY_UPDATE_SCALE:
		if (!take_u64(&c, &value))
			return tly_damaged(reader, raw->offset,
					   "an event update ends before its scale");
		memcpy(&event->public.scale, &value, sizeof(value));
		return 0;
	default:
		return 0;
	}
}

static int take_feature(struct tally_perfdata *reader, const struct tly_raw *raw)
{
	struct cursor c = {raw->data, raw->size};
	uint64_t feature;

	next_u64(&c);
	if (!take_u64(&c, &feature))
		return tly_damaged(reader, raw->offset, "a header feature ends inside its header");
	if (feature >= TLY_FEATURE_LAST)
		return 0;
	reader->info.features[0] |= UINT64_C(1) << feature;
	if (tly_feature_read(reader, (unsigned int)feature, c.p, c.left))
		return 0;
	return tly_damaged(reader, raw->offset,
			   "header feature %" PRIu64 " is cut off or contradicts itself", feature);
}

/*
 * The blob follows its record. It is read in growing steps, so that a size that is not true asks
 * for no more memory than there is data.
 */
static int take_tracing_data(struct tally_perfdata *reader, const struct tly_raw *raw, bool again)
{
	struct tly_window *window = &reader->window;
	uint64_t offset = raw->offset;
	uint8_t *blob = NULL;
	size_t have = 0, room = 0;
	uint32_t size;
	int ret = 0;

	if (raw->size < sizeof(struct perf_event_header) + sizeof(size))
		return tly_damaged(reader, offset, "the tracing data has no size");
	memcpy(&size, raw->data + sizeof(struct perf_event_header), sizeof(size));
	if (size > MAX_TRACING_DATA)
		return tly_damaged(reader, offset, "%u bytes of tracing data cannot be", size);
	if (again && !tly_window_skip(window, size))
		return 0;
	while (have < size) {
		ssize_t n = tly_window_fill(window, 1);

		if (n <= 0) {
			ret = tly_damaged(reader, window->offset,
					  "it ends inside the tracing data");
			break;
		}
		if ((size_t)n > size - have)
			n = (ssize_t)(size - have);
		if (have + (size_t)n > room) {
			size_t more = 2 * room + (size_t)n;
			uint8_t *grown = realloc(blob, more);

			if (!grown) {
				ret = tly_reader_fails(reader, -ENOMEM,
						       "no memory for the tracing data");
				break;
			}
			blob = grown;
			room = more;
		}
		memcpy(blob + have, window->buf + window->head, (size_t)n);
		tly_window_consume(window, (size_t)n);
		have += (size_t)n;
	}
	if (!ret && !tly_feature_read(reader, TLY_FEATURE_TRACING_DATA, blob, size))
		ret = tly_reader_fails(reader, -ENOMEM, "no memory for the tracing data");
	free(blob);
	return ret;
}

int tly_header_record(struct tally_perfdata *reader, const struct tly_raw *raw)
{
	/* Behind a rewind those of the first pass come again. */
	bool again = reader->nr_headers++ < reader->nr_headers_taken;

	if (!again)
		reader->nr_headers_taken++;
	else if (raw->type != TALLY_RECORD_HEADER_TRACING_DATA)
		return 0;
	switch (raw->type) {
	case TALLY_RECORD_HEADER_ATTR:
		/* A file has its events in the attrs section. */
		return reader->info.pipe ? take_attr(reader, raw) : 0;
	case TALLY_RECORD_EVENT_UPDATE:
		return take_update(reader, raw);
	case TALLY_RECORD_HEADER_FEATURE:
		return take_feature(reader, raw);
	case TALLY_RECORD_HEADER_BUILD_ID:
		if (tly_feature_read(reader, TLY_FEATURE_BUILD_ID, raw->data, raw->size))
			return 0;
		return tly_damaged(reader, raw->offset, "a build-id contradicts its record");
	case TALLY_RECORD_HEADER_TRACING_DATA:
		return take_tracing_data(reader, raw, again);
	default:
		return 0;
	}
}
