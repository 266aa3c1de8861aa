// SPDX-License-Identifier: MIT
#include "tool/reads.h"

#include <stdlib.h>

#include "tool/lookup.h"
#include "tool/memory.h"

struct counter {
	uint64_t id;
	size_t event;
	uint64_t value; /* as last seen */
};

struct reads {
	const struct tally_perfdata *reader;
	struct counter *counters;
	size_t nr, room;
	struct lookup by_id;

	const struct tally_sample *sample;
	const struct tally_record_format *format;
	size_t event;
	uint64_t next;
};

static bool id_equal(const void *owner, uint32_t index, const void *key)
{
	return ((const struct reads *)owner)->counters[index].id == *(const uint64_t *)key;
}

static void add(struct reads *reads, uint64_t id, size_t event)
{
	uint32_t hash = lookup_hash_words(0, &id, 1);

	if (lookup_find(&reads->by_id, hash, id_equal, reads, &id) != LOOKUP_NONE)
		return;
	reads->counters =
		tool_grow(reads->counters, &reads->room, reads->nr + 1, sizeof(*reads->counters));
	reads->counters[reads->nr] = (struct counter){id, event, 0};
	lookup_add(&reads->by_id, hash, reads->nr++);
}

struct reads *reads_new(const struct tally_perfdata *reader)
{
	struct reads *reads = tool_alloc(1, sizeof(*reads));

	reads->reader = reader;
	for (size_t i = 0; i < tally_perfdata_events(reader); i++) {
		const struct tally_perfdata_event *event = tally_perfdata_event(reader, i);

		for (size_t j = 0; j < event->nr_ids; j++)
			add(reads, event->ids[j], i);
	}
	return reads;
}

void reads_free(struct reads *reads)
{
	if (!reads)
		return;
	free(reads->counters);
	lookup_free(&reads->by_id);
	free(reads);
}

void reads_start(struct reads *reads, size_t event, const struct tally_sample *sample)
{
	reads->sample = sample;
	reads->event = event;
	reads->format = &tally_perfdata_event(reads->reader, event)->format;
	reads->next = 0;
}

bool reads_next(struct reads *reads, size_t *event, uint64_t *period)
{
	while (reads->next < reads->sample->read.nr) {
		struct tally_read_entry entry =
			tally_read_entry(reads->format, &reads->sample->read, reads->next++);
		uint32_t index;

		/* Without ids the values cannot be told apart, and only the first is known. */
		if (!(reads->format->read_format & PERF_FORMAT_ID)) {
			if (reads->next > 1)
				return false;
			entry.id = ~(uint64_t)reads->event;
			add(reads, entry.id, reads->event);
		}
		index = lookup_find(&reads->by_id, lookup_hash_words(0, &entry.id, 1), id_equal,
				    reads, &entry.id);
		if (index == LOOKUP_NONE)
			continue;
		struct counter *counter = &reads->counters[index];

		/* Less than before: it was reset. */
		*period =
			entry.value >= counter->value ? entry.value - counter->value : entry.value;
		counter->value = entry.value;
		*event = counter->event;
		if (*period)
			return true;
	}
	return false;
}
