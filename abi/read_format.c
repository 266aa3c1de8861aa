// SPDX-License-Identifier: MIT
/* struct read_format: what read(2) of an event returns, and samples and READ records carry. */
#include <tally/record.h>

#include <errno.h>

#include "abi/cursor.h"

/* Bytes of one entry of a group's values. */
static size_t entry_size(uint64_t read_format)
{
	return WORD * (1 + bits(read_format & (PERF_FORMAT_ID | PERF_FORMAT_LOST)));
}

bool tly_take_read(const struct tally_record_format *format, struct cursor *c,
		   struct tally_read_values *read)
{
	uint64_t layout = format->read_format;
	uint64_t times = layout & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	const void *start = c->p, *after_times;
	uint64_t first;

	memset(read, 0, sizeof(*read));
	if (c->left < WORD * (1 + bits(times)))
		return false;
	first = next_u64(c);
	if (layout & PERF_FORMAT_TOTAL_TIME_ENABLED)
		read->time_enabled = next_u64(c);
	if (layout & PERF_FORMAT_TOTAL_TIME_RUNNING)
		read->time_running = next_u64(c);
	if (layout & PERF_FORMAT_GROUP) {
		read->nr = first;
		return take_array(c, first, entry_size(layout), &read->entries);
	}
	read->nr = 1;
	read->entries = start;
	return take_bytes(c, entry_size(layout) - WORD, &after_times);
}

long tally_read_decode(const struct tally_record_format *format, const void *buf, size_t size,
		       struct tally_read_values *read)
{
	struct cursor c = {buf, size};

	if (!tly_take_read(format, &c, read))
		return -EINVAL;
	return (long)(size - c.left);
}

struct tally_read_entry tally_read_entry(const struct tally_record_format *format,
					 const struct tally_read_values *read, uint64_t index)
{
	uint64_t layout = format->read_format;
	struct tally_read_entry entry = {0};
	const uint8_t *p = read->entries;

	if (index >= read->nr)
		return entry;
	if (layout & PERF_FORMAT_GROUP)
		p += index * entry_size(layout);
	entry.value = tally_u64(p);
	p += WORD;
	if (!(layout & PERF_FORMAT_GROUP))
		p += WORD * bits(layout &
				 (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
	if (layout & PERF_FORMAT_ID) {
		entry.id = tally_u64(p);
		p += WORD;
	}
	if (layout & PERF_FORMAT_LOST)
		entry.lost = tally_u64(p);
	return entry;
}
