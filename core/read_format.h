/* SPDX-License-Identifier: MIT */
/*
 * The layout that read(2), samples and READ records share:
 *
 *	one	value | enabled | running | id | lost
 *	group	number | enabled | running | (value | id | lost) of the leader and of each member
 *
 * each a word, there if read_format asks for it.
 */
#ifndef CORE_READ_FORMAT_H
#define CORE_READ_FORMAT_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t core_read_times(uint64_t format)
{
	return !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
	       !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
}

/* Words of a value and what belongs to it. */
static inline size_t core_read_entry(uint64_t format)
{
	return 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
}

/* Of an event with that format whose group has @members besides the leader. */
static inline size_t core_read_bytes(uint64_t format, uint32_t members)
{
	size_t words = core_read_times(format) + core_read_entry(format);

	if (format & PERF_FORMAT_GROUP)
		words += 1 + core_read_entry(format) * members;
	return words * sizeof(uint64_t);
}

#endif
