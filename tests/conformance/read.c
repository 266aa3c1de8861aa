// SPDX-License-Identifier: MIT
/* read(2) on an event: layouts, sizes, times, and what the numbers mean. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)
#define ALL   (TIMES | PERF_FORMAT_ID | PERF_FORMAT_LOST)

/*
 * The thread's own clock, by which the work spins, and the clock of events may charge interrupts
 * and the hypervisor differently: half of what was spun is enough.
 */
#define SPUN 1000000

static int faults_with(uint64_t read_format, int group)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.read_format = read_format;
	attr.disabled = group == -1;
	return OPEN(&attr, 0, -1, group);
}

static const struct layout {
	struct abi_row about;
	uint64_t format;
	size_t words;
} layouts[] = {
	{{"read.single.layout", "value: 8 bytes"}, 0, 1},
	{{"read.single.layout read.time_enabled", "and enabled: 16"}, 1, 2},
	{{"read.single.layout read.time_running", "and running: 16"}, 2, 2},
	{{"read.single.layout", "and both times: 24"}, TIMES, 3},
	{{"read.single.layout read.id", "and id: 32"}, TIMES | PERF_FORMAT_ID, 4},
	{{"read.single.layout read.lost", "and lost: 40"}, ALL, 5},
};

/* The fields one by one: each is found where the ones before it end. */
ABI_TABLE(layouts)
{
	int fd = faults_with(row->format, -1);
	uint64_t words[5], *at = words;

	work_faults(1);
	START(fd);
	work_faults(10);
	work_spin(SPUN);
	STOP(fd);
	READ_WORDS(fd, words, row->words);
	CHECK_CMP(*at, >=, 10);
	CHECK_CMP(*at, <, 100);
	at++;
	if (row->format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		CHECK_CMP(*at++, >=, SPUN / 2);
	if (row->format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		CHECK_CMP(*at++, >=, SPUN / 2);
	if (row->format & PERF_FORMAT_ID)
		CHECK_EQ(*at++, ID(fd));
	if (row->format & PERF_FORMAT_LOST)
		CHECK_EQ(*at++, 0);
	CHECK_EQ(at - words, row->words);
}

ABI_CASE("read.group.layout read.group.nr read.group.order read.group.id read.id",
	 "three events with every field: 96 bytes in the order they joined")
{
	int fds[3];
	uint64_t words[12];

	fds[0] = faults_with(ALL | PERF_FORMAT_GROUP, -1);
	fds[1] = faults_with(ALL, fds[0]);
	fds[2] = faults_with(ALL, fds[0]);
	START(fds[0]);
	work_faults(10);
	STOP(fds[0]);
	READ_WORDS(fds[0], words, 12);
	CHECK_EQ(words[0], 3);
	CHECK_CMP(words[1], >=, words[2]);
	CHECK_CMP(words[2], >, 0);
	for (int i = 0; i < 3; i++) {
		const uint64_t *entry = words + 3 + 3 * i;

		CHECK_EQ(entry[0], words[3]); /* all counted the same */
		CHECK_CMP(entry[0], >=, 10);
		CHECK_EQ(entry[1], ID(fds[i]));
		CHECK_EQ(entry[2], 0);
	}
	CHECK(ID(fds[0]) != ID(fds[1]) && ID(fds[1]) != ID(fds[2]) && ID(fds[0]) != ID(fds[2]));
}

static const struct group_layout {
	struct abi_row about;
	uint64_t format;
	size_t words;
} group_layouts[] = {
	{{"read.group.layout", "two events, values only: 24 bytes"}, 0, 3},
	{{"read.group.layout", "with ids: 40"}, PERF_FORMAT_ID, 5},
	{{"read.group.layout", "with lost: 40"}, PERF_FORMAT_LOST, 5},
	{{"read.group.layout", "with one time: 32"}, PERF_FORMAT_TOTAL_TIME_RUNNING, 4},
	{{"read.group.layout", "with both times: 40"}, TIMES, 5},
};

ABI_TABLE(group_layouts)
{
	int leader = faults_with(row->format | PERF_FORMAT_GROUP, -1);
	uint64_t words[8];

	faults_with(0, leader);
	READ_WORDS(leader, words, row->words);
	CHECK_EQ(words[0], 2);
}

ABI_CASE("read.group.nr", "closing a member takes it out")
{
	int leader = faults_with(PERF_FORMAT_GROUP | PERF_FORMAT_ID, -1);
	int first = faults_with(0, leader), second = faults_with(0, leader);
	uint64_t words[7];

	READ_WORDS(leader, words, 7);
	CHECK_EQ(words[0], 3);
	CHECK_OK(close(first));
	READ_WORDS(leader, words, 5);
	CHECK_EQ(words[0], 2);
	CHECK_EQ(words[4], ID(second));
}

ABI_CASE("read.group read.own-format", "each descriptor reads by its own format")
{
	int leader = faults_with(PERF_FORMAT_GROUP, -1);
	int single = faults_with(PERF_FORMAT_ID, leader);
	int whole = faults_with(PERF_FORMAT_GROUP | PERF_FORMAT_ID, leader);
	uint64_t words[7];

	READ_WORDS(leader, words, 4);
	CHECK_EQ(words[0], 3);
	READ_WORDS(single, words, 2);
	CHECK_EQ(words[1], ID(single));
	READ_WORDS(whole, words, 7);
	CHECK_EQ(words[0], 3);
	CHECK_EQ(words[2], ID(leader));
	CHECK_EQ(words[6], ID(whole));
}

ABI_CASE("read.group.times", "they are the leader's, also for a member that came later")
{
	int leader = faults_with(PERF_FORMAT_GROUP | TIMES, -1), member;
	uint64_t group[5], own[3];

	START(leader);
	work_spin(5 * SPUN);
	member = faults_with(TIMES, leader);
	work_spin(SPUN);
	STOP(leader);
	READ_WORDS(leader, group, 5);
	READ_WORDS(member, own, 3);
	CHECK_CMP(group[1], >=, 6 * SPUN / 2);
	CHECK_CMP(group[1], >, own[1]);
	CHECK_CMP(own[1], >=, SPUN / 2);
}

ABI_CASE("read.time_enabled read.time_running ioctl.reset-times",
	 "they stand still while disabled, survive RESET, and running <= enabled")
{
	int fd = faults_with(TIMES, -1);
	uint64_t first[3], second[3];

	START(fd);
	work_spin(5 * SPUN);
	STOP(fd);
	READ_WORDS(fd, first, 3);
	CHECK_CMP(first[1], >=, 5 * SPUN / 2);
	CHECK_CMP(first[2], <=, first[1]);
	CHECK_CMP(first[2], >, 0);
	work_spin(SPUN);
	READ_WORDS(fd, second, 3);
	CHECK_EQ(second[1], first[1]);
	CHECK_EQ(second[2], first[2]);
	RESET(fd);
	READ_WORDS(fd, second, 3);
	CHECK_EQ(second[0], 0);
	CHECK_EQ(second[1], first[1]);
	CHECK_EQ(second[2], first[2]);
	START(fd);
	work_spin(5 * SPUN);
	READ_WORDS(fd, second, 3);
	CHECK_CMP(second[1], >=, first[1] + 5 * SPUN / 2);
}

ABI_CASE("read.lost", "0 for a counting event; rises when a full buffer drops samples")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[2], dropped;
	struct ring ring;
	int fd;

	attr.read_format = PERF_FORMAT_LOST;
	fd = OPEN_SELF(&attr);
	START(fd);
	work_faults(10);
	READ_WORDS(fd, words, 2);
	CHECK_EQ(words[1], 0);

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 1);
	START(fd);
	work_faults(1000);
	STOP(fd);
	READ_WORDS(fd, words, 2);
	CHECK_CMP(words[0], >=, 1000);
	dropped = words[1];
	CHECK_CMP(dropped, >, 0);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE) + dropped, words[0]);
}

