// SPDX-License-Identifier: MIT
/*
 * Reading a ring buffer and its records. It is deliberately a second reader beside the library's:
 * what both get wrong in the same way would go unseen. A record that does not fit what the head
 * says, or fields that do not fill their record, end the case.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

struct ring abi_map(const char *file, int line, int fd, unsigned int pages, int prot)
{
	size_t length = (1 + pages) * page_size();
	void *map = mmap(NULL, length, prot, MAP_SHARED, fd, 0);
	struct ring ring = {0};

	if (map == MAP_FAILED && errno == EPERM && !abi_privileged())
		NOT_ALLOWED("the locked memory that perf_event_mlock_kb allows is used up");
	if (map == MAP_FAILED)
		abi_fail(file, line, "mmap of 1 + %u pages: %s", pages, strerrorname_np(errno));
	ring.page = map;
	ring.data = (const unsigned char *)map + page_size();
	ring.size = pages * page_size();
	ring.writable = prot & PROT_WRITE;
	ring.record = malloc(sizeof(*ring.record));
	if (!ring.record)
		abi_fail(file, line, "out of memory");
	return ring;
}

void abi_unmap(struct ring *ring)
{
	munmap(ring->page, ring->size + page_size());
	free(ring->record);
	memset(ring, 0, sizeof(*ring));
}

static void copy_out(const struct ring *ring, uint64_t at, void *to, size_t size)
{
	uint64_t offset = at & (ring->size - 1);
	size_t first = size < ring->size - offset ? size : ring->size - offset;

	memcpy(to, ring->data + offset, first);
	memcpy((char *)to + first, ring->data, size - first);
}

const struct perf_event_header *abi_next(const char *file, int line, struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header header;

	if (head == ring->tail)
		return NULL;
	if (head - ring->tail < sizeof(header))
		abi_fail(file, line, "%llu bytes are no record",
			 (unsigned long long)(head - ring->tail));
	copy_out(ring, ring->tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 || header.size > head - ring->tail)
		abi_fail(file, line, "record type %u at %llu has size %u of %llu", header.type,
			 (unsigned long long)ring->tail, header.size,
			 (unsigned long long)(head - ring->tail));
	copy_out(ring, ring->tail, ring->record, header.size);
	ring->tail += header.size;
	if (ring->writable)
		__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	return &ring->record->header;
}

const struct perf_event_header *abi_next_of(const char *file, int line, struct ring *ring,
					    uint32_t type)
{
	const struct perf_event_header *header;

	while ((header = abi_next(file, line, ring)))
		if (header->type == type)
			break;
	return header;
}

const struct perf_event_header *abi_expect(const char *file, int line, struct ring *ring,
					   uint32_t type)
{
	const struct perf_event_header *header = abi_next_of(file, line, ring, type);

	if (!header)
		abi_fail(file, line, "no record of type %u", type);
	return header;
}

unsigned int abi_drain(const char *file, int line, struct ring *ring, uint32_t type)
{
	unsigned int count = 0;

	while (abi_next_of(file, line, ring, type))
		count++;
	return count;
}

/* ---- fields ---- */

struct cursor {
	const char *file;
	int line;
	const uint64_t *at, *end;
};

static const uint64_t *take(struct cursor *cursor, uint64_t words)
{
	const uint64_t *at = cursor->at;

	if (words > (uint64_t)(cursor->end - cursor->at))
		abi_fail(cursor->file, cursor->line, "the record ends %lld words before its fields",
			 (long long)(words - (uint64_t)(cursor->end - cursor->at)));
	cursor->at += words;
	return at;
}

static uint64_t word(struct cursor *cursor)
{
	return *take(cursor, 1);
}

static void halves(struct cursor *cursor, uint32_t *first, uint32_t *second)
{
	uint64_t both = word(cursor);

	*first = (uint32_t)both;
	*second = (uint32_t)(both >> 32);
}

static void take_read(struct cursor *cursor, uint64_t format, struct sample *out)
{
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);

	out->read = cursor->at;
	if (format & PERF_FORMAT_GROUP) {
		uint64_t nr = word(cursor);

		take(cursor, times);
		if (nr > 8192)
			abi_fail(cursor->file, cursor->line, "a group of %llu events",
				 (unsigned long long)nr);
		take(cursor, nr * each);
	} else {
		take(cursor, each + times);
	}
	out->read_words = (size_t)(cursor->at - out->read);
}

static void take_regs(struct cursor *cursor, uint64_t mask, uint64_t *abi, const uint64_t **regs)
{
	*abi = word(cursor);
	if (*abi != PERF_SAMPLE_REGS_ABI_NONE)
		*regs = take(cursor, (uint64_t)__builtin_popcountll(mask));
}

