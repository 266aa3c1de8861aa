/* SPDX-License-Identifier: MIT */
/* For the tests of the core: a mapped ring, read by the library's decoder. */
#ifndef CORE_FAKE_RING_H
#define CORE_FAKE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include <tally/record.h>

#include "core/core.h"

struct fake_ring {
	int64_t at; /* as fake_ring_map() has it */
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	uint64_t size, tail;
	uint64_t head; /* 0: the page's */
};

/* core/views.h, all by one owner. */
#define FAKE_OWNER 1
int64_t fake_ring_map(uint32_t event, uint64_t offset, uint64_t size, bool writable,
		      const struct core_rights *rights);
void fake_ring_unmap(uint32_t event);
void fake_aux_unmap(uint32_t event, uint64_t offset);

struct fake_ring fake_map(uint32_t event, unsigned int pages, bool writable);

/*
 * The next record, decoded by the format of @attr; it is valid until the next call. NULL at the end
 * of the ring. Fails the test when the decoder refuses it, or leaves anything of its body over.
 */
const struct tally_record *fake_next(struct fake_ring *ring, const struct perf_event_attr *attr);

#endif
