// SPDX-License-Identifier: MIT
#include "monitor/limits.h"

#include <sys/resource.h>

#include "abi/limits.h"
#include "monitor/monitor.h"

/* False: not by all of that, and as high as it may be if it @may_be_less. */
static bool raise_limit(int resource, uint64_t ours, bool may_be_less)
{
	struct rlimit limit, wanted;

	if (getrlimit(resource, &limit))
		return false;
	wanted.rlim_cur = limits_to_kernel(limit.rlim_cur, ours);
	wanted.rlim_max = limits_to_kernel(limit.rlim_max, ours);
	if (!setrlimit(resource, &wanted))
		return true;
	if (!may_be_less)
		return false;
	wanted.rlim_max = limit.rlim_max;
	if (wanted.rlim_cur > limit.rlim_max)
		wanted.rlim_cur = limit.rlim_max;
	setrlimit(resource, &wanted);
	return false;
}

bool monitor_raise_limits(void)
{
	/* tally-rt itself: a program whose data have no room the kernel ends by SIGSEGV. */
	enum { LEAST_DATA = 4 << 20 };
	struct rlimit limit;

	if (!arena_is_there() || !raise_limit(RLIMIT_AS, LIMITS_SPACE, false))
		raise_limit(RLIMIT_AS, LIMITS_LEAST_SPACE, true);
	else
		arena_set_reserves();
	raise_limit(RLIMIT_DATA, LIMITS_DATA, true);
	return getrlimit(RLIMIT_DATA, &limit) || limit.rlim_cur >= LEAST_DATA;
}
