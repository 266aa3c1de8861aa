/* SPDX-License-Identifier: MIT */
/* Shared by the files of counter/. */
#ifndef LIB_COUNTER_COUNTER_H
#define LIB_COUNTER_COUNTER_H

#include <linux/perf_event.h>

#include <tally/counter.h>

#include "lib/counter/value.h"

struct tally_counter {
	int fd;
	struct tly_read_layout layout;
	uint64_t id;		  /* of a group's member, to find it in the group's read; else 0 */
	enum tally_source source; /* of what is counted all the time */
	/* The members of the group whose leader this is, as they were opened: of each its source.
	 */
	struct tally_counter *leader, *first, *next;
	struct perf_event_mmap_page *page; /* mapped by the first tally_counter_read_user() */
	bool page_tried;
};

/* tally_counter_open() with what tly_attr_open() wants to know for its messages. */
int tly_counter_open(const struct perf_event_attr *attr, const char *name,
		     const struct perf_event_attr *leader_attr, pid_t pid, int cpu,
		     struct tally_counter *leader, unsigned long flags,
		     struct tally_counter **counter, struct tally_error *err);

#endif
