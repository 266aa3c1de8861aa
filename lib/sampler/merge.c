// SPDX-License-Identifier: MIT
/*
 * Time order over rings that are still being written.
 *
 * A pass notes the head of every ring in turn. A record that the pass saw was complete before the
 * pass ended; a record that the next pass does not see is completed after that pass looked at its
 * ring, and so carries a later time. Hence the earliest of all records seen may be handed out as
 * soon as it was seen by a pass before the latest one:
 *
 *	ring 0   ------ settled ------ visible ------ head
 *	ring 1   -- settled -- visible ---- head
 *
 * settled is the head noted by the pass before, visible the one noted by the latest. A heap holds
 * the first record of each ring by time; its top goes out when it lies before its ring's settled.
 *
 * What breaks the rule is a processor that stands still between taking a record's time and
 * completing it for longer than a pass takes; such records are handed out late, and counted.
 */
#include "lib/sampler/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/sampler/ring.h"

struct tly_source {
	struct tally_ring *ring;
	uint64_t settled, visible;
	uint64_t time; /* of the record, or of the last one of this ring that had a time */
	bool in_heap;
	size_t event;
	struct tally_record record;
};

static int compare_ids(const void *a, const void *b)
{
	const struct tly_id *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int tly_merge_init(struct tly_merge *merge, struct tally_ring *const *rings, size_t nr_rings,
		   const struct tally_record_format *formats, size_t nr_events, struct tly_id *ids,
		   size_t nr_ids, bool ordered)
{
	*merge = (struct tly_merge){
		.sources = calloc(nr_rings, sizeof(*merge->sources)),
		.heap = calloc(nr_rings, sizeof(*merge->heap)),
		.nr_sources = nr_rings,
		.loading = nr_rings,
		.handed = SIZE_MAX,
		.ordered = ordered,
		.formats = formats,
		.nr_events = nr_events,
		.ids = ids,
		.nr_ids = nr_ids,
	};
	if (!merge->sources || !merge->heap) {
		tly_merge_release(merge);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr_rings; i++) {
		struct tly_source *source = &merge->sources[i];

		source->ring = rings[i];
		source->settled = source->visible = tly_ring_position(rings[i]);
	}
	if (nr_ids)
		qsort(ids, nr_ids, sizeof(*ids), compare_ids);
	return 0;
}

void tly_merge_release(struct tly_merge *merge)
{
	free(merge->sources);
	free(merge->heap);
	merge->sources = NULL;
	merge->heap = NULL;
}

/* ---- the heap ---- */

static bool earlier(const struct tly_merge *merge, size_t a, size_t b)
{
	/* Unordered: ring after ring, each to its end. */
	if (!merge->ordered || merge->sources[a].time == merge->sources[b].time)
		return a < b;
	return merge->sources[a].time < merge->sources[b].time;
}

static void sift_down(struct tly_merge *merge, size_t at)
{
	size_t *heap = merge->heap;
	size_t moving = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= merge->nr_heap)
			break;
		if (child + 1 < merge->nr_heap && earlier(merge, heap[child + 1], heap[child]))
			child++;
		if (!earlier(merge, heap[child], moving))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moving;
}

