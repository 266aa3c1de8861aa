// SPDX-License-Identifier: MIT
/*
 * The two layouts of read(2), each part there only when its bit of read_format is set:
 *
 *	single  | value | time_enabled | time_running | id | lost |
 *	group   | nr | time_enabled | time_running | { value | id | lost } * nr |
 */
#include "lib/counter/value.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define BOTH_TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/* The header that the library is built with may be older than the kernel. */
#define FORMAT_LOST (1u << 4)

uint64_t tly_scale(uint64_t raw, uint64_t enabled, uint64_t running)
{
	unsigned __int128 scaled;

	if (!running)
		return 0;
	scaled = ((unsigned __int128)raw * enabled + running / 2) / running;
	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

void tly_value_judge(struct tally_value *value, uint64_t read_format)
{
	value->scaled = value->raw;
	value->state = TALLY_COUNTED;
	value->source = TALLY_SOURCE_KERNEL;
	if (!(read_format & PERF_FORMAT_TOTAL_TIME_RUNNING))
		return;
	if (!value->time_running) {
		value->state = TALLY_NOT_COUNTED;
		value->source = TALLY_SOURCE_NONE;
	} else if ((read_format & BOTH_TIMES) == BOTH_TIMES &&
		   value->time_running < value->time_enabled) {
		value->scaled = tly_scale(value->raw, value->time_enabled, value->time_running);
		value->source = TALLY_SOURCE_SCALED;
	}
}

struct layout {
	uint64_t nr, enabled, running;
	const uint64_t *values, *ids, *lost; /* of the first entry; NULL where there is none */
	size_t stride;
};

static int parse(struct layout *layout, uint64_t read_format, const uint64_t *words, size_t size)
{
	const bool group = read_format & PERF_FORMAT_GROUP;
	const bool id = read_format & PERF_FORMAT_ID, lost = read_format & FORMAT_LOST;
	const bool enabled = read_format & PERF_FORMAT_TOTAL_TIME_ENABLED;
	const bool running = read_format & PERF_FORMAT_TOTAL_TIME_RUNNING;
	const uint64_t *next;

	size /= sizeof(*words);
	if (size < 1u + enabled + running)
		return -EBADMSG;
	layout->nr = group ? words[0] : 1;
	layout->stride = 1 + id + lost;
	if (layout->nr > INT_MAX || size != group + enabled + running + layout->nr * layout->stride)
		return -EBADMSG;
	next = words + 1;
	layout->enabled = enabled ? *next++ : 0;
	layout->running = running ? *next++ : 0;
	layout->values = group ? next++ : words;
	layout->ids = id ? next++ : NULL;
	layout->lost = lost ? next : NULL;
	return 0;
}

static inline void take(const struct layout *layout, uint64_t read_format, uint64_t index,
			struct tally_value *value)
{
	size_t at = index * layout->stride;

	value->raw = layout->values[at];
	value->time_enabled = layout->enabled;
	value->time_running = layout->running;
	value->id = layout->ids ? layout->ids[at] : 0;
	value->lost = layout->lost ? layout->lost[at] : 0;
	tly_value_judge(value, read_format);
}

static void set_not_counted(struct tally_value *value)
{
	memset(value, 0, sizeof(*value));
	value->state = TALLY_NOT_COUNTED;
}

int tly_value_decode(uint64_t read_format, const uint64_t *words, size_t size,
		     struct tally_value *values, size_t max)
{
	struct layout layout;

	if (size == 0) {
		if (!max)
			return -ENOSPC;
		set_not_counted(values);
		return 1;
	}
	if (size % sizeof(*words) || parse(&layout, read_format, words, size) < 0)
		return -EBADMSG;
	if (layout.nr > max)
		return -ENOSPC;
	for (uint64_t i = 0; i < layout.nr; i++)
		take(&layout, read_format, i, &values[i]);
	return (int)layout.nr;
}

int tly_value_decode_member(uint64_t read_format, const uint64_t *words, size_t size, uint64_t id,
			    struct tally_value *value)
{
	struct layout layout;

	if (size == 0) {
		set_not_counted(value);
		return 0;
	}
	if (size % sizeof(*words) || parse(&layout, read_format, words, size) < 0 || !layout.nr)
		return -EBADMSG;
	if (!id) {
		take(&layout, read_format, 0, value);
		return 0;
	}
	if (!layout.ids)
		return -EINVAL;
	for (uint64_t i = 0; i < layout.nr; i++) {
		if (layout.ids[i * layout.stride] == id) {
			take(&layout, read_format, i, value);
			return 0;
		}
	}
	return -ENOENT;
}
