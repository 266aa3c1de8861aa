// SPDX-License-Identifier: MIT
/* The mapping of an event: its size, its control page, and how records lie in the buffer. */
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static volatile uint32_t watched;

/* One record for each store; 8 + 8 bytes with the default type. */
static int watch(uint64_t sample_type)
{
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);

	attr.sample_period = 1;
	attr.sample_type = sample_type;
	return OPEN_SELF(&attr);
}

static void hits(unsigned int count)
{
	while (count--)
		work_store4(&watched);
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void *map_pages(int fd, size_t pages, int prot, int flags, size_t offset_pages)
{
	return mmap(NULL, pages * page_size(), prot, flags, fd,
		    (off_t)(offset_pages * page_size()));
}

static const struct length {
	struct abi_row about;
	unsigned int pages; /* behind the control page */
	bool good;
} lengths[] = {
	{{"mmap.size", "the control page alone"}, 0, true},
	{{"mmap.size", "1 data page"}, 1, true},
	{{"mmap.size", "2 data pages"}, 2, true},
	{{"mmap.size", "3 data pages: EINVAL"}, 3, false},
	{{"mmap.size", "4 data pages"}, 4, true},
	{{"mmap.size", "6 data pages: EINVAL"}, 6, false},
};

ABI_TABLE(lengths)
{
	int fd = watch(PERF_SAMPLE_IP);
	void *map;

	errno = 0;
	map = map_pages(fd, 1 + row->pages, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	if (row->good) {
		CHECK(map != MAP_FAILED);
		START(fd);
		hits(1);
		CHECK_EQ(((struct perf_event_mmap_page *)map)->data_head, row->pages ? 16 : 0);
	} else {
		CHECK(map == MAP_FAILED);
		CHECK_EQ(errno, EINVAL);
	}
}

ABI_CASE("mmap.shared-offset-zero", "private or elsewhere: EINVAL; executable: EPERM or EACCES")
{
	const uintptr_t beyond = (uintptr_t)1 << 57;
	int fd = watch(PERF_SAMPLE_IP);
	struct ring ring;

	CHECK_ERRNO(map_pages(fd, 2, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0), EINVAL);
	CHECK_ERRNO(map_pages(fd, 2, PROT_READ | PROT_WRITE, MAP_SHARED, 1), EINVAL);
	CHECK_EQ((intptr_t)map_pages(fd, 2, PROT_READ | PROT_EXEC, MAP_SHARED, 0), -1);
	CHECK(errno == EPERM || errno == EACCES);
	/* no place for programs, which is seen before what is wrong with the event's mapping */
	CHECK_ERRNO(mmap((void *)beyond, page_size(), PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0),
		    ENOMEM);
	CHECK_ERRNO(mmap((void *)beyond, page_size(), PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0),
		    ENOMEM);
	ring = MAP(fd, 1);
	CHECK_ERRNO(map_pages(fd, 1, PROT_READ | PROT_WRITE, MAP_SHARED, 1), EINVAL);
	/* nor later */
	CHECK_ERRNO(mprotect(ring.page, 2 * page_size(), PROT_READ | PROT_EXEC), EACCES);
	CHECK_ERRNO(pkey_mprotect(ring.page, page_size(), PROT_READ | PROT_EXEC, -1), EACCES);
	CHECK_OK(mprotect(ring.page, 2 * page_size(), PROT_READ));
}

ABI_CASE("mmap.optional", "a sampling event counts without a buffer")
{
	int fd = watch(PERF_SAMPLE_IP);

	START(fd);
	hits(10);
	CHECK_EQ(VALUE(fd), 10);
}

ABI_CASE("mmap.remap",
	 "a second mapping shares; another size is refused; after the last a new one starts at 0")
{
	int fd = watch(PERF_SAMPLE_IP);
	struct ring first = MAP(fd, 1), second = MAP(fd, 1);

	CHECK_ERRNO(map_pages(fd, 3, PROT_READ | PROT_WRITE, MAP_SHARED, 0), EINVAL);
	START(fd);
	hits(3);
	CHECK_EQ(first.page->data_head, 48);
	CHECK_EQ(second.page->data_head, 48);
	CHECK_EQ(memcmp(first.data, second.data, 48), 0);
	abi_unmap(&first);
	hits(1);
	CHECK_EQ(second.page->data_head, 64);
	abi_unmap(&second);
	first = MAP(fd, 2);
	CHECK_EQ(first.page->data_head, 0);
	hits(1);
	CHECK_EQ(first.page->data_head, 16);
}

ABI_CASE("mmap.keeps-event life.close",
	 "the mapping keeps the event running behind a closed descriptor")
{
	int fd = watch(PERF_SAMPLE_IP);
	struct ring ring = MAP(fd, 1);

	START(fd);
	hits(1);
	CHECK_OK(close(fd));
	hits(4);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 5);
}

/* ---- the control page ---- */

#define AT(member, place)                                                                          \
	{                                                                                          \
		.field = #member, .offset = offsetof(struct perf_event_mmap_page, member),         \
		.wanted = place                                                                    \
	}

ABI_CASE("mmap.version mmap.lock mmap.index mmap.offset mmap.time_enabled mmap.time_running "
	 "mmap.capabilities mmap.pmc_width mmap.time_conversion mmap.time_zero mmap.size-field "
	 "mmap.data_head mmap.data_tail mmap.data_offset mmap.data_size mmap.aux_setup",
	 "each field of the header is where the documents put it")
{
	static const struct {
		const char *field;
		size_t offset, wanted;
	} fields[] = {
		AT(version, 0),	       AT(compat_version, 4), AT(lock, 8),
		AT(index, 12),	       AT(offset, 16),	      AT(time_enabled, 24),
		AT(time_running, 32),  AT(capabilities, 40),  AT(pmc_width, 48),
		AT(time_shift, 50),    AT(time_mult, 52),     AT(time_offset, 56),
		AT(time_zero, 64),     AT(size, 72),	      AT(time_cycles, 80),
		AT(time_mask, 88),     AT(data_head, 1024),   AT(data_tail, 1032),
		AT(data_offset, 1040), AT(data_size, 1048),   AT(aux_head, 1056),
		AT(aux_tail, 1064),    AT(aux_offset, 1072),  AT(aux_size, 1080),
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].offset != fields[i].wanted)
			FAIL("%s is at %zu, wanted %zu", fields[i].field, fields[i].offset,
			     fields[i].wanted);
}