ABI_CASE("read.value read.repeat", "reading resets nothing; totals only grow")
{
	int fd = faults_with(0, -1);
	uint64_t before = 0;

	START(fd);
	for (int i = 0; i < 10; i++) {
		uint64_t now;

		work_faults(3);
		now = VALUE(fd);
		CHECK_CMP(now, >=, before + 3);
		before = now;
	}
	STOP(fd);
	before = VALUE(fd);
	CHECK_EQ(VALUE(fd), before);
}

ABI_CASE("read.short-buffer",
	 "too short a buffer: ENOSPC, and it stays as it was; longer ones get the exact size")
{
	int fd = faults_with(TIMES, -1);
	unsigned char buffer[64];

	for (size_t size = 0; size < 24; size++) {
		memset(buffer, 0xa5, sizeof(buffer));
		CHECK_ERRNO(read(fd, buffer, size), ENOSPC);
		for (size_t i = 0; i < sizeof(buffer); i++)
			CHECK_EQ(buffer[i], 0xa5);
	}
	CHECK_EQ(read(fd, buffer, 24), 24);
	CHECK_EQ(read(fd, buffer, sizeof(buffer)), 24);
	CHECK_EQ(buffer[24], 0xa5);
}

ABI_CASE("read.bad-buffer", "a destination that cannot be written: EFAULT")
{
	void *hole = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = faults_with(0, -1);

	CHECK(hole != MAP_FAILED);
	CHECK_ERRNO(read(fd, hole, 4096), EFAULT);
}

ABI_CASE("read.scale", "an event that never lost its place has equal times: nothing to scale")
{
	int fd = faults_with(TIMES, -1);
	uint64_t words[3];

	READ_WORDS(fd, words, 3);
	CHECK_EQ(words[2], 0); /* and nothing to divide by */
	START(fd);
	work_spin(2000000);
	STOP(fd);
	READ_WORDS(fd, words, 3);
	CHECK_CMP(words[1], >, 0);
	CHECK_EQ(words[1], words[2]);
}

ABI_CASE("read.scale life.multiplex",
	 "more events than counters take turns: running < enabled, the estimate is near")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fds[32];
	unsigned int scaled = 0;
	uint64_t least = UINT64_MAX, most = 0;

	abi_need_hardware();
	attr.read_format = TIMES;
	for (int i = 0; i < 32; i++)
		fds[i] = OPEN_SELF(&attr);
	for (int i = 0; i < 32; i++)
		START(fds[i]);
	work_spin(500000000);
	for (int i = 0; i < 32; i++)
		STOP(fds[i]);
	for (int i = 0; i < 32; i++) {
		uint64_t words[3], estimate;

		READ_WORDS(fds[i], words, 3);
		CHECK_CMP(words[2], <=, words[1]);
		if (!words[2])
			continue;
		estimate = (uint64_t)((double)words[0] * (double)words[1] / (double)words[2]);
		least = estimate < least ? estimate : least;
		most = estimate > most ? estimate : most;
		scaled += words[2] < words[1];
	}
	if (!scaled)
		CANNOT("the PMU has room for 32 events at once");
	CHECK_CMP(most, <, 2 * least);
}
