/* SPDX-License-Identifier: MIT */
/*
 * Whether the kernel's breakpoints work: some virtual machines take them and forget them. In a
 * header, so that tests that link nothing of the library ask in the same way.
 */
#ifndef LIB_PROBE_BREAKPOINT_H
#define LIB_PROBE_BREAKPOINT_H

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TLY_BREAKPOINT_NEVER_HIT     "a breakpoint opens, but is never hit"
#define TLY_BREAKPOINT_NEVER_HIT_WHY "this machine or its hypervisor has no working debug registers"

enum tly_breakpoints {
	TLY_BREAKPOINTS_REFUSED, /* none can be opened to find out */
	TLY_BREAKPOINTS_HIT,
	TLY_BREAKPOINTS_FORGOTTEN, /* they open, and are never hit */
};

/* Opens and closes one on the calling thread. */
static inline enum tly_breakpoints tly_try_breakpoint(void)
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
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t hits = 0;
	ssize_t n;

	if (fd < 0)
		return TLY_BREAKPOINTS_REFUSED;
	watched = 1;
	n = read(fd, &hits, sizeof(hits));
	close(fd);
	return n == sizeof(hits) && hits == 1 ? TLY_BREAKPOINTS_HIT : TLY_BREAKPOINTS_FORGOTTEN;
}

#endif