static void take_stack(struct cursor *cursor, struct sample *out)
{
	out->stack_size = word(cursor);
	if (!out->stack_size)
		return;
	out->stack = (const unsigned char *)take(cursor, out->stack_size / 8);
	out->stack_dyn_size = word(cursor);
}

static void take_raw(struct cursor *cursor, struct sample *out)
{
	out->raw_size = *(const uint32_t *)(const void *)cursor->at;
	out->raw = (const unsigned char *)cursor->at + 4;
	take(cursor, (out->raw_size + 4ULL + 7) / 8);
}

struct sample abi_sample(const char *file, int line, const struct perf_event_attr *attr,
			 const struct perf_event_header *header)
{
	struct cursor c = {file, line, abi_words(header), abi_words(header) + header->size / 8 - 1};
	uint64_t type = attr->sample_type;
	struct sample out = {0};

	if (header->type != PERF_RECORD_SAMPLE)
		abi_fail(file, line, "record type %u is no sample", header->type);
	if (type & PERF_SAMPLE_IDENTIFIER)
		out.identifier = word(&c);
	if (type & PERF_SAMPLE_IP)
		out.ip = word(&c);
	if (type & PERF_SAMPLE_TID)
		halves(&c, &out.pid, &out.tid);
	if (type & PERF_SAMPLE_TIME)
		out.time = word(&c);
	if (type & PERF_SAMPLE_ADDR)
		out.addr = word(&c);
	if (type & PERF_SAMPLE_ID)
		out.id = word(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		out.stream_id = word(&c);
	if (type & PERF_SAMPLE_CPU)
		halves(&c, &out.cpu, &out.cpu_reserved);
	if (type & PERF_SAMPLE_PERIOD)
		out.period = word(&c);
	if (type & PERF_SAMPLE_READ)
		take_read(&c, attr->read_format, &out);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		out.nr = word(&c);
		out.ips = take(&c, out.nr);
	}
	if (type & PERF_SAMPLE_RAW)
		take_raw(&c, &out);
	if (type & PERF_SAMPLE_BRANCH_STACK) {
		out.branches = word(&c);
		if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
			out.hw_index = word(&c);
		if (out.branches > 8192)
			abi_fail(file, line, "%llu branches", (unsigned long long)out.branches);
		out.branch = (const struct perf_branch_entry *)take(&c, out.branches * 3);
	}
	if (type & PERF_SAMPLE_REGS_USER)
		take_regs(&c, attr->sample_regs_user, &out.user_abi, &out.user_regs);
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(&c, &out);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		out.weight = word(&c);
	if (type & PERF_SAMPLE_DATA_SRC)
		out.data_src = word(&c);
	if (type & PERF_SAMPLE_TRANSACTION)
		out.transaction = word(&c);
	if (type & PERF_SAMPLE_REGS_INTR)
		take_regs(&c, attr->sample_regs_intr, &out.intr_abi, &out.intr_regs);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		out.phys_addr = word(&c);
	if (type & PERF_SAMPLE_CGROUP)
		out.cgroup = word(&c);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		out.data_page_size = word(&c);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		out.code_page_size = word(&c);
	if (type & PERF_SAMPLE_AUX) {
		out.aux_size = word(&c);
		take(&c, out.aux_size / 8 + !!(out.aux_size % 8));
	}
	if (c.at != c.end)
		abi_fail(file, line, "the fields leave %td words of the sample over", c.end - c.at);
	return out;
}

struct trailer abi_trailer(const char *file, int line, const struct perf_event_attr *attr,
			   const struct perf_event_header *header)
{
	static const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				       PERF_SAMPLE_IDENTIFIER;
	uint64_t type = attr->sample_type & fields, words = (uint64_t)__builtin_popcountll(type);
	const uint64_t *end = abi_words(header) + header->size / 8 - 1;
	struct cursor c = {file, line, end - words, end};
	struct trailer out = {.size = words * 8};

	if (header->size < sizeof(*header) + out.size)
		abi_fail(file, line, "a record of %u bytes has no room for its identity",
			 header->size);
	if (type & PERF_SAMPLE_TID)
		halves(&c, &out.pid, &out.tid);
	if (type & PERF_SAMPLE_TIME)
		out.time = word(&c);
	if (type & PERF_SAMPLE_ID)
		out.id = word(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		out.stream_id = word(&c);
	if (type & PERF_SAMPLE_CPU)
		halves(&c, &out.cpu, &out.cpu_reserved);
	if (type & PERF_SAMPLE_IDENTIFIER)
		out.identifier = word(&c);
	return out;
}
