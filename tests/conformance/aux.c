// SPDX-License-Identifier: MIT
/* The AUX area, shown with whichever unit fills one. */
#include <dirent.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

/* Units that have to be told what to trace; others trace by being open. */
static uint64_t config_of(const char *unit)
{
	return strcmp(unit, "intel_pt") ? 0 : 0x2401; /* time stamps, returns uncompressed */
}

static struct perf_event_attr attr_of(const char *unit)
{
	struct perf_event_attr attr = abi_attr((uint32_t)abi_pmu_type(unit), config_of(unit));

	attr.sample_type = PERF_SAMPLE_TID;
	attr.sample_id_all = 1;
	return attr;
}

/* Only by asking for an area is it known who has one. */
static bool fills_aux(const char *unit)
{
	const struct perf_event_attr attr = attr_of(unit);
	struct perf_event_mmap_page *page;
	int fd = perf_open(&attr, 0, -1, -1, 0);
	void *area = MAP_FAILED;

	if (fd < 0)
		return false;
	page = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) {
		page->aux_offset = 2 * 4096;
		page->aux_size = 4096;
		area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * 4096);
		if (area != MAP_FAILED)
			munmap(area, 4096);
		munmap(page, 2 * 4096);
	}
	close(fd);
	return area != MAP_FAILED;
}

static struct perf_event_attr trace(void)
{
	DIR *units = opendir("/sys/bus/event_source/devices");
	const struct dirent *unit;

	while (units && (unit = readdir(units)))
		if (abi_pmu_type(unit->d_name) >= 0 && fills_aux(unit->d_name)) {
			const struct perf_event_attr attr = attr_of(unit->d_name);

			closedir(units);
			return attr;
		}
	CANNOT("no unit that writes an AUX area");
}

struct area {
	struct ring ring;
	volatile unsigned char *data;
	size_t size;
	int fd;
};

static struct area map_area(const struct perf_event_attr *attr, unsigned int pages, int prot)
{
	struct area area = {.fd = OPEN_SELF(attr)};
	void *map;

	area.ring = MAP(area.fd, 8);
	area.size = pages * 4096;
	area.ring.page->aux_offset = 9 * 4096;
	area.ring.page->aux_size = area.size;
	map = mmap(NULL, area.size, prot, MAP_SHARED, area.fd, 9 * 4096);
	CHECK(map != MAP_FAILED);
	area.data = map;
	return area;
}

ABI_CASE("mmap.aux_setup mmap.aux_head_tail record.aux record.itrace_start attr.aux_watermark",
	 "trace arrives, the head tells how much, records tell where")
{
	struct perf_event_attr attr = trace();
	const struct perf_event_header *header;
	uint64_t told = 0, at = 0;
	struct area area;

	attr.aux_watermark = 4096;
	area = map_area(&attr, 256, PROT_READ | PROT_WRITE);
	START(area.fd);
	work_spin(2000000);
	STOP(area.fd);
	CHECK_CMP(area.ring.page->aux_head, >, 0);
	header = EXPECT(&area.ring, PERF_RECORD_ITRACE_START);
	CHECK_EQ(abi_halves(header)[0], getpid());
	while ((header = NEXT_OF(&area.ring, PERF_RECORD_AUX))) {
		CHECK_EQ(header->size, 8 + 24 + 8);
		CHECK_EQ(abi_words(header)[0], at);
		at += abi_words(header)[1];
		told += abi_words(header)[1];
		CHECK_EQ(abi_words(header)[2] & PERF_AUX_FLAG_OVERWRITE, 0);
	}
	CHECK_EQ(told, area.ring.page->aux_head);
}

static void *map_again(const struct area *area, size_t size, off_t offset)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, offset);
}

