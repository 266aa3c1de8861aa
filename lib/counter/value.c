// SPDX-License-Identifier: MIT
/*
 * The two layouts of read(2), each part there only when its bit of read_format is set:
 *
 *	single  | value | time_enabled | time_running | id | lost |
 *	group   | nr | time_enabled | time_running | { value | id | lost } * nr |
 */
#include "lib/counter/value.h"

#include <errno.h>
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

static uint64_t mask(bool present)
{
	return present ? UINT64_MAX : 0;
}

void tly_read_layout_init(struct tly_read_layout *layout, uint64_t read_format)
{
	const bool group = read_format & PERF_FORMAT_GROUP;
	const bool enabled = read_format & PERF_FORMAT_TOTAL_TIME_ENABLED;
	const bool running = read_format & PERF_FORMAT_TOTAL_TIME_RUNNING;
	const bool id = read_format & PERF_FORMAT_ID, lost = read_format & FORMAT_LOST;
	const uint8_t times = enabled + running;

	*layout = (struct tly_read_layout){
		.enabled_mask = mask(enabled),
		.running_mask = mask(running),
		.id_mask = mask(id),
		.lost_mask = mask(lost),
		.enabled = enabled ? 1 : 0,
		.running = running ? times : 0,
		.value = group ? 1 + times : 0,
		/* The times of a single event stand between its value and its id. */
		.id = id ? 1 + (group ? 0 : times) : 0,
		.lost = lost ? 1 + id + (group ? 0 : times) : 0,
		.stride = 1 + id + lost,
		.fixed = group + times,
		.group = group,
		.read_format = read_format,
	};
}

/* How many entries there are, or -EBADMSG. */
static long count_entries(const struct tly_read_layout *layout, const uint64_t *words, size_t size)
{
	uint64_t nr;

	if (size < sizeof(*words))
		return -EBADMSG;
	nr = layout->group ? words[0] : 1;
	if (nr > TLY_READ_MAX || size != sizeof(*words) * (layout->fixed + nr * layout->stride))
		return -EBADMSG;
	return (long)nr;
}

/* The times, and what they say of every value of the group: its judgement. */
static struct tally_value take_times(const struct tly_read_layout *layout, const uint64_t *words)
{
	struct tally_value common = {
		.time_enabled = words[layout->enabled] & layout->enabled_mask,
		.time_running = words[layout->running] & layout->running_mask,
	};

	tly_value_judge(&common, layout->read_format);
	return common;
}

/*
 * The times of a cgroup's event lag behind its count while a task of the cgroup stays on another
 * processor: a count without a time is a count.
 */
static inline void take(const struct tly_read_layout *layout, const uint64_t *entry,
			const struct tally_value *common, struct tally_value *value)
{
	value->raw = entry[0];
	value->scaled = entry[0];
	value->time_enabled = common->time_enabled;
	value->time_running = common->time_running;
	value->id = entry[layout->id] & layout->id_mask;
	value->lost = entry[layout->lost] & layout->lost_mask;
	value->state = common->state;
	value->source = common->source;
	if (common->state == TALLY_NOT_COUNTED && value->raw) {
		value->state = TALLY_COUNTED;
		value->source = TALLY_SOURCE_KERNEL;
	}
	if (common->source == TALLY_SOURCE_SCALED)
		value->scaled = tly_scale(value->raw, common->time_enabled, common->time_running);
}

static void set_not_counted(struct tally_value *value)
{
	memset(value, 0, sizeof(*value));
	value->state = TALLY_NOT_COUNTED;
}

int tly_value_decode(const struct tly_read_layout *layout, const uint64_t *words, size_t size,
		     struct tally_value *values, size_t max)
{
	struct tally_value common;
	const uint64_t *entry;
	long nr;

	if (size == 0 && max) {
		set_not_counted(values);
		return 1;
	}
	nr = size ? count_entries(layout, words, size) : 1;
	if (nr < 0)
		return (int)nr;
	if ((size_t)nr > max)
		return -ENOSPC;
	common = take_times(layout, words);
	entry = words + layout->value;
	for (long i = 0; i < nr; i++, entry += layout->stride)
		take(layout, entry, &common, &values[i]);
	return (int)nr;
}

int tly_value_decode_member(const struct tly_read_layout *layout, const uint64_t *words,
			    size_t size, uint64_t id, struct tally_value *value)
{
	struct tally_value common;
	const uint64_t *entry = words + layout->value;
	long nr;

	if (size == 0) {
		set_not_counted(value);
		return 0;
	}
	nr = count_entries(layout, words, size);
	if (nr <= 0)
		return -EBADMSG;
	if (id && !layout->id_mask)
		return -EINVAL;
	common = take_times(layout, words);
	for (long i = 0; i < nr; i++, entry += layout->stride) {
		take(layout, entry, &common, value);
		if (!id || value->id == id)
			return 0;
	}
	return -ENOENT;
}
