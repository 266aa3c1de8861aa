/* SPDX-License-Identifier: MIT */
/* Writing from attrs alone, for those inside the library who have no list of events. */
#ifndef LIB_PERFDATA_WRITER_H
#define LIB_PERFDATA_WRITER_H

#include <tally/perfdata.h>

struct tly_writer_event {
	const char *name;
	const char *unit; /* or NULL */
	double scale;
	const struct perf_event_attr *attr;
	size_t leader; /* its own index when it leads */
};

/* As tally_perfdata_create(); copies what @events leads to. */
int tly_writer_new(const char *path, const struct tly_writer_event *events, size_t nr_events,
		   const struct tally_perfdata_options *options,
		   struct tally_perfdata_writer **writer, struct tally_error *err);

#endif
