/* SPDX-License-Identifier: MIT */
/* Whether the kernel can say what breakpoints do: some virtual machines take them and forget them. */
#ifndef TESTS_BREAKPOINTS_H
#define TESTS_BREAKPOINTS_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BREAKPOINTS_FORGOTTEN "breakpoints are never hit, as in some virtual machines"

/* True, too, where none can be opened. */
static inline bool breakpoints_forgotten(void)
{
	static volatile long watched;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = HW_BREAKPOINT_LEN_8,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t hits = 0;

	if (fd < 0)
		return true;
	for (int i = 0; i < 3; i++)
		watched++;
	if (read(fd, &hits, sizeof(hits)) != sizeof(hits))
		hits = 0;
	close(fd);
	return hits != 3;
}

#endif