ABI_CASE("mmap.version mmap.index mmap.capabilities mmap.cap_bit0 mmap.cap_bit0_is_deprecated "
	 "mmap.cap_user_rdpmc mmap.size-field mmap.reserved",
	 "what a software event's page says")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	int fd = OPEN_SELF(&attr);
	struct ring ring = MAP(fd, 1);
	const unsigned char *bytes = (const unsigned char *)ring.page;

	START(fd);
	work_faults(3);
	CHECK_EQ(ring.page->version, 0);
	CHECK_EQ(ring.page->compat_version, 0);
	CHECK_EQ(ring.page->index, 0);
	CHECK_EQ(ring.page->cap_bit0, 0);
	CHECK_EQ(ring.page->cap_bit0_is_deprecated, 1);
	CHECK_EQ(ring.page->cap_user_rdpmc, 0);
	CHECK_CMP(ring.page->size, >=, 80);
	CHECK_CMP(ring.page->size, <=, 1024);
	CHECK_EQ(ring.page->size % 8, 0);
	for (size_t i = ring.page->size; i < 1024; i++)
		CHECK_EQ(bytes[i], 0);
}

ABI_CASE("mmap.data_offset mmap.data_size", "a page, and the pages that were asked for")
{
	for (unsigned int pages = 1; pages <= 8; pages *= 2) {
		int fd = watch(PERF_SAMPLE_IP);
		struct ring ring = MAP(fd, pages);

		CHECK_EQ(ring.page->data_offset, page_size());
		CHECK_EQ(ring.page->data_size, pages * page_size());
		CHECK_EQ(ring.page->data_head, 0);
		CHECK_EQ(ring.page->data_tail, 0);
		CHECK_OK(close(fd));
		abi_unmap(&ring);
	}
}

ABI_CASE("mmap.offset mmap.time_enabled mmap.time_running mmap.lock",
	 "with index 0 the offset is the count at the last update; times never run ahead of read")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[3], lock;
	struct ring ring;
	int fd;

	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = OPEN_SELF(&attr);
	START(fd);
	work_faults(10);
	work_spin(1000000);
	STOP(fd);
	READ_WORDS(fd, words, 3);
	ring = MAP(fd, 1); /* updates the page */
	CHECK_EQ(ring.page->offset, words[0]);
	CHECK_EQ(ring.page->time_enabled, words[1]);
	CHECK_EQ(ring.page->time_running, words[2]);
	lock = ring.page->lock;
	CHECK_EQ(lock % 2, 0);
	RESET(fd); /* updates it again */
	CHECK_EQ(ring.page->offset, 0);
	CHECK(ring.page->lock != lock);
	CHECK_EQ(ring.page->lock % 2, 0);
	START(fd);
	work_spin(1000000);
	words[1] = ring.page->time_enabled;
	words[2] = ring.page->time_running;
	CHECK_CMP(words[2], <=, words[1]);
	{
		uint64_t later[3];

		READ_WORDS(fd, later, 3);
		CHECK_CMP(later[1], >=, words[1]);
		CHECK_CMP(later[2], >=, words[2]);
	}
}

