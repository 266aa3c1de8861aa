// SPDX-License-Identifier: MIT
/* The events of a file: their attrs, their ids, and how the records of one are told from another's.
 */
#include "lib/perfdata/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/source.h"
#include "lib/error.h"

static struct tly_event **room_for_one(struct tally_perfdata *reader)
{
	struct tly_event **events;

	/* Doubles at powers of two. */
	if (reader->nr_events & (reader->nr_events - 1))
		return reader->events;
	events = realloc(reader->events,
			 (reader->nr_events ? 2 * reader->nr_events : 1) * sizeof(*events));
	if (events)
		reader->events = events;
	return events;
}

/*
 * Samples of several events are told apart by an id that is found before their layout is known, so
 * it must be at one place in all of them.
 */
static bool common_id(struct tally_perfdata *reader, const struct tally_record_format *format)
{
	size_t in_sample = 0, from_end = 0;
	bool has = tally_record_id_position(format, &in_sample, &from_end);

	if (reader->nr_events == 0) {
		reader->has_ids = has;
		reader->id_in_sample = in_sample;
		reader->id_from_end = from_end;
		return true;
	}
	return has && reader->has_ids && in_sample == reader->id_in_sample &&
	       from_end == reader->id_from_end;
}

/*
 * Only one of the events asks for mapping records and for build-ids in them, while the records that
 * the recorder made up have id 0, which is read as the first event's.
 */
static void share_build_id(struct tally_perfdata *reader, struct tly_event *event)
{
	struct tally_record_format *format = &event->public.format;

	if (reader->nr_events && reader->events[0]->public.format.build_id)
		format->build_id = true;
	for (size_t i = 0; format->build_id && i < reader->nr_events; i++)
		reader->events[i]->public.format.build_id = true;
}

int tly_event_add(struct tally_perfdata *reader, const void *attr, size_t attr_size,
		  const void *ids, size_t nr_ids, uint64_t offset)
{
	uint32_t size = 0;
	struct perf_event_attr *copy;
	struct tly_event *event;
	uint64_t *ids_copy;

	if (attr_size >= PERF_ATTR_SIZE_VER0)
		memcpy(&size, (const uint8_t *)attr + offsetof(struct perf_event_attr, size),
		       sizeof(size));
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size > attr_size || size < PERF_ATTR_SIZE_VER0)
		return tly_damaged(reader, offset, "an event's attributes claim %u bytes of %zu",
				   size, attr_size);
	if (reader->nr_events == TLY_MAX_EVENTS)
		return tly_damaged(reader, offset, "it has more than %u events", TLY_MAX_EVENTS);
	/* Never shorter than the struct we know, so that every field of it may be read. */
	copy = tly_keep(reader, size > sizeof(*copy) ? size : sizeof(*copy));
	event = tly_keep(reader, sizeof(*event));
	ids_copy = tly_keep(reader, nr_ids * sizeof(*ids_copy));
	if (!copy || !event || !ids_copy || !room_for_one(reader))
		return tly_reader_fails(reader, -ENOMEM, "no memory for the events");
	memcpy(copy, attr, size);
	copy->size = size;
	if (nr_ids)
		memcpy(ids_copy, ids, nr_ids * sizeof(*ids_copy));
	event->public = (struct tally_perfdata_event){
		.attr = copy,
		.ids = ids_copy,
		.nr_ids = nr_ids,
		.user_mode = nr_ids && ids_copy[0] >= ABI_FIRST_ID,
		.unit = "",
		.scale = 1.0,
	};
	tally_record_format_init(&event->public.format, copy);
	event->has_time = tally_record_time_position(&event->public.format, &event->time_in_sample,
						     &event->time_from_end);
	if (!common_id(reader, &event->public.format))
		return tly_damaged(reader, offset,
				   "the samples of this event cannot be told from those of the "
				   "first: they have no id at a common place");
	share_build_id(reader, event);
	if (copy->use_clockid && reader->info.clockid < 0)
		reader->info.clockid = copy->clockid;
	reader->events[reader->nr_events++] = event;
	for (size_t i = 0; i < nr_ids; i++)
		if (tly_ids_add(&reader->ids, ids_copy[i], reader->nr_events - 1))
			return tly_reader_fails(reader, -ENOMEM, "no memory for the events");
	return 0;
}

int tly_events_name(struct tally_perfdata *reader)
{
	for (; reader->nr_named < reader->nr_events; reader->nr_named++) {
		struct tly_event *event = reader->events[reader->nr_named];
		char name[256];

		if (event->public.name)
			continue;
		tally_event_name(event->public.attr, name, sizeof(name));
		event->public.name = tly_keep_string(reader, name, strlen(name));
		if (!event->public.name)
			return tly_reader_fails(reader, -ENOMEM, "no memory for the events");
	}
	return 0;
}
