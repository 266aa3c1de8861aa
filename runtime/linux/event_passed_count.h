/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_EVENT_PASSED_COUNT_H
#define RUNTIME_LINUX_EVENT_PASSED_COUNT_H

struct core_count;
struct perf_event_attr;

/*
 * What the kernel's event at @fd, which leads its group or is by itself, has counted, and its
 * times; it was opened so.
 */
void event_passed_count(int fd, const struct perf_event_attr *of, int pid, int cpu,
			struct core_count *count);

#endif
