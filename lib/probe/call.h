/* SPDX-License-Identifier: MIT */
/* perf_event_open(2), where a filter may not let who calls it live. */
#ifndef LIB_PROBE_CALL_H
#define LIB_PROBE_CALL_H

#include <stdbool.h>
#include <sys/types.h>

/* As the system call; EPERM where it would end the process. */
long tly_perf_event_open(const void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);

/* Whether that is where this process is. */
bool tly_call_is_fatal(void);

#endif