static void push(struct tly_merge *merge, size_t source)
{
	size_t at = merge->nr_heap++;

	while (at && earlier(merge, source, merge->heap[(at - 1) / 2])) {
		merge->heap[at] = merge->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	merge->heap[at] = source;
	merge->sources[source].in_heap = true;
}

static void pop(struct tly_merge *merge)
{
	merge->sources[merge->heap[0]].in_heap = false;
	merge->heap[0] = merge->heap[--merge->nr_heap];
	if (merge->nr_heap)
		sift_down(merge, 0);
}

/* ---- loading ---- */

static size_t find_event(const struct tly_merge *merge, struct tally_span raw)
{
	const struct perf_event_header *header = raw.data;
	size_t in_sample, from_end, at;
	struct tly_id key;

	/* One event only: there may be no ids, and none is needed. */
	if (merge->nr_events == 1 ||
	    !tally_record_id_position(&merge->formats[0], &in_sample, &from_end))
		return 0;
	if (header->type == PERF_RECORD_SAMPLE)
		at = sizeof(*header) + in_sample;
	else if (from_end <= raw.size)
		at = raw.size - from_end;
	else
		return SIZE_MAX;
	if (at > raw.size || raw.size - at < sizeof(key.id))
		return SIZE_MAX;
	memcpy(&key.id, (const char *)raw.data + at, sizeof(key.id));
	const struct tly_id *found =
		bsearch(&key, merge->ids, merge->nr_ids, sizeof(*merge->ids), compare_ids);

	return found ? found->event : SIZE_MAX;
}

/* Fetches and decodes the next record of source @index into it. Returns as tly_ring_fetch(). */
static int load(struct tly_merge *merge, size_t index, struct tally_error *err)
{
	struct tly_source *source = &merge->sources[index];
	struct tally_span raw;
	int ret = tly_ring_fetch(source->ring, source->visible, &raw, err);

	if (ret != 1)
		return ret;
	source->event = find_event(merge, raw);
	if (source->event == SIZE_MAX) {
		source->ring->dropped += raw.size;
		return tly_error(err, -EBADMSG,
				 "a record bears the id of no event that was opened");
	}
	ret = tly_ring_decode(source->ring, &merge->formats[source->event], raw, &source->record,
			      err);
	if (ret == 1 && (source->record.id.has & PERF_SAMPLE_TIME))
		source->time = source->record.id.time;
	return ret;
}

static void begin_pass(struct tly_merge *merge)
{
	for (size_t i = 0; i < merge->nr_sources; i++) {
		merge->sources[i].settled = merge->sources[i].visible;
		merge->sources[i].visible = tly_ring_head(merge->sources[i].ring);
	}
	merge->loading = 0;
}

/* Brings the heap up to date: the ring handed out from last, and those left of this pass. */
static int refill(struct tly_merge *merge, struct tally_error *err)
{
	if (merge->handed != SIZE_MAX) {
		int ret = load(merge, merge->handed, err);

		/* After an error the ring stays on top without a record: it is loaded again. */
		if (ret < 0)
			return ret;
		merge->handed = SIZE_MAX;
		if (ret)
			sift_down(merge, 0);
		else
			pop(merge);
	}
	while (merge->loading < merge->nr_sources) {
		int ret = 0;

		if (!merge->sources[merge->loading].in_heap)
			ret = load(merge, merge->loading, err);
		if (ret < 0)
			return ret;
		if (ret)
			push(merge, merge->loading);
		merge->loading++;
	}
	return 0;
}

static bool is_settled(const struct tly_merge *merge, const struct tly_source *source)
{
	/* The output of overwrite rings is paused while they are read. */
	return !merge->ordered ||
	       (source->ring->flags & (TALLY_RING_OVERWRITE | TALLY_RING_BACKWARD)) ||
	       (int64_t)(source->settled - tly_ring_position(source->ring)) > 0;
}

static void count(struct tly_merge *merge, const struct tly_source *source)
{
	struct tally_sampler_stats *stats = &merge->stats;
	const struct tally_record *record = &source->record;

	stats->records++;
	stats->bytes += record->size;
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		tly_stats_sample(stats, record->id.time);
		break;
	case PERF_RECORD_LOST:
		stats->lost += record->lost.lost;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		stats->lost += record->lost_samples.lost;
		break;
	case PERF_RECORD_THROTTLE:
		stats->throttled++;
		break;
	}
	if (!merge->ordered || !(record->id.has & PERF_SAMPLE_TIME))
		return;
	if (source->time < merge->last_time)
		stats->out_of_order++;
	else
		merge->last_time = source->time;
}

int tly_merge_next(struct tly_merge *merge, bool flush, struct tally_record *record, size_t *event,
		   struct tally_error *err)
{
	for (bool passed = false;; passed = true) {
		int ret = refill(merge, err);

		if (ret < 0)
			return ret;
		if (merge->nr_heap) {
			struct tly_source *source = &merge->sources[merge->heap[0]];

			if (flush || is_settled(merge, source)) {
				count(merge, source);
				merge->handed = merge->heap[0];
				*record = source->record;
				if (event)
					*event = source->event;
				return 1;
			}
		}
		if (passed)
			return 0;
		begin_pass(merge);
	}
}

void tly_merge_stats(const struct tly_merge *merge, struct tally_sampler_stats *stats)
{
	*stats = merge->stats;
	stats->corrupt = 0;
	for (size_t i = 0; i < merge->nr_sources; i++)
		stats->corrupt += tally_ring_dropped(merge->sources[i].ring);
}
