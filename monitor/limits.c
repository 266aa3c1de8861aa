// SPDX-License-Identifier: MIT
#include "monitor/limits.h"

#include <sys/resource.h>

#include "abi/limits.h"

static void raise_limit(int resource, uint64_t ours)
{
	struct rlimit limit, wanted;

	if (getrlimit(resource, &limit))
		return;
	wanted.rlim_cur = limits_to_kernel(limit.rlim_cur, ours);
	wanted.rlim_max = limits_to_kernel(limit.rlim_max, ours);
	if (!setrlimit(resource, &wanted))
		return;
	wanted.rlim_max = limit.rlim_max;
	if (wanted.rlim_cur > limit.rlim_max)
		wanted.rlim_cur = limit.rlim_max;
	setrlimit(resource, &wanted);
}

bool monitor_raise_limits(void)
{
	/* tally-rt itself: a program whose data have no room the kernel ends by SIGSEGV. */
	enum { LEAST_DATA = 4 << 20 };
	struct rlimit limit;

	raise_limit(RLIMIT_AS, LIMITS_SPACE);
	raise_limit(RLIMIT_DATA, LIMITS_DATA);
	return getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur >= LEAST_DATA;
}