static void *disturb(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < 20000; i++) {
		CHECK_OK(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		CHECK_OK(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	}
	return NULL;
}

ABI_CASE("mmap.seqlock", "under the lock protocol the fields never disagree")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_TASK_CLOCK);
	volatile struct perf_event_mmap_page *page;
	uint64_t last = 0;
	struct ring ring;
	pthread_t thread;
	int fd;

	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	page = ring.page;
	START(fd);
	CHECK_EQ(pthread_create(&thread, NULL, disturb, &fd), 0);
	for (int i = 0; i < 200000; i++) {
		uint64_t enabled, running;
		uint32_t lock;

		do {
			lock = page->lock;
			__asm__ volatile("" : : : "memory");
			enabled = page->time_enabled;
			running = page->time_running;
			__asm__ volatile("" : : : "memory");
		} while (page->lock != lock || lock & 1);
		CHECK_CMP(running, <=, enabled);
		CHECK_CMP(enabled, >=, last);
		last = enabled;
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* ---- records in the buffer ---- */

ABI_CASE("mmap.data_head mmap.record-wrap mmap.record-alignment",
	 "the head only grows, records wrap around the end whole")
{
	/* 8 + 16 bytes: does not divide a page */
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME};
	int fd = watch(attr.sample_type);
	struct ring ring = MAP(fd, 1);
	uint64_t ip = 0, time = 0;

	START(fd);
	for (unsigned int round = 0; round < 20; round++) {
		hits(50);
		CHECK_EQ(ring.page->data_head, (round + 1) * 50 * 24);
		for (unsigned int i = 0; i < 50; i++) {
			struct sample sample = SAMPLE(&attr, EXPECT(&ring, PERF_RECORD_SAMPLE));

			CHECK(!ip || sample.ip == ip);
			CHECK_CMP(sample.time, >=, time);
			ip = sample.ip;
			time = sample.time;
		}
		CHECK(NEXT(&ring) == NULL);
	}
	CHECK_CMP(ring.page->data_head, >, 5 * ring.size);
}

ABI_CASE("mmap.data_tail record.lost", "a full buffer keeps what it has and tells the loss later")
{
	int fd = watch(PERF_SAMPLE_IP);
	struct ring ring = MAP(fd, 1);
	const struct perf_event_header *header;
	unsigned int kept;
	uint64_t head;

	START(fd);
	hits(300); /* there is room for less than 256 */
	head = ring.page->data_head;
	CHECK_CMP(head, <=, ring.size);
	hits(10);
	CHECK_EQ(ring.page->data_head, head);
	kept = DRAIN(&ring, PERF_RECORD_SAMPLE);
	CHECK_EQ(kept, head / 16);
	CHECK_EQ(ring.page->data_tail, head);
	hits(1);
	header = NEXT(&ring);
	CHECK(header);
	CHECK_EQ(header->type, PERF_RECORD_LOST);
	CHECK_EQ(header->size, 8 + 16);
	CHECK_EQ(header->misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_CPUMODE_UNKNOWN);
	CHECK_EQ(abi_words(header)[0], ID(fd));
	CHECK_EQ(abi_words(header)[1] + kept, 310);
	CHECK(EXPECT(&ring, PERF_RECORD_SAMPLE));
}

ABI_CASE("mmap.overwrite", "a read-only mapping overwrites the oldest and loses nothing")
{
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);
	uint64_t words[2];
	struct ring ring;
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.read_format = PERF_FORMAT_LOST;
	fd = OPEN_SELF(&attr);
	ring = MAP_PROT(fd, 1, PROT_READ);
	START(fd);
	hits(1000);
	STOP(fd);
	CHECK_EQ(ring.page->data_head, 16000);
	READ_WORDS(fd, words, 2);
	CHECK_EQ(words[0], 1000);
	CHECK_EQ(words[1], 0);
	ring.tail = 16000 - ring.size; /* the last page's worth is there, whole, and no LOST */
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), ring.size / 16);
}

ABI_CASE("mmap.backward attr.write_backward", "the newest record is at the head, older ones follow")
{
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_W, &watched, HW_BREAKPOINT_LEN_4);
	const unsigned int count = 200;
	uint64_t newest = UINT64_MAX;
	struct ring ring;
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_READ; /* 24 bytes, with a number each */
	attr.write_backward = 1;
	fd = OPEN_SELF(&attr);
	ring = MAP_PROT(fd, 1, PROT_READ);
	START(fd);
	for (unsigned int i = 1; i <= count; i++) {
		hits(1);
		CHECK_EQ(ring.page->data_head, -24ULL * i);
	}
	STOP(fd);
	/* from the head upwards for as long as whole records of this lap are there */
	for (uint64_t at = 0; at + 24 <= ring.size; at += 24) {
		struct {
			struct perf_event_header header;
			uint64_t ip, value;
		} record;
		uint64_t offset = (ring.page->data_head + at) & (ring.size - 1);

		for (size_t i = 0; i < sizeof(record); i++)
			((unsigned char *)&record)[i] = ring.data[(offset + i) & (ring.size - 1)];
		CHECK_EQ(record.header.type, PERF_RECORD_SAMPLE);
		CHECK_EQ(record.header.size, 24);
		if (newest == UINT64_MAX)
			newest = record.value;
		CHECK_EQ(record.value, newest - at / 24);
	}
	CHECK_EQ(newest, count);
}

