// SPDX-License-Identifier: MIT
/* read(2) and rdpmc. */
#include <errno.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/hold.h"
#include "core/host.h"
#include "core/read_format.h"
#include "core/schedule.h"
#include "core/still.h"
#include "core/time.h"

/* Words of an entry behind its value. */
static void put_names(uint64_t *to, uint64_t format, const struct core_event *event)
{
	if (format & PERF_FORMAT_ID)
		*to++ = core_opened_const(event)->id;
	if (format & PERF_FORMAT_LOST)
		*to = event->lost;
}

static void put_times(uint64_t *to, uint64_t format, const struct core_count *count)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		*to++ = count->enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		*to = count->running;
}

typedef struct core_count count_function(const struct core_event *event);

/* What @event has counted, or each of its group. */
static void read_counts(struct core_event *event, uint64_t format, count_function *count_of,
			uint64_t *to)
{
	const bool group = format & PERF_FORMAT_GROUP;
	struct core_event *first = group ? core_leader(event) : event;
	const struct core_count count = count_of(first);

	*to = group ? 1 + first->members : count.value;
	put_times(to + 1, format, &count);
	to += 1 + core_read_times(format);
	if (!group) {
		put_names(to, format, event);
		return;
	}
	core_for_each_in_group(each, first) {
		*to = count_of(each).value;
		put_names(to + 1, format, each);
		to += core_read_entry(format);
	}
}

/* Copies were made of the group as it was then. */
static bool are_copies_alike(struct core_event *leader)
{
	core_for_each_copy(copy, leader)
		if (copy->members != leader->members || copy->regrouped != leader->regrouped)
			return false;
	return true;
}

/* What a copy has counted, to what has been read of the event. */
static void add(uint64_t *to, const uint64_t *from, uint64_t format)
{
	const uint64_t entries = format & PERF_FORMAT_GROUP ? *from : 0;

	if (!entries)
		*to += *from;
	for (uint64_t time = core_read_times(format); time; time--)
		*++to += *++from;
	for (uint64_t entry = 0; entry < entries; entry++)
		to[1 + entry * core_read_entry(format)] +=
			from[1 + entry * core_read_entry(format)];
}

/* What has been read of @event, from outside it may be, is not less than what was told before. */
static void tell_times(struct core_event *event, uint64_t format, uint64_t *to)
{
	uint64_t *time = to + 1;

	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		core_count_never_less(time++, &event->told_enabled);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		core_count_never_less(time, &event->told_running);
}

/* The copies that still count, of each task as that is found. */
static void add_copies(struct core_event *event, uint64_t format, uint64_t *to)
{
	struct core_event *first = format & PERF_FORMAT_GROUP ? core_leader(event) : event;
	uint64_t counted[CORE_READ_MAX / sizeof(uint64_t)];

	core_for_each_copy(copy, first) {
		struct core_task *task = core_event_lock(copy);

		core_still(task);
		read_counts(copy, format, core_count_of_copy, counted);
		tell_times(copy, format, counted);
		add(to, counted, format);
		if (task)
			core_task_unlock(task);
	}
}

/* Whether what @event tells, of its group it may be, is less than there was. */
static bool is_in_error(struct core_event *event)
{
	if (event->state == CORE_ERROR || event->missed)
		return true;
	if (event->attr.read_format & PERF_FORMAT_GROUP)
		core_for_each_in_group(member, core_leader(event))
			if (member->missed)
				return true;
	return false;
}

static int64_t read_own(const struct core_hold *hold, uint64_t *to, size_t size)
{
	struct core_event *event = hold->event;
	size_t bytes = core_read_bytes(event->attr.read_format, core_leader(event)->members);

	if (is_in_error(event))
		return 0;
	if (size < bytes)
		return -ENOSPC;
	core_still(hold->task);
	read_counts(event, event->attr.read_format, core_count_with_ended, to);
	tell_times(event, event->attr.read_format, to);
	return (int64_t)bytes;
}

/* With the tree's lock. */
static int64_t read_copies(struct core_event *event, uint64_t *to, int64_t bytes)
{
	if (bytes <= 0)
		return bytes;
	if (event->attr.read_format & PERF_FORMAT_GROUP && !are_copies_alike(core_leader(event)))
		return -ECHILD;
	add_copies(event, event->attr.read_format, to);
	return bytes;
}

static bool reads_kept(const struct core_event *event)
{
	const bool group = event->attr.read_format & PERF_FORMAT_GROUP;

	return event->is_kept || (core_leader(event)->keeps && group);
}

int64_t core_read(uint64_t name, void *to, size_t size)
{
	struct core_hold hold;
	int64_t bytes;

	if (reads_kept(core_named(name)) && !core_host_kept(name, true, CORE_KEPT_READ))
		return -ENODEV;
	if (!core_hold(&hold, name))
		return -EBADF;
	bytes = read_own(&hold, to, size);
	core_hold_leave_task(&hold);
	if (hold.tree && core_may_have_copies(hold.event))
		bytes = read_copies(hold.event, to, bytes);
	core_hold_end(&hold);
	return bytes;
}

bool core_rdpmc(struct core_task *task, uint32_t index, uint64_t *value)
{
	if (index >= CORE_HARDWARE_KINDS || !task->events)
		return false;
	/* Somebody may be about to say that it is not to be read. */
	if (__atomic_load_n(&task->lock, __ATOMIC_ACQUIRE)) {
		core_task_lock(task);
		core_task_unlock(task);
	}
	*value = core_counter_read(task, (enum core_kind)index);
	return true;
}
