// SPDX-License-Identifier: MIT
#include "lib/probe/call.h"

#include "abi/fatal.h"

bool tly_call_is_fatal(void)
{
	return fatal_open();
}

long tly_perf_event_open(const void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	if (tly_call_is_fatal()) {
		errno = EPERM;
		return -1;
	}
	return syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);
}
