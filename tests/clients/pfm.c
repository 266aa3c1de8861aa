// SPDX-License-Identifier: MIT
/*
 * pfm TURNS EVENT...: encodes the events by libpfm4, counts them as a group around region() and
 * around twice as much, and prints each with the difference.
 */
#include <linux/perf_event.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "region.h"

enum { MOST = 16 };

static int open_event(const char *name, int group)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	pfm_perf_encode_arg_t arg = {.attr = &attr, .size = sizeof(arg)};
	int err = pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg);

	if (err != PFM_SUCCESS) {
		fprintf(stderr, "pfm: %s: %s\n", name, pfm_strerror(err));
		exit(1);
	}
	attr.read_format = PERF_FORMAT_GROUP;
	attr.disabled = group < 0;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);
}

static void __attribute__((noinline)) count(int leader, uint64_t turns, uint64_t *values)
{
	ioctl(leader, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
	ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	region(turns);
	ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	if (read(leader, values, (1 + MOST) * sizeof(*values)) < 0)
		exit(1);
}

int main(int argc, char **argv)
{
	uint64_t turns = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	uint64_t once[1 + MOST], twice[1 + MOST];
	int leader = -1, nr = argc - 2;

	if (nr < 1 || nr > MOST || pfm_initialize() != PFM_SUCCESS)
		return 2;
	for (int i = 0; i < nr; i++) {
		int fd = open_event(argv[2 + i], leader);

		if (fd < 0) {
			perror(argv[2 + i]);
			return 1;
		}
		if (leader < 0)
			leader = fd;
	}
	count(leader, turns, once); /* the first time functions are looked up */
	count(leader, turns, once);
	count(leader, 2 * turns, twice);
	for (int i = 0; i < nr; i++)
		printf("%s %llu\n", argv[2 + i], (unsigned long long)(twice[1 + i] - once[1 + i]));
	return 0;
}
