// SPDX-License-Identifier: MIT
/*
 * How many nanoseconds a tick of the time stamp counter is. The kernel tells who may open an event:
 * its mmap page has the very numbers that the kernel computes with. Everybody else measures, for as
 * long as it takes to be right to about a hundred thousandth. Most runs open no event and need
 * neither.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "abi/fatal.h"
#include "core/core.h"
#include "monitor/monitor.h"

enum { SHIFT = 24, TRIES = 5 };
#define MEASURE_NS 2000000

struct moment {
	uint64_t tsc, ns;
};

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of several readings the one that was interrupted least. */
static struct moment look(void)
{
	struct moment best = {0};
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = __rdtsc(), ns = nanoseconds(), took = __rdtsc() - before;

		if (took >= shortest)
			continue;
		shortest = took;
		best = (struct moment){before + took / 2, ns};
	}
	return best;
}

static void ask(uint32_t *mult, uint32_t *shift)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	long size = sysconf(_SC_PAGESIZE);
	int fd = fatal_open() ? -1
			      : (int)syscall(__NR_perf_event_open, &attr, 0, -1, -1,
					     PERF_FLAG_FD_CLOEXEC);

	*mult = 0;
	if (fd < 0)
		return;
	struct perf_event_mmap_page *page = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) {
		if (page->cap_user_time && page->time_mult && page->time_shift < 32) {
			*mult = page->time_mult;
			*shift = page->time_shift;
		}
		munmap(page, (size_t)size);
	}
	close(fd);
}

static void measure(uint32_t *mult, uint32_t *shift)
{
	const struct moment begin = look();
	struct moment end = begin;
	double ratio;

	while (end.ns - begin.ns < MEASURE_NS) {
		nanosleep(&(struct timespec){0, MEASURE_NS / 2}, NULL);
		end = look();
	}
	ratio = (double)(end.ns - begin.ns) / (double)(end.tsc - begin.tsc);
	*shift = SHIFT;
	/* Slower than 4 MHz is no processor of this architecture. */
	*mult = (uint32_t)(ratio * (1 << SHIFT) + 0.5);
}

void clock_settle(void)
{
	uint32_t mult, shift;

	if (core_settings()->tsc_mult)
		return;
	ask(&mult, &shift);
	if (!mult)
		measure(&mult, &shift);
	core_set_clock(mult, shift);
}
