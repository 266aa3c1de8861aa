// SPDX-License-Identifier: MIT
/* Event types and the software events. Those of a hardware PMU are in hardware.c. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

static int open_software(uint64_t config)
{
	struct perf_event_attr attr = abi_software(config);

	return OPEN_SELF(&attr);
}

static const struct software {
	struct abi_row about;
	uint64_t config, number;
} software[] = {
	{{"config.sw.cpu_clock type.software", "0"}, PERF_COUNT_SW_CPU_CLOCK, 0},
	{{"config.sw.task_clock", "1"}, PERF_COUNT_SW_TASK_CLOCK, 1},
	{{"config.sw.page_faults", "2"}, PERF_COUNT_SW_PAGE_FAULTS, 2},
	{{"config.sw.context_switches", "3"}, PERF_COUNT_SW_CONTEXT_SWITCHES, 3},
	{{"config.sw.cpu_migrations", "4"}, PERF_COUNT_SW_CPU_MIGRATIONS, 4},
	{{"config.sw.page_faults_min", "5"}, PERF_COUNT_SW_PAGE_FAULTS_MIN, 5},
	{{"config.sw.page_faults_maj", "6"}, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 6},
	{{"config.sw.alignment_faults", "7"}, PERF_COUNT_SW_ALIGNMENT_FAULTS, 7},
	{{"config.sw.emulation_faults", "8"}, PERF_COUNT_SW_EMULATION_FAULTS, 8},
	{{"config.sw.dummy", "9"}, PERF_COUNT_SW_DUMMY, 9},
	{{"config.sw.bpf_output", "10"}, PERF_COUNT_SW_BPF_OUTPUT, 10},
	{{"config.sw.cgroup_switches", "11"}, PERF_COUNT_SW_CGROUP_SWITCHES, 11},
};

ABI_TABLE(software)
{
	CHECK_EQ(row->config, row->number);
	CHECK_EQ(VALUE(open_software(row->number)), 0);
}

static void sleep_ms(long milliseconds)
{
	const struct timespec moment = {.tv_nsec = milliseconds * 1000000};

	nanosleep(&moment, NULL);
}

static uint64_t cpu_time(void)
{
	struct timespec now;

	CHECK_OK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const struct clocked {
	struct abi_row about;
	uint64_t config;
} clocked[] = {
	{{"config.sw.task_clock", "the thread's own processor time, in nanoseconds"},
	 PERF_COUNT_SW_TASK_CLOCK},
	{{"config.sw.cpu_clock", "on a task, it advances only while the task runs"},
	 PERF_COUNT_SW_CPU_CLOCK},
};

/*
 * The window lies between two readings of the thread's clock, and contains two others. A task's
 * clock may leave out what its processor spends on the hypervisor or on interrupts: half is enough.
 */
ABI_TABLE(clocked)
{
	uint64_t outer = cpu_time(), inner, counted, before_sleep;
	int fd = open_software(row->config);

	START(fd);
	inner = cpu_time();
	work_spin(20000000);
	inner = cpu_time() - inner;
	before_sleep = VALUE(fd);
	sleep_ms(100);
	counted = VALUE(fd);
	STOP(fd);
	outer = cpu_time() - outer;
	CHECK_CMP(counted, >=, inner / 2);
	CHECK_CMP(counted, <=, 2 * outer);
	CHECK_CMP(counted - before_sleep, <, 50000000); /* half of the sleep */
}

