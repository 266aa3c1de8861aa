// SPDX-License-Identifier: MIT
/*
 * A group of four software events read through libtally and by bare read(2), in turn. Prints one
 * line of `make bench`: nanoseconds a read of each, and the median of the ratios pair by pair.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tally/counter.h>

#define EVENTS 4
#define PAIRS  101
#define READS  20000

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* The whole group by read(2), and each value used: what a careful program does by hand. */
static double bare(int fd, uint64_t *sink)
{
	double start = now();

	for (int i = 0; i < READS; i++) {
		uint64_t words[3 + EVENTS * 2];

		if (read(fd, words, sizeof(words)) != sizeof(words))
			exit(1);
		for (int j = 0; j < EVENTS; j++)
			*sink += words[3 + 2 * j];
	}
	return (now() - start) / READS;
}

static double ours(struct tally_counter *leader, uint64_t *sink)
{
	double start = now();

	for (int i = 0; i < READS; i++) {
		struct tally_value values[EVENTS];

		if (tally_group_read(leader, values, EVENTS) != EVENTS)
			exit(1);
		for (int j = 0; j < EVENTS; j++)
			*sink += values[j].scaled;
	}
	return (now() - start) / READS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t nr)
{
	qsort(values, nr, sizeof(*values), by_value);
	return values[nr / 2];
}

int main(void)
{
	static const uint64_t configs[EVENTS] = {
		PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_CONTEXT_SWITCHES,
		PERF_COUNT_SW_CPU_MIGRATIONS};
	double a[PAIRS], b[PAIRS], ratio[PAIRS];
	struct tally_counter *leader = NULL, *counter;
	struct tally_error err;
	uint64_t sink = 0;

	for (int i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_SOFTWARE,
			.size = sizeof(attr),
			.config = configs[i],
			.exclude_kernel = geteuid() != 0,
			.exclude_hv = 1,
			.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
				       PERF_FORMAT_TOTAL_TIME_ENABLED |
				       PERF_FORMAT_TOTAL_TIME_RUNNING,
		};

		if (tally_counter_open(&attr, 0, -1, leader, 0, &counter, &err)) {
			fprintf(stderr, "%s\n%s\n", err.what, err.remedy);
			return 1;
		}
		leader = leader ? leader : counter;
	}
	for (int i = -1; i < PAIRS; i++) {
		double x, y;

		/* Who goes first alternates. */
		if (i % 2) {
			x = ours(leader, &sink);
			y = bare(tally_counter_fd(leader), &sink);
		} else {
			y = bare(tally_counter_fd(leader), &sink);
			x = ours(leader, &sink);
		}
		if (i < 0)
			continue;
		a[i] = x;
		b[i] = y;
		ratio[i] = x / y;
	}
	printf("%-44s %10.4g %10.4g %8.3f   %s\n", "group of 4 events against read(2), ns",
	       median(a, PAIRS), median(b, PAIRS), median(ratio, PAIRS), "<= 1.05");
	return sink == 0;
}
