/* SPDX-License-Identifier: MIT */
/*
 * What all records have in common: the header, and behind the body of those that are no samples,
 * with attr.sample_id_all, the trailer
 *
 *	TID TIME ID STREAM_ID CPU IDENTIFIER			a word each
 */
#ifndef CORE_RECORD_H
#define CORE_RECORD_H

#include "core/event.h"
#include "core/ring.h"
#include "core/task.h"

/* Who and when: of the caller, now. */
struct core_identity {
	uint32_t pid, tid;
	uint64_t time; /* of the event's clock */
	uint64_t id, stream_id;
	uint32_t cpu;
};

void core_identify(struct core_identity *identity, const struct core_event *event);

/* The event's clock, ns. */
uint64_t core_event_clock(const struct core_event *event);

/* Of a record with a body of @body bytes, header and trailer included. */
size_t core_record_size(const struct core_event *event, size_t body);

void core_put_header(struct core_output *out, uint32_t type, uint16_t misc, size_t size);
void core_put_identity(struct core_output *out, const struct core_event *event,
		       const struct core_identity *identity);

static inline void core_put_two_u32(struct core_output *out, uint32_t first, uint32_t second)
{
	core_output_put_u64(out, first | (uint64_t)second << 32);
}

/* struct read_format of @event, of it alone or its group: in READ records and in samples. */
size_t core_read_size(const struct core_event *event);
void core_put_read(struct core_output *out, const struct core_event *event);

#endif