ABI_CASE("mmap.aux_setup",
	 "once it is mapped it keeps its place and its size; it goes before or after the ring")
{
	const struct perf_event_attr attr = trace();
	struct area area = map_area(&attr, 4, PROT_READ | PROT_WRITE);
	void *again = map_again(&area, area.size, 9 * 4096);
	pid_t child;

	CHECK(again != MAP_FAILED);
	area.ring.page->aux_size = 2 * area.size;
	CHECK(map_again(&area, 2 * area.size, 9 * 4096) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	area.ring.page->aux_size = area.size;
	area.ring.page->aux_offset = 16 * 4096;
	CHECK(map_again(&area, area.size, 16 * 4096) == MAP_FAILED);
	CHECK_EQ(errno, EINVAL);
	CHECK_OK(munmap(again, area.size));
	child = fork();
	if (!child) { /* has neither */
		unsigned char there;

		_exit(!(mincore((void *)area.data, 4096, &there) && errno == ENOMEM));
	}
	JOIN(child);
	START(area.fd);
	work_spin(1000000);
	STOP(area.fd);
	CHECK_CMP(area.ring.page->aux_head, >, 0);
	CHECK_OK(munmap((void *)area.data, area.size));
	area.ring.page->aux_offset = 9 * 4096;
	area.data = map_again(&area, area.size, 9 * 4096); /* another one */
	CHECK(area.data != MAP_FAILED);
	CHECK_OK(munmap(area.ring.page, 9 * 4096));
	START(area.fd);
	work_spin(1000000);
	STOP(area.fd);
	CHECK_CMP(area.data[0] | area.data[1] | area.data[2] | area.data[3], !=, 0);
	CHECK_OK(munmap((void *)area.data, area.size));
	close(area.fd);
}

ABI_CASE("mmap.aux_head_tail attr.aux_watermark record.aux",
	 "who makes room goes on getting it, announced at the watermark, which wakes")
{
	struct perf_event_attr attr = trace();
	const struct perf_event_header *header;
	struct area area;
	uint64_t told = 0;

	attr.aux_watermark = 8192;
	area = map_area(&attr, 16, PROT_READ | PROT_WRITE);
	START(area.fd);
	for (unsigned int i = 0; i < 200; i++) {
		struct pollfd poll_it = {.fd = area.fd, .events = POLLIN};

		work_loop(600);
		if (poll(&poll_it, 1, 0) == 1)
			CHECK_CMP(area.ring.page->aux_head, >=, 8192);
		area.ring.page->aux_tail = area.ring.page->aux_head;
	}
	STOP(area.fd);
	while ((header = NEXT_OF(&area.ring, PERF_RECORD_AUX))) {
		CHECK_EQ(abi_words(header)[2] & PERF_AUX_FLAG_TRUNCATED, 0);
		CHECK_CMP(abi_words(header)[0], >=,
			  told); /* what is left out at the end is not told */
		told = abi_words(header)[0] + abi_words(header)[1];
	}
	CHECK_EQ(told, area.ring.page->aux_head);
}

ABI_CASE("mmap.aux_truncate record.aux.truncated",
	 "what does not fit is cut, and the record says so")
{
	struct perf_event_attr attr = trace();
	const struct perf_event_header *header;
	bool truncated = false;
	struct area area = map_area(&attr, 2, PROT_READ | PROT_WRITE);

	START(area.fd);
	work_spin(50000000);
	STOP(area.fd);
	CHECK_CMP(area.ring.page->aux_head, <=, area.size);
	while ((header = NEXT_OF(&area.ring, PERF_RECORD_AUX)))
		truncated |= abi_words(header)[2] & PERF_AUX_FLAG_TRUNCATED;
	CHECK(truncated);
}

ABI_CASE("mmap.aux_overwrite record.aux.overwrite",
	 "a read-only area is overwritten, and the record says so")
{
	struct perf_event_attr attr = trace();
	struct area area = map_area(&attr, 2, PROT_READ);

	START(area.fd);
	work_spin(50000000);
	STOP(area.fd);
	CHECK(abi_words(EXPECT(&area.ring, PERF_RECORD_AUX))[2] & PERF_AUX_FLAG_OVERWRITE);
}

ABI_CASE("sample.aux layout.aux attr.aux_sample_size",
	 "a sample carries no more than was asked for")
{
	struct perf_event_attr attr = trace(), sampler = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct area area = map_area(&attr, 64, PROT_READ);
	struct ring ring;
	int fd;

	sampler.disabled = 0;
	sampler.sample_period = 1;
	sampler.sample_type = PERF_SAMPLE_AUX;
	sampler.aux_sample_size = 4096;
	fd = OPEN(&sampler, 0, -1, area.fd);
	ring = MAP(fd, 32);
	START(area.fd);
	work_spin(2000000);
	work_faults(1);
	STOP(area.fd);
	CHECK_CMP(SAMPLE(&sampler, EXPECT(&ring, PERF_RECORD_SAMPLE)).aux_size, <=, 4096);
}

static const struct flag {
	struct abi_row about;
	uint64_t value, wanted;
} flags[] = {
	{{"record.aux.truncated", "1"}, PERF_AUX_FLAG_TRUNCATED, 1},
	{{"record.aux.overwrite", "2"}, PERF_AUX_FLAG_OVERWRITE, 2},
	{{"record.aux.flags-header", "PARTIAL is 4"}, PERF_AUX_FLAG_PARTIAL, 4},
	{{"record.aux.flags-header", "COLLISION is 8"}, PERF_AUX_FLAG_COLLISION, 8},
	{{"record.aux.flags-header", "the format's mask"},
	 PERF_AUX_FLAG_PMU_FORMAT_TYPE_MASK,
	 0xff00},
};

ABI_TABLE(flags)
{
	CHECK_EQ(row->value, row->wanted);
}
