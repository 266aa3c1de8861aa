// SPDX-License-Identifier: MIT
/* Reading a counter, and the time, in user space through the control page. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

#define TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

static uint64_t rdpmc(uint32_t counter)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
	return low | (uint64_t)high << 32;
}

static uint64_t rdtsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
	return low | (uint64_t)high << 32;
}

static void barrier(void)
{
	__asm__ volatile("" : : : "memory");
}

static volatile struct perf_event_mmap_page *instructions(int *fd)
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	abi_need_hardware();
	attr.read_format = TIMES;
	*fd = OPEN_SELF(&attr);
	return MAP(*fd, 1).page;
}

/* The documented protocol; false when the counter has to be read by read(2). */
static bool count_in_user_space(volatile struct perf_event_mmap_page *page, uint64_t *count)
{
	uint32_t lock, index;

	do {
		lock = page->lock;
		barrier();
		index = page->index;
		*count = (uint64_t)page->offset;
		if (!index || !page->cap_user_rdpmc)
			return false;
		{
			unsigned int unused = 64 - page->pmc_width;

			*count += (uint64_t)((int64_t)(rdpmc(index - 1) << unused) >> unused);
		}
		barrier();
	} while (page->lock != lock);
	return true;
}

ABI_CASE("rdpmc.page rdpmc.formula mmap.index mmap.pmc_width mmap.offset mmap.seqlock",
	 "the formula lies between two reads around it, and equals read once stopped")
{
	volatile struct perf_event_mmap_page *page;
	uint64_t before[3], after[3], count;
	int fd;

	page = instructions(&fd);
	START(fd);
	work_loop(1000);
	if (!page->cap_user_rdpmc)
		CANNOT("direct reads are off");
	CHECK_CMP(page->pmc_width, >, 0);
	CHECK_CMP(page->pmc_width, <=, 64);
	for (int i = 0; i < 1000; i++) {
		READ_WORDS(fd, before, 3);
		if (!count_in_user_space(page, &count))
			FAIL("index 0 although the event is running alone");
		READ_WORDS(fd, after, 3);
		CHECK_CMP(count, >, before[0]);
		CHECK_CMP(count, <, after[0]);
	}
	STOP(fd);
	READ_WORDS(fd, after, 3);
	CHECK_EQ(page->index, 0);
	CHECK_EQ(page->offset, after[0]);
}

ABI_CASE("rdpmc.detect sysfs.rdpmc mmap.cap_user_rdpmc",
	 "the capability follows the unit's rdpmc file")
{
	volatile struct perf_event_mmap_page *page;
	char line[32];
	int fd;

	page = instructions(&fd);
	if (abi_line("/sys/bus/event_source/devices/cpu/rdpmc", line, sizeof(line)))
		CANNOT("no rdpmc file");
	START(fd);
	CHECK_EQ(page->cap_user_rdpmc, line[0] != '0');
	CHECK_EQ(page->cap_bit0, 0);
}

static void read_without_event(void *arg)
{
	(void)arg;
	rdpmc(0);
}

ABI_CASE("rdpmc.active-event",
	 "a process without a mapped event dies by SIGSEGV, unless the file says 2")
{
	char line[32];
	int status;
	pid_t pid;

	abi_need_hardware();
	if (abi_line("/sys/bus/event_source/devices/cpu/rdpmc", line, sizeof(line)))
		CANNOT("no rdpmc file");
	pid = SPAWN(read_without_event, NULL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (line[0] == '2')
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	else
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* ---- time ---- */

static int clocked(uint64_t sample_type)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.read_format = TIMES;
	attr.sample_type = sample_type;
	attr.sample_period = 1;
	return OPEN_SELF(&attr);
}

static uint64_t convert(volatile struct perf_event_mmap_page *page, uint64_t cycles)
{
	uint64_t quotient, remainder;

	if (page->cap_user_time_short)
		cycles = page->time_cycles + ((cycles - page->time_cycles) & page->time_mask);
	quotient = cycles >> page->time_shift;
	remainder = cycles & (((uint64_t)1 << page->time_shift) - 1);
	return quotient * page->time_mult + ((remainder * page->time_mult) >> page->time_shift);
}

ABI_CASE("mmap.cap_user_time mmap.time_conversion mmap.cap_user_time_short mmap.time_enabled",
	 "cycles converted to enabled time lie between two reads around them")
{
	volatile struct perf_event_mmap_page *page;
	uint64_t before[3], after[3], enabled;
	struct ring ring;
	int fd = clocked(0);

	ring = MAP(fd, 1);
	page = ring.page;
	START(fd);
	if (!page->cap_user_time) {
		CHECK_EQ(page->cap_user_time_zero, 0);
		CHECK_EQ(page->cap_user_time_short, 0);
		CANNOT("the clock is not read from the time stamp counter");
	}
	for (int i = 0; i < 100; i++) {
		uint32_t lock;

		READ_WORDS(fd, before, 3);
		do {
			lock = page->lock;
			barrier();
			enabled = page->time_enabled + page->time_offset + convert(page, rdtsc());
			barrier();
		} while (page->lock != lock);
		READ_WORDS(fd, after, 3);
		CHECK_CMP(enabled + 1000, >=, before[1]);
		CHECK_CMP(enabled, <=, after[1] + 1000);
	}
}

ABI_CASE("mmap.cap_user_time_zero mmap.time_zero",
	 "the stamp of a sample lies between the cycles around it")
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_TIME};
	volatile struct perf_event_mmap_page *page;
	uint64_t before, after, time;
	struct ring ring;
	int fd = clocked(attr.sample_type);

	ring = MAP(fd, 1);
	page = ring.page;
	START(fd);
	if (!page->cap_user_time_zero)
		CANNOT("the clock is not read from the time stamp counter");
	before = page->time_zero + convert(page, rdtsc());
	work_faults(1);
	after = page->time_zero + convert(page, rdtsc());
	STOP(fd);
	time = SAMPLE(&attr, EXPECT(&ring, PERF_RECORD_SAMPLE)).time;
	CHECK_CMP(time + 1000, >=, before);
	CHECK_CMP(time, <=, after + 1000);
}

ABI_CASE("mmap.time_scaling",
	 "count by enabled over running, split so that it cannot overflow, agrees with read")
{
	volatile struct perf_event_mmap_page *page;
	uint64_t words[3], count, quotient, remainder, scaled, expected;
	int fd, other;

	page = instructions(&fd);
	for (int i = 0; i < 31; i++) {
		instructions(&other);
		START(other);
	}
	START(fd);
	work_spin(300000000);
	STOP(fd);
	READ_WORDS(fd, words, 3);
	if (words[1] == words[2])
		CANNOT("the PMU has room for 32 events at once");
	count = (uint64_t)page->offset;
	quotient = count / page->time_running;
	remainder = count % page->time_running;
	scaled =
		quotient * page->time_enabled + remainder * page->time_enabled / page->time_running;
	expected = (uint64_t)((double)words[0] * (double)words[1] / (double)words[2]);
	CHECK_CMP(scaled, >=, expected - expected / 100);
	CHECK_CMP(scaled, <=, expected + expected / 100);
}
