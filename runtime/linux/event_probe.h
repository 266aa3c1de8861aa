/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_EVENT_PROBE_H
#define RUNTIME_LINUX_EVENT_PROBE_H

#include <stdint.h>

struct core_file;
struct perf_event_attr;

/* The file of a uprobe, whose path is the program's: 0, or the errno value that the kernel has for
 * what is wrong with it. */
int64_t event_probe_find(const struct perf_event_attr *attr, struct core_file *to);

/* Likewise of one whose file is known (traced_probes.h). */
int64_t event_probe_check(const struct perf_event_attr *attr, const struct core_file *file);

#endif
