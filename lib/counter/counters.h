/* SPDX-License-Identifier: MIT */
/* The matrix of counters: opened by counters.c, read by counters_read.c. */
#ifndef LIB_COUNTER_COUNTERS_H
#define LIB_COUNTER_COUNTERS_H

#include <errno.h>
#include <stdbool.h>

#include <tally/counter.h>

#include "lib/counter/target.h"

/* One event: how it is opened, and why it is not. */
struct tly_plan {
	const struct tally_event *event;
	struct perf_event_attr *attr; /* attr->size bytes */
	struct tally_error *error;    /* NULL: open, or not tried yet */
	bool single;		      /* left its group, which did not fit */
	int *cpus;		      /* those that its unit is opened on; NULL: any */
	size_t nr_cpus;
};

struct tally_counters {
	struct tly_axes axes;
	struct tly_plan *plans;
	size_t nr_events;
	unsigned int flags;
	bool lost_known;
	struct tally_counter **cells; /* [task][cpu][event] */
	int *clocks; /* of a cgroup: descriptors of tly_cgroup_keep_time(), one for each processor */
};

static inline struct tally_counter **tly_cell(const struct tally_counters *counters, size_t event,
					      size_t task, size_t cpu)
{
	return &counters->cells[(task * counters->axes.nr_cpus + cpu) * counters->nr_events +
				event];
}

static inline bool tly_is_permission(int code)
{
	return code == -EACCES || code == -EPERM;
}

#endif
