// SPDX-License-Identifier: MIT
#include "track.h"

#include <sys/mman.h>

struct perf_event_attr abi_tracker(void)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);

	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			   PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	return attr;
}

struct track abi_track_on(const struct perf_event_attr *attr, int cpu)
{
	struct track track = {.attr = *attr, .fd = OPEN(attr, 0, cpu, -1)};

	track.ring = MAP(track.fd, 64);
	START(track.fd);
	return track;
}

struct track abi_track(const struct perf_event_attr *attr)
{
	return abi_track_on(attr, -1);
}

const struct perf_event_header *abi_next_is(const char *file, int line, struct track *track,
					    uint32_t type)
{
	const struct perf_event_header *header = abi_next(file, line, &track->ring);

	if (!header)
		abi_fail(file, line, "no record, wanted type %u", type);
	if (header->type != type)
		abi_fail(file, line, "a record of type %u, wanted %u", header->type, type);
	return header;
}
