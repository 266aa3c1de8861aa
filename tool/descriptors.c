// SPDX-License-Identifier: MIT
#include "tool/descriptors.h"

void tool_raise_descriptors(struct rlimit *before)
{
	struct rlimit limit = {0};

	/* Where this fails, opening events will say what is missing. */
	getrlimit(RLIMIT_NOFILE, &limit);
	if (before)
		*before = limit;
	limit.rlim_cur = limit.rlim_max;
	tool_restore_descriptors(&limit);
}

void tool_restore_descriptors(const struct rlimit *before)
{
	if (before->rlim_max)
		setrlimit(RLIMIT_NOFILE, before);
}
