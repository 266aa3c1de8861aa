// SPDX-License-Identifier: MIT
/* Buffers: mapped in ways that are allowed and in others, and emptied. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "differential.h"
#include "draw.h"

#define PAGE 4096UL

/* ---- mapping ---- */

static void map_wrongly(const struct slot *slot)
{
	static const struct {
		const char *what;
		size_t size;
		int prot, flags;
		off_t offset;
	} ways[] = {
		{"private", 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0},
		{"at an odd page", 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, PAGE},
		{"behind the data", 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 16 * PAGE},
		{"three pages", 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0},
		{"too much", (1UL << 40) + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0},
		{"to execute", 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, 0},
	};
	unsigned int way = below(sizeof(ways) / sizeof(ways[0]));
	void *map = mmap(NULL, ways[way].size, ways[way].prot, ways[way].flags, slot->fd,
			 ways[way].offset);

	printf("map %s: %s\n", ways[way].what, map == MAP_FAILED ? strerrorname_np(errno) : "ok");
	if (map != MAP_FAILED)
		munmap(map, ways[way].size);
}

static void map_again(const struct slot *slot)
{
	size_t pages = one_in(2) ? slot->pages : below(5);
	void *map = mmap(NULL, (1 + pages) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, slot->fd, 0);

	printf("map again %zu: %s\n", pages, map == MAP_FAILED ? strerrorname_np(errno) : "ok");
	if (map == MAP_FAILED)
		return;
	if (memcmp(map, slot->page, 8) != 0)
		printf("another page\n");
	munmap(map, (1 + pages) * PAGE);
}

static void print_page(const struct perf_event_mmap_page *page)
{
	printf(" version %u %u, data %#llx %#llx, aux %#llx %#llx, head %llu\n", page->version,
	       page->compat_version, (unsigned long long)page->data_offset,
	       (unsigned long long)page->data_size, (unsigned long long)page->aux_offset,
	       (unsigned long long)page->aux_size, (unsigned long long)page->data_head);
}

void do_map(struct slot *slot)
{
	static const unsigned int choices[] = {0, 1, 1, 2, 4, 8};
	unsigned int pages = PICK(choices);
	bool writable = !one_in(8);
	void *map;

	if (one_in(6)) {
		map_wrongly(slot);
		return;
	}
	if (slot->page) {
		map_again(slot);
		return;
	}
	map = mmap(NULL, (1 + pages) * PAGE, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED,
		   slot->fd, 0);
	printf("map %u%s: %s", pages, writable ? "" : " to be read",
	       map == MAP_FAILED ? strerrorname_np(errno) : "ok");
	if (map == MAP_FAILED) {
		printf("\n");
		return;
	}
	slot->page = map;
	slot->pages = pages;
	slot->writable = writable;
	print_page(slot->page);
}

void do_unmap(struct slot *slot)
{
	if (slot->page) {
		munmap(slot->page, (1 + slot->pages) * PAGE);
		printf("unmapped\n");
	} else {
		printf("nothing mapped\n");
	}
	slot->page = NULL;
}

/* ---- emptying ---- */

/* Headers are 8 bytes on a boundary of 8: never split. */
static bool take_record(const struct slot *slot, uint64_t at, uint64_t head, unsigned char *record)
{
	const unsigned char *data = (unsigned char *)slot->page + PAGE;
	uint64_t size = slot->pages * PAGE;
	struct perf_event_header header;

	memcpy(&header, data + (at & (size - 1)), sizeof(header));
	if (header.size < 8 || header.size > head - at)
		return false;
	for (size_t i = 0; i < header.size; i++)
		record[i] = data[(at + i) & (size - 1)];
	return true;
}

void do_drain(struct slot *slot)
{
	static _Alignas(8) unsigned char record[UINT16_MAX + 1];
	uint64_t tail, head;

	if (!slot->page || !slot->pages) {
		printf("no buffer\n");
		return;
	}
	head = __atomic_load_n(&slot->page->data_head, __ATOMIC_ACQUIRE);
	if (slot->attr.write_backward || !slot->writable) { /* nobody says what has been read */
		printf("head %lld\n", (long long)head);
		return;
	}
	tail = slot->page->data_tail;
	printf("records: %llu bytes\n", (unsigned long long)(head - tail));
	while (tail < head) {
		const struct perf_event_header *header = (const void *)record;

		if (!take_record(slot, tail, head, record)) {
			printf("    malformed\n");
			break;
		}
		tell_record(header, slot);
		tail += header->size;
	}
	tell_no_more();
	__atomic_store_n(&slot->page->data_tail, head, __ATOMIC_RELEASE);
}
