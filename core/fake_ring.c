// SPDX-License-Identifier: MIT
#include "core/fake_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/views.h"

int64_t fake_ring_map(uint32_t event, uint64_t offset, uint64_t size, bool writable,
		      const struct core_rights *rights)
{
	return core_view_begin(FAKE_OWNER, event, offset, size, writable, rights);
}

void fake_ring_unmap(uint32_t event)
{
	core_view_end(FAKE_OWNER, event, 0);
}

void fake_aux_unmap(uint32_t event, uint64_t offset)
{
	core_view_end(FAKE_OWNER, event, offset);
}

struct fake_ring fake_map(uint32_t event, unsigned int pages, bool writable)
{
	const struct core_rights rights = {.mlock = UINT64_MAX};
	struct fake_ring ring = {
		.at = fake_ring_map(event, 0, (1 + pages) * ARENA_PAGE, writable, &rights),
		.size = pages * ARENA_PAGE,
	};

	if (ring.at <= 0)
		fail_msg("mapping 1 + %u pages: %lld", pages, (long long)ring.at);
	ring.page = core_arena((uint64_t)ring.at);
	ring.data = (unsigned char *)ring.page + ARENA_PAGE;
	return ring;
}

static void copy_out(const struct fake_ring *ring, unsigned char *to, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = ring->data[(ring->tail + i) & (ring->size - 1)];
}

/* The last word of a sample belongs to a field: without it there is no sample. */
static void nothing_is_left_over(const struct tally_record_format *format,
				 const unsigned char *bytes, struct perf_event_header header)
{
	static unsigned char shorter[UINT16_MAX + 1];
	struct tally_record record;

	header.size -= sizeof(uint64_t);
	memcpy(shorter, &header, sizeof(header));
	memcpy(shorter + sizeof(header), bytes + sizeof(header), header.size - sizeof(header));
	if (tally_record_decode(format, shorter, header.size, &record, NULL) == header.size)
		fail_msg("the fields leave a word of the sample over");
}

const struct tally_record *fake_next(struct fake_ring *ring, const struct perf_event_attr *attr)
{
	static unsigned char bytes[UINT16_MAX + 1];
	static struct tally_record record;
	struct tally_record_format format;
	struct perf_event_header header;
	const char *why = "";

	if (ring->tail ==
	    (ring->head ? ring->head : __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE)))
		return NULL;
	copy_out(ring, bytes, sizeof(header));
	memcpy(&header, bytes, sizeof(header));
	copy_out(ring, bytes, header.size);
	tally_record_format_init(&format, attr);
	memset(&record, 0, sizeof(record));
	if (tally_record_decode(&format, bytes, header.size, &record, &why) != header.size)
		fail_msg("record of type %u, %u bytes: %s", header.type, header.size, why);
	if (header.type == PERF_RECORD_SAMPLE)
		nothing_is_left_over(&format, bytes, header);
	ring->tail += header.size;
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	return &record;
}
