// SPDX-License-Identifier: MIT
#include "core/record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/host.h"
#include "core/numbers.h"
#include "core/read_format.h"
#include "core/time.h"

/* The fields of the trailer; the others belong to samples only. */
#define TRAILER                                                                                    \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static size_t bits(uint64_t mask)
{
	size_t n = 0;

	for (; mask; mask &= mask - 1)
		n++;
	return n;
}

uint64_t core_event_clock(const struct core_event *event)
{
	return event->attr.use_clockid ? core_host_clock(event->attr.clockid) : core_time();
}

void core_identify(struct core_identity *identity, const struct core_event *event)
{
	const struct core_task *task = core_host_task();
	struct core_numbers numbers;

	if (!task)
		task = core_task(event->task);
	numbers = core_numbers(event, task);
	*identity = (struct core_identity){
		.pid = (uint32_t)numbers.pid,
		.tid = (uint32_t)numbers.tid,
		.time = core_event_clock(event),
		.id = core_opened_const(event)->id,
		.stream_id = event->id,
		.cpu = (uint32_t)core_host_cpu(),
	};
}

size_t core_record_size(const struct core_event *event, size_t body)
{
	size_t trailer = 0;

	if (event->attr.sample_id_all)
		trailer = bits(event->attr.sample_type & TRAILER) * sizeof(uint64_t);
	return sizeof(struct perf_event_header) + body + trailer;
}

void core_put_header(struct core_output *out, uint32_t type, uint16_t misc, size_t size)
{
	const struct perf_event_header header = {type, misc, (uint16_t)size};

	core_output_put(out, &header, sizeof(header));
}

void core_put_identity(struct core_output *out, const struct core_event *event,
		       const struct core_identity *identity)
{
	uint64_t type = event->attr.sample_type;

	if (!event->attr.sample_id_all)
		return;
	if (type & PERF_SAMPLE_TID)
		core_put_two_u32(out, identity->pid, identity->tid);
	if (type & PERF_SAMPLE_TIME)
		core_output_put_u64(out, identity->time);
	if (type & PERF_SAMPLE_ID)
		core_output_put_u64(out, identity->id);
	if (type & PERF_SAMPLE_STREAM_ID)
		core_output_put_u64(out, identity->stream_id);
	if (type & PERF_SAMPLE_CPU)
		core_put_two_u32(out, identity->cpu, 0);
	if (type & PERF_SAMPLE_IDENTIFIER)
		core_output_put_u64(out, identity->id);
}

/* ---- counts ---- */

size_t core_read_size(const struct core_event *event)
{
	return core_read_bytes(event->attr.read_format, core_leader(event)->members);
}

static void put_facts(struct core_output *out, uint64_t format, const struct core_event *event)
{
	if (format & PERF_FORMAT_ID)
		core_output_put_u64(out, core_opened_const(event)->id);
	if (format & PERF_FORMAT_LOST)
		core_output_put_u64(out, event->lost);
}

static void put_times(struct core_output *out, uint64_t format, const struct core_count *count)
{
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		core_output_put_u64(out, count->enabled);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		core_output_put_u64(out, count->running);
}

/*
 * As a sample or a record sees it: without the copies that still count, whose values belong to
 * others' tasks; without any where samples shall tell what their own task counted.
 */
static struct core_count count_of(const struct core_event *event, bool own)
{
	return own ? core_count_own(event) : core_count_with_ended(event);
}

void core_put_read(struct core_output *out, const struct core_event *event)
{
	bool own = event->attr.inherit && event->attr.sample_type & PERF_SAMPLE_READ;
	uint64_t format = event->attr.read_format;
	const struct core_event *each = event;
	struct core_count count = count_of(event, own);

	if (!(format & PERF_FORMAT_GROUP)) {
		core_output_put_u64(out, count.value);
		put_times(out, format, &count);
		put_facts(out, format, event);
		return;
	}
	each = core_leader(event);
	core_output_put_u64(out, 1 + each->members);
	put_times(out, format, &count);
	for (;; each = core_event(each->next_member)) {
		core_output_put_u64(out, count_of(each, own).value);
		put_facts(out, format, each);
		if (!each->next_member)
			break;
	}
}
