// SPDX-License-Identifier: MIT
#include "lib/perfdata/frame.h"

#include <string.h>

#include <tally/perfdata.h>

/* The header, the ids of each event, the attrs. The data begins behind them. */
static void put_file_start(const struct tly_facts *facts, struct tly_file_header *header,
			   struct tly_bytes *out)
{
	size_t attr_size = facts->attr_size;
	uint64_t ids_at = sizeof(*header);

	memcpy(header->magic, TLY_MAGIC, sizeof(header->magic));
	header->size = sizeof(*header);
	header->attr_size = attr_size + sizeof(struct tly_section);
	header->attrs.offset = ids_at;
	for (size_t i = 0; i < facts->nr_events; i++)
		header->attrs.offset += facts->events[i].nr_ids * sizeof(uint64_t);
	header->attrs.size = facts->nr_events * header->attr_size;
	header->data.offset = header->attrs.offset + header->attrs.size;

	tly_bytes_put(out, header, sizeof(*header));
	for (size_t i = 0; i < facts->nr_events; i++)
		tly_bytes_put(out, facts->events[i].ids,
			      facts->events[i].nr_ids * sizeof(uint64_t));
	for (size_t i = 0; i < facts->nr_events; i++) {
		struct tly_section ids = {ids_at, facts->events[i].nr_ids * sizeof(uint64_t)};

		tly_bytes_put(out, facts->events[i].attr, attr_size);
		tly_bytes_put(out, &ids, sizeof(ids));
		ids_at += ids.size;
	}
}

/* The event whose ids are too many for a record, or NULL. */
static const struct tly_written_event *put_pipe_start(const struct tly_facts *facts,
						      struct tly_bytes *out)
{
	struct tly_pipe_header header = {.size = sizeof(header)};

	memcpy(header.magic, TLY_MAGIC, sizeof(header.magic));
	tly_bytes_put(out, &header, sizeof(header));
	for (size_t i = 0; i < facts->nr_events; i++) {
		const struct tly_written_event *event = &facts->events[i];
		size_t start = tly_bytes_begin_record(out, TALLY_RECORD_HEADER_ATTR, 0);

		tly_bytes_put(out, event->attr, facts->attr_size);
		tly_bytes_put(out, event->ids, event->nr_ids * sizeof(*event->ids));
		if (!tly_bytes_end_record(out, start))
			return event;
	}
	return NULL;
}

static void put_update(struct tly_bytes *out, const struct tly_written_event *event,
		       enum tly_event_update kind, const void *value, size_t size)
{
	size_t start = tly_bytes_begin_record(out, TALLY_RECORD_EVENT_UPDATE, 0);

	tly_bytes_u64(out, kind);
	tly_bytes_u64(out, event->ids[0]);
	tly_bytes_put(out, value, size);
	tly_bytes_end_record(out, start);
}

/* Names and units of events, which attrs do not have. */
static void put_updates(const struct tly_facts *facts, struct tly_bytes *out)
{
	for (size_t i = 0; i < facts->nr_events; i++) {
		const struct tly_written_event *event = &facts->events[i];

		if (!event->nr_ids)
			continue;
		put_update(out, event, TLY_UPDATE_NAME, event->name, strlen(event->name) + 1);
		if (!event->unit[0])
			continue;
		put_update(out, event, TLY_UPDATE_UNIT, event->unit, strlen(event->unit) + 1);
		put_update(out, event, TLY_UPDATE_SCALE, &event->scale, sizeof(event->scale));
	}
}

/* In the order in which a file has them. */
static const struct {
	enum tly_feature feature;
	bool early; /* known at the start, and small enough for a record */
} features[] = {
	{TLY_FEATURE_TRACING_DATA, false}, {TLY_FEATURE_BUILD_ID, false},
	{TLY_FEATURE_HOSTNAME, true},	   {TLY_FEATURE_OSRELEASE, true},
	{TLY_FEATURE_VERSION, true},	   {TLY_FEATURE_ARCH, true},
	{TLY_FEATURE_NRCPUS, true},	   {TLY_FEATURE_CPUDESC, true},
	{TLY_FEATURE_CPUID, true},	   {TLY_FEATURE_TOTAL_MEM, true},
	{TLY_FEATURE_CMDLINE, true},	   {TLY_FEATURE_EVENT_DESC, false},
	{TLY_FEATURE_PMU_MAPPINGS, true},  {TLY_FEATURE_GROUP_DESC, true},
	{TLY_FEATURE_SAMPLE_TIME, false},  {TLY_FEATURE_CLOCKID, true},
	{TLY_FEATURE_COMPRESSED, true},	   {TLY_FEATURE_CLOCK_DATA, true},
};

#define NR_FEATURES (sizeof(features) / sizeof(features[0]))

static void put_feature_records(const struct tly_facts *facts, struct tly_bytes *out)
{
	for (size_t i = 0; i < NR_FEATURES; i++) {
		size_t start = tly_bytes_begin_record(out, TALLY_RECORD_HEADER_FEATURE, 0);

		tly_bytes_u64(out, features[i].feature);
		if (features[i].early && tly_fact(facts, features[i].feature, out))
			tly_bytes_end_record(out, start);
		else
			out->size = start;
	}
}

/* The blob follows its record, which has the padded size of it. */
static void put_tracing_record(const struct tly_facts *facts, struct tly_bytes *out)
{
	struct {
		struct perf_event_header header;
		uint32_t size, padding;
	} record = {.header = {.type = TALLY_RECORD_HEADER_TRACING_DATA, .size = sizeof(record)}};
	size_t start = out->size, blob;

	tly_bytes_put(out, &record, sizeof(record));
	blob = out->size;
	if (!tly_tracing_data(facts, out)) {
		out->size = start;
		return;
	}
	tly_bytes_align(out, sizeof(uint64_t));
	record.size = (uint32_t)(out->size - blob);
	if (!out->failed)
		memcpy(out->data + start, &record, sizeof(record));
}

void tly_frame_start_file(const struct tly_facts *facts, struct tly_file_header *header,
			  struct tly_bytes *out)
{
	put_file_start(facts, header, out);
	put_updates(facts, out);
	put_feature_records(facts, out);
}

const struct tly_written_event *tly_frame_start_pipe(const struct tly_facts *facts,
						     struct tly_bytes *out)
{
	const struct tly_written_event *too_large = put_pipe_start(facts, out);

	put_updates(facts, out);
	put_feature_records(facts, out);
	put_tracing_record(facts, out);
	return too_large;
}

void tly_frame_end_file(const struct tly_facts *facts, uint64_t end, struct tly_file_header *header,
			struct tly_bytes *out)
{
	struct tly_section sections[NR_FEATURES];
	struct tly_bytes payload = {0};
	size_t nr = 0, table;

	for (size_t i = 0; i < NR_FEATURES; i++) {
		enum tly_feature feature = features[i].feature;

		sections[nr].offset = payload.size;
		if (!tly_fact(facts, feature, &payload))
			continue;
		sections[nr].size = payload.size - sections[nr].offset;
		header->features[feature / 64] |= UINT64_C(1) << feature % 64;
		nr++;
	}
	table = nr * sizeof(sections[0]);
	for (size_t i = 0; i < nr; i++)
		sections[i].offset += end + table;
	tly_bytes_put(out, sections, table);
	tly_bytes_put(out, payload.data, payload.size);
	out->failed |= payload.failed;
	tly_bytes_free(&payload);
}
