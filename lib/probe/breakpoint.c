// SPDX-License-Identifier: MIT
#include "lib/probe/breakpoint.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <unistd.h>

#include <tally/attr.h>

bool tly_breakpoints_are_hit(void)
{
	volatile uint64_t watched = 0;
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = HW_BREAKPOINT_LEN_8,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = tally_attr_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, NULL);
	uint64_t count = 0;
	ssize_t n;

	if (fd < 0)
		return true;
	watched = 1;
	n = read(fd, &count, sizeof(count));
	close(fd);
	return n == sizeof(count) && count == 1;
}
