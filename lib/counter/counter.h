/* SPDX-License-Identifier: MIT */
/* Shared by the files of counter/. */
#ifndef LIB_COUNTER_COUNTER_H
#define LIB_COUNTER_COUNTER_H

#include <linux/perf_event.h>

#include <tally/counter.h>

struct tally_counter {
	int fd;
	uint64_t read_format;
	uint64_t id; /* of a group's member, to find it in the group's read; else 0 */
	struct perf_event_mmap_page *page; /* mapped by the first tally_counter_read_user() */
	bool page_tried;
};

#endif
