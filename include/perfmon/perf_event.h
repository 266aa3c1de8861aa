/* SPDX-License-Identifier: MIT */
#ifndef PERFMON_PERF_EVENT_H
#define PERFMON_PERF_EVENT_H

/* The kernel's header, and the system call that no C library wraps. */

#include <linux/perf_event.h>
#include <inttypes.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#pragma GCC visibility push(default)

#ifdef __cplusplus
extern "C" {
#endif

static inline int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
				  unsigned long flags)
{
	return (int)syscall(__NR_perf_event_open, attr, pid, cpu, group_fd, flags);
}

#ifdef __cplusplus
}
#endif

#pragma GCC visibility pop

#endif
