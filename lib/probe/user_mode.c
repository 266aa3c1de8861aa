// SPDX-License-Identifier: MIT
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tally/attr.h>
#include <tally/probe.h>

#include "abi/source.h"

bool tally_user_mode(void)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = tally_attr_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, NULL);
	uint32_t source;
	bool answered = fd >= 0 && !ioctl(fd, ABI_IOC_SOURCE, &source);

	if (fd >= 0)
		close(fd);
	return answered;
}
