// SPDX-License-Identifier: MIT
/*
 * threads THREADS ROUNDS: each thread starts and stops a group of its own around a region, so many
 * times, and prints the instructions and branches of all its rounds. Nobody changes what another
 * one counts, so these are equal, and multiples of ROUNDS.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "region.h"

enum { MOST_THREADS = 16, TURNS = 10 };

static long rounds;

static int open_event(uint64_t config, int group)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.read_format = PERF_FORMAT_GROUP,
		.disabled = group < 0,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);

	if (fd < 0) {
		perror("perf_event_open");
		exit(1);
	}
	return fd;
}

static void measure(int group)
{
	ioctl(group, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	region(TURNS);
	ioctl(group, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

static void *thread(void *found)
{
	uint64_t *counts = found;
	int group = open_event(PERF_COUNT_HW_INSTRUCTIONS, -1);

	open_event(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, group);
	measure(group); /* the first time functions are looked up */
	ioctl(group, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	for (long i = 0; i < rounds; i++)
		measure(group);
	if (read(group, counts, 3 * sizeof(*counts)) < 0)
		exit(1);
	return NULL;
}

int main(int argc, char **argv)
{
	static uint64_t counts[MOST_THREADS][3]; /* their number, and the counts */
	pthread_t threads[MOST_THREADS];
	long nr = argc > 2 ? atol(argv[1]) : 0;

	if (nr < 1 || nr > MOST_THREADS)
		return 2;
	rounds = atol(argv[2]);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, thread, counts[i]))
			return 1;
	for (long i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		printf("%llu %llu\n", (unsigned long long)counts[i][1],
		       (unsigned long long)counts[i][2]);
	}
	return 0;
}
