/* SPDX-License-Identifier: MIT */
/* How much memory the command and its children may have together. */
#ifndef MONITOR_MEMORY_LIMIT_H
#define MONITOR_MEMORY_LIMIT_H

#include <stdint.h>

/* What the machine has, or the least that one of our control groups may have: cgroups(7). */
uint64_t memory_limit(void);

/* The latter, where @groups is what /proc/self/cgroup has, and the groups lie below @root. */
uint64_t memory_limit_of_groups(const char *groups, const char *root);

#endif
