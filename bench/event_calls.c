/* SPDX-License-Identifier: MIT */
/*
 * What the calls on one's own events take within `tally run`: nanoseconds of processor time, the
 * median of many goes, as a machine is often disturbed and never sped up.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define EVENTS 4
#define GOES   101
#define TIMES  20000

static int group[EVENTS];
static const struct perf_event_mmap_page *page;
static volatile uint64_t sink;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "event-calls: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_group(void)
{
	static const uint64_t configs[EVENTS] = {
		PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
		PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_INSTRUCTIONS};

	for (int i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_HARDWARE,
			.size = sizeof(attr),
			.config = configs[i],
			.disabled = !i,
			.exclude_kernel = 1,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
				       PERF_FORMAT_TOTAL_TIME_ENABLED |
				       PERF_FORMAT_TOTAL_TIME_RUNNING,
		};

		group[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, i ? group[0] : -1, 0);
		need(group[i] >= 0, "perf_event_open");
	}
}

static void empty_region(void)
{
	ioctl(group[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	ioctl(group[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

static void all_by_prctl(void)
{
	prctl(PR_TASK_PERF_EVENTS_ENABLE);
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
}

static void read_group(void)
{
	uint64_t words[3 + 2 * EVENTS];

	if (read(group[0], words, sizeof(words)) == sizeof(words))
		sink += words[3];
}

/* As the manual page has it. */
static void rdpmc(void)
{
	uint32_t sequence, index;
	uint64_t count;

	do {
		sequence = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		index = page->index;
		count = (uint64_t)page->offset;
		if (page->cap_user_rdpmc && index) {
			uint32_t unused = 64 - page->pmc_width;

			count += (uint64_t)((int64_t)(__rdpmc((int)index - 1) << unused) >> unused);
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != sequence);
	sink += count;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* @bar: 0 for none. */
static void row(const char *name, int bar, void what(void))
{
	double goes[GOES];

	for (int i = 0; i < GOES; i++) {
		double start = now();

		for (int j = 0; j < TIMES; j++)
			what();
		goes[i] = (now() - start) / TIMES;
	}
	qsort(goes, GOES, sizeof(*goes), by_value);
	printf("%-52s %10.0f", name, goes[GOES / 2]);
	if (bar)
		printf("   %d", bar);
	putchar('\n');
}

int main(void)
{
	void *ring;

	open_group();
	row("enable and disable a group of 4, ioctl(2), ns", 300, empty_region);
	row("enable and disable all 4, prctl(2), ns", 0, all_by_prctl);
	ioctl(group[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	row("read a group of 4, read(2), ns", 500, read_group);
	ring = mmap(NULL, (size_t)getpagesize(), PROT_READ, MAP_SHARED, group[0], 0);
	need(ring != MAP_FAILED, "mmap");
	page = ring;
	need(page->cap_user_rdpmc && page->index, "rdpmc");
	row("read one, rdpmc, ns", 60, rdpmc);
	return 0;
}
