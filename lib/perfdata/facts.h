/* SPDX-License-Identifier: MIT */
/*
 * The header features that a writer can tell: each as the bytes that a file has in a section and a
 * pipe in a record.
 */
#ifndef LIB_PERFDATA_FACTS_H
#define LIB_PERFDATA_FACTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/perfdata/bytes.h"
#include "lib/perfdata/format.h"

/* An event as the writer keeps it. */
struct tly_written_event {
	char *name, *unit;
	double scale;
	struct perf_event_attr *attr; /* of tly_facts.attr_size bytes */
	size_t leader;
	uint64_t *ids;
	size_t nr_ids;
};

/* What the features tell of. */
struct tly_facts {
	const struct tly_written_event *events;
	size_t nr_events;
	size_t attr_size;
	const char *const *argv;	   /* NULL: none */
	int clockid;			   /* -1: the default clock */
	uint64_t wall_ns, clock_ns;	   /* taken together at the start */
	uint64_t first, last;		   /* sample times; last 0: unknown */
	int zstd_level;			   /* 0: not compressed */
	uint64_t plain, compressed;	   /* bytes before and after */
	const struct tly_bytes *build_ids; /* struct tly_build_id_record and names */
};

/*
 * Appends the payload of @feature. Returns false, with nothing appended, when there is nothing to
 * tell.
 */
bool tly_fact(const struct tly_facts *facts, enum tly_feature feature, struct tly_bytes *out);

/* tracing.c: the ftrace formats of the tracepoints among the events, as one blob. */
bool tly_tracing_data(const struct tly_facts *facts, struct tly_bytes *out);

#endif
