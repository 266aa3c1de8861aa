/* SPDX-License-Identifier: MIT */
/* For the tests: a ring in plain memory, written as the kernel would. */
#ifndef LIB_SAMPLER_FAKE_RING_H
#define LIB_SAMPLER_FAKE_RING_H

#include <stdlib.h>
#include <string.h>

#include "lib/sampler/ring.h"

#define FAKE_SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

struct fake_ring {
	struct perf_event_mmap_page page;
	unsigned char *data; /* exactly size bytes, so that a sanitizer sees the first beyond */
	size_t size;
	struct tally_ring ring;
};

/* A sample of FAKE_SAMPLE_TYPE. */
struct fake_sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
};

static inline struct fake_sample fake_sample(uint64_t id, uint64_t time)
{
	return (struct fake_sample){
		.header = {PERF_RECORD_SAMPLE, 0, sizeof(struct fake_sample)},
		.id = id,
		.pid = 1,
		.tid = 2,
		.time = time,
	};
}

static inline struct tally_record_format fake_format(void)
{
	const struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = FAKE_SAMPLE_TYPE,
		.sample_id_all = 1,
	};
	struct tally_record_format format;

	tally_record_format_init(&format, &attr);
	return format;
}

static inline void fake_ring_init(struct fake_ring *fake, size_t size, unsigned int flags)
{
	memset(fake, 0, sizeof(*fake));
	fake->data = calloc(1, size);
	fake->size = size;
	tly_ring_init(&fake->ring, &fake->page, fake->data, size, flags);
}

static inline void fake_ring_release(struct fake_ring *fake)
{
	tly_ring_release(&fake->ring);
	free(fake->data);
}

/* Moves an empty ring's positions, to make records wrap where a test wants them to. */
static inline void fake_ring_start_at(struct fake_ring *fake, uint64_t position)
{
	fake->page.data_head = fake->page.data_tail = position;
	tly_ring_init(&fake->ring, &fake->page, fake->data, fake->size, fake->ring.flags);
	fake->ring.tail = position;
}

static inline void fake_ring_store(struct fake_ring *fake, uint64_t position, const void *bytes,
				   size_t size)
{
	for (size_t i = 0; i < size; i++)
		fake->data[(position + i) & (fake->size - 1)] = ((const unsigned char *)bytes)[i];
}

static inline void fake_ring_write(struct fake_ring *fake, const void *record, size_t size)
{
	if (fake->ring.flags & TALLY_RING_BACKWARD) {
		fake->page.data_head -= size;
		fake_ring_store(fake, fake->page.data_head, record, size);
	} else {
		fake_ring_store(fake, fake->page.data_head, record, size);
		fake->page.data_head += size;
	}
}

static inline void fake_ring_sample(struct fake_ring *fake, uint64_t id, uint64_t time)
{
	struct fake_sample sample = fake_sample(id, time);

	fake_ring_write(fake, &sample, sizeof(sample));
}

#endif
