// SPDX-License-Identifier: MIT
/* A dummy event and its buffer, for records that are no samples. */
#ifndef CONFORMANCE_TRACK_H
#define CONFORMANCE_TRACK_H

#include "conformance.h"

struct track {
	struct perf_event_attr attr;
	struct ring ring;
	int fd;
};

/* A dummy event that puts every identity field behind its records: 48 bytes. */
struct perf_event_attr abi_tracker(void);
#define TRAILER_SIZE 48

/* Opens it on this task, maps it, starts it; cpu may be -1. */
struct track abi_track_on(const struct perf_event_attr *attr, int cpu);
struct track abi_track(const struct perf_event_attr *attr);

/* The very next record has to be of this type: nobody asked for others. */
const struct perf_event_header *abi_next_is(const char *file, int line, struct track *track,
					    uint32_t type);
#define NEXT_IS(track, type) abi_next_is(__FILE__, __LINE__, track, type)

#endif
