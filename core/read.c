// SPDX-License-Identifier: MIT
/* read(2) and rdpmc. */
#include <errno.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/hold.h"
#include "core/read_format.h"
#include "core/schedule.h"

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

/* What the copies that still count have counted, each as its own task is found. */
static struct core_count count_of_copies(struct core_event *event)
{
	struct core_count sum = {0};

	core_for_each_copy(copy, event) {
		struct core_task *task = core_event_lock(copy);
		struct core_count count = core_count_of_copy(copy);

		core_count_add(&sum, &count);
		if (task)
			core_task_unlock(task);
	}
	return sum;
}

static void read_one(struct core_event *event, uint64_t *to)
{
	uint64_t format = event->attr.read_format;
	struct core_count count = core_count_with_ended(event);

	*to++ = count.value;
	put_times(to, format, &count);
	put_names(to + core_read_times(format), format, event);
}

static void read_group(struct core_event *leader, uint64_t format, uint64_t *to)
{
	struct core_count count = core_count_with_ended(leader);

	*to++ = 1 + leader->members;
	put_times(to, format, &count);
	to += core_read_times(format);
	core_for_each_in_group(event, leader) {
		*to = core_count_with_ended(event).value;
		put_names(to + 1, format, event);
		to += core_read_entry(format);
	}
}

static void add_times(uint64_t *to, uint64_t format, const struct core_count *count)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		*to++ += count->enabled;
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		*to += count->running;
}

/* Copies were made of the group as it was then. */
static bool are_copies_alike(struct core_event *leader)
{
	core_for_each_copy(copy, leader)
		if (copy->members != leader->members || copy->regrouped != leader->regrouped)
			return false;
	return true;
}

/* To what has been read of @event, or of its group. */
static void add_copies(struct core_event *event, uint64_t format, uint64_t *to)
{
	struct core_event *leader = core_leader(event);
	struct core_count count;

	if (!(format & PERF_FORMAT_GROUP)) {
		count = count_of_copies(event);
		*to += count.value;
		add_times(to + 1, format, &count);
		return;
	}
	to++;
	core_for_each_in_group(member, leader) {
		count = count_of_copies(member);
		if (member == leader) {
			add_times(to, format, &count);
			to += core_read_times(format);
		}
		*to += count.value;
		to += core_read_entry(format);
	}
}

static int64_t read_own(struct core_event *event, uint64_t *to, size_t size)
{
	uint64_t format = event->attr.read_format;
	size_t bytes = core_read_bytes(format, core_leader(event)->members);

	if (event->state == CORE_ERROR)
		return 0;
	if (size < bytes)
		return -ENOSPC;
	if (format & PERF_FORMAT_GROUP)
		read_group(core_leader(event), format, to);
	else
		read_one(event, to);
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

int64_t core_read(uint64_t name, void *to, size_t size)
{
	struct core_hold hold;
	int64_t bytes;

	if (!core_hold(&hold, name))
		return -EBADF;
	bytes = read_own(hold.event, to, size);
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
	*value = core_counter_read(task, (enum core_kind)index);
	return true;
}
