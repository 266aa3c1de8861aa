/* SPDX-License-Identifier: MIT */
/* The records of many rings as one stream, in time order where that is asked for. */
#ifndef LIB_SAMPLER_MERGE_H
#define LIB_SAMPLER_MERGE_H

#include <tally/sampler.h>

/* Which event an id in a record stands for. */
struct tly_id {
	uint64_t id;
	size_t event;
};

struct tly_source;

struct tly_merge {
	struct tly_source *sources; /* one for each ring, in the caller's order */
	size_t nr_sources;
	size_t *heap; /* sources that hold a record, the earliest on top */
	size_t nr_heap;
	size_t loading; /* sources from here on have not been looked at in this pass */
	size_t handed;	/* source of the record handed out last, SIZE_MAX: none */
	bool ordered;
	uint64_t last_time;

	const struct tally_record_format *formats; /* one for each event */
	size_t nr_events;
	struct tly_id *ids; /* sorted */
	size_t nr_ids;

	struct tally_sampler_stats stats;
};

/*
 * @rings are read through @merge from now on. @formats and @ids stay the caller's and must last as
 * long; @ids gets sorted. Returns 0 or -ENOMEM. With several events every format must have an id at
 * the same place (PERF_SAMPLE_IDENTIFIER).
 */
int tly_merge_init(struct tly_merge *merge, struct tally_ring *const *rings, size_t nr_rings,
		   const struct tally_record_format *formats, size_t nr_events, struct tly_id *ids,
		   size_t nr_ids, bool ordered);
void tly_merge_release(struct tly_merge *merge);

/* As tally_sampler_next(). */
int tly_merge_next(struct tly_merge *merge, bool flush, struct tally_record *record, size_t *event,
		   struct tally_error *err);

/* As tally_sampler_stats(). */
void tly_merge_stats(const struct tly_merge *merge, struct tally_sampler_stats *stats);

#endif
