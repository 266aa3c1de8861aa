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

void monitor_raise_limits(void)
{
	raise_limit(RLIMIT_AS, LIMITS_SPACE);
	raise_limit(RLIMIT_DATA, LIMITS_DATA);
}