ABI_CASE("config.sw.page_faults config.sw.page_faults_min config.sw.page_faults_maj",
	 "N fresh pages: N minor faults, hardly a major one")
{
	int all = open_software(PERF_COUNT_SW_PAGE_FAULTS);
	int minor = open_software(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	int major = open_software(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	unsigned char *map = work_map(100);

	work_touch(map, 0, 1);
	START(all);
	START(minor);
	START(major);
	work_touch(map, 1, 99);
	STOP(major);
	STOP(minor);
	STOP(all);
	CHECK_CMP(VALUE(all), >=, 99);
	CHECK_CMP(VALUE(minor), >=, 99);
	CHECK_CMP(VALUE(minor), <=, 99 + 10);
	CHECK_CMP(VALUE(major), <=, VALUE(all) - 99);
}

ABI_CASE("config.sw.page_faults config.sw.page_faults_min config.sw.page_faults_maj",
	 "all faults are the sum of both kinds")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	uint64_t words[4];
	int leader;

	attr.read_format = PERF_FORMAT_GROUP;
	leader = OPEN_SELF(&attr);
	attr.disabled = 0;
	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	OPEN(&attr, 0, -1, leader);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
	OPEN(&attr, 0, -1, leader);
	START(leader);
	work_faults(50);
	STOP(leader);
	READ_WORDS(leader, words, 4);
	CHECK_CMP(words[1], >=, 50);
	CHECK_EQ(words[1], words[2] + words[3]);
}

ABI_CASE("config.sw.page_faults_maj", "a page that has to come from a file is a major fault")
{
	static char path[] = "/var/tmp/abi-major-XXXXXX";
	int file = mkstemp(path), fd = open_software(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	struct rusage before, after;
	static char block[1 << 20];
	volatile const char *map;
	long expected;

	if (file < 0)
		CANNOT("no file in /var/tmp: %s", strerrorname_np(errno));
	unlink(path);
	memset(block, 1, sizeof(block));
	CHECK_EQ(write(file, block, sizeof(block)), sizeof(block));
	CHECK_OK(fsync(file));
	CHECK_OK(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
	map = mmap(NULL, sizeof(block), PROT_READ, MAP_PRIVATE, file, 0);
	CHECK(map != MAP_FAILED);
	CHECK_OK(madvise((void *)map, sizeof(block), MADV_RANDOM));
	CHECK_OK(getrusage(RUSAGE_SELF, &before));
	START(fd);
	for (size_t i = 0; i < sizeof(block); i += 65536)
		(void)map[i];
	STOP(fd);
	CHECK_OK(getrusage(RUSAGE_SELF, &after));
	expected = after.ru_majflt - before.ru_majflt;
	if (!expected)
		CANNOT("the file system behind /var/tmp never has to wait for a page");
	CHECK_CMP(VALUE(fd), <=, expected);
	CHECK_CMP(VALUE(fd), >, 0);
}

ABI_CASE("config.sw.cpu_migrations", "N moves between two processors count N")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_CPU_MIGRATIONS);
	int cpus[2], fd;

	abi_need_two_cpus(cpus);
	abi_need_kernel_mode();
	attr.exclude_kernel = 0;
	abi_pin(0, cpus[0]);
	fd = OPEN_SELF(&attr);
	START(fd);
	for (int i = 1; i <= 10; i++)
		abi_pin(0, cpus[i % 2]);
	STOP(fd);
	CHECK_EQ(VALUE(fd), 10);
}

static const struct never {
	struct abi_row about;
	uint64_t config;
} nevers[] = {
	{{"config.sw.alignment_faults", "always 0 on x86"}, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{{"config.sw.emulation_faults", "always 0 where nothing is emulated"},
	 PERF_COUNT_SW_EMULATION_FAULTS},
	{{"config.sw.dummy", "counts nothing"}, PERF_COUNT_SW_DUMMY},
	{{"config.sw.bpf_output", "counts nothing without a BPF program"},
	 PERF_COUNT_SW_BPF_OUTPUT},
};

ABI_TABLE(nevers)
{
	static unsigned char bytes[64];
	int fd = open_software(row->config);

	START(fd);
	work_faults(10);
	for (int i = 0; i < 16; i++)
		work_store4(bytes + i); /* mostly unaligned */
	sleep_ms(2);
	STOP(fd);
	CHECK_EQ(VALUE(fd), 0);
}

/* ---- types ---- */

ABI_CASE("type.dynamic-pmu errno.enoent", "a number that no unit has: ENOENT")
{
	static const uint32_t numbers[] = {1000, 0x7fffffff, UINT32_MAX};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct perf_event_attr attr = abi_attr(numbers[i], 0);

		CHECK_REFUSED(&attr, 0, -1, -1, 0, ENOENT);
	}
}

ABI_CASE("type.dynamic-pmu sysfs.type",
	 "the number that sysfs tells opens the time stamp counter of the msr unit")
{
	struct perf_event_attr attr;
	int type = abi_pmu_type("msr"), fd;
	uint64_t value;

	if (type < 0)
		CANNOT("no msr unit");
	CHECK_CMP(type, >=, 6);
	attr = abi_attr((uint32_t)type, 0); /* event=0x00: tsc */
	attr.exclude_kernel = 0;
	attr.exclude_hv = 0;
	abi_need_kernel_mode();
	fd = OPEN_SELF(&attr);
	START(fd);
	work_spin(1000000);
	STOP(fd);
	value = VALUE(fd);
	CHECK_CMP(value, >, 0);
	work_spin(1000000);
	CHECK_EQ(VALUE(fd), value);
	attr.sample_period = 1000; /* it cannot interrupt */
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
}

ABI_CASE("type.hw-extended", "a unit number in the high half of a software config: ENOENT")
{
	struct perf_event_attr attr = abi_software(4ULL << 32 | PERF_COUNT_SW_PAGE_FAULTS);

	CHECK_REFUSED(&attr, 0, -1, -1, 0, ENOENT);
}