struct racer {
	int cpu;
	volatile bool stop;
};

static void *race(void *arg)
{
	struct racer *racer = arg;

	abi_pin(0, racer->cpu);
	while (!racer->stop)
		work_faults(10);
	return NULL;
}

ABI_CASE("mmap.data_head-barrier", "a reader on another processor never sees half a record")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct racer racer = {0};
	const struct perf_event_header *header;
	unsigned int seen = 0;
	struct ring ring;
	pthread_t thread;
	int cpus[2], fd;

	abi_need_two_cpus(cpus);
	racer.cpu = cpus[1];
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ID | PERF_SAMPLE_CPU;
	attr.inherit = 1;
	fd = OPEN(&attr, 0, cpus[1], -1);
	ring = MAP(fd, 1);
	START(fd);
	CHECK_EQ(pthread_create(&thread, NULL, race, &racer), 0);
	abi_pin(0, cpus[0]);
	while (seen < 5000) {
		struct sample sample;

		header = NEXT_OF(&ring, PERF_RECORD_SAMPLE);
		if (!header)
			continue;
		sample = SAMPLE(&attr, header);
		CHECK_EQ(sample.pid, getpid());
		CHECK_EQ(sample.id, ID(fd));
		CHECK_EQ(sample.cpu, cpus[1]);
		seen++;
	}
	racer.stop = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

ABI_CASE("mmap.record-alignment record.comm", "names are padded with zeros to 8 bytes")
{
	static const char *const names[] = {"a", "abcdefg", "abcdefgh", "abcdefghijklmno"};
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_DUMMY);
	struct ring ring;
	int fd;

	attr.comm = 1;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct perf_event_header *header;
		size_t padded = (strlen(names[i]) + 8) / 8 * 8;
		char wanted[16] = {0};

		CHECK_OK(prctl(PR_SET_NAME, names[i]));
		header = EXPECT(&ring, PERF_RECORD_COMM);
		CHECK_EQ(header->size, 8 + 8 + padded);
		strcpy(wanted, names[i]);
		CHECK_EQ(memcmp(abi_words(header) + 1, wanted, padded), 0);
	}
}

/* ---- locked memory ---- */

ABI_CASE("mmap.mlock sysctl.mlock_kb",
	 "beyond perf_event_mlock_kb for each processor and RLIMIT_MEMLOCK: EPERM")
{
	const struct rlimit none = {0, 0};
	size_t allowed, pages = 1;
	int fd;

	abi_drop_rights();
	abi_need_level(0, 2);
	CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &none));
	allowed = (size_t)abi_sysctl("perf_event_mlock_kb") * 1024 / page_size() *
		  (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	while (1 + pages <= allowed)
		pages *= 2;
	fd = watch(PERF_SAMPLE_IP);
	CHECK_ERRNO(map_pages(fd, 1 + pages, PROT_READ | PROT_WRITE, MAP_SHARED, 0), EPERM);
	MAP(fd, 1);
}

/* ---- AUX ---- */

ABI_CASE("mmap.aux_setup", "without an AUX unit EOPNOTSUPP; a bad offset or size EINVAL")
{
	int fd = watch(PERF_SAMPLE_IP);
	struct ring ring = MAP(fd, 1);
	const int prot = PROT_READ | PROT_WRITE;

	ring.page->aux_offset = 2 * page_size();
	ring.page->aux_size = 4 * page_size();
	CHECK_ERRNO(map_pages(fd, 4, prot, MAP_SHARED, 2), EOPNOTSUPP);
	CHECK_ERRNO(map_pages(fd, 4, prot, MAP_SHARED, 3), EINVAL); /* not at aux_offset */
	CHECK_ERRNO(map_pages(fd, 2, prot, MAP_SHARED, 2), EINVAL); /* not of aux_size */
	ring.page->aux_size = 3 * page_size();
	CHECK_ERRNO(map_pages(fd, 3, prot, MAP_SHARED, 2), EINVAL); /* no power of two */
	ring.page->aux_offset = page_size();
	ring.page->aux_size = page_size();
	CHECK_ERRNO(map_pages(fd, 1, prot, MAP_SHARED, 1), EINVAL); /* inside the data */
}
