// SPDX-License-Identifier: MIT
#include "tool/requests.h"

#include <time.h>

enum { WITHIN_MS = 200 };

bool tool_request_repeats(struct tool_request *last, const struct signalfd_siginfo *info)
{
	struct timespec time;
	struct tool_request request = {.number = info->ssi_signo, .sender = info->ssi_pid};
	bool repeats;

	clock_gettime(CLOCK_MONOTONIC, &time);
	request.at = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
	repeats = info->ssi_code <= 0 && last->number == request.number &&
		  last->sender == request.sender && request.at - last->at < WITHIN_MS;
	if (!repeats)
		*last = request;
	return repeats;
}
