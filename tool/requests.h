/* SPDX-License-Identifier: MIT */
#ifndef TOOL_REQUESTS_H
#define TOOL_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

/* The last request to end. Zero it at first. */
struct tool_request {
	uint32_t number, sender;
	uint64_t at; /* milliseconds */
};

/*
 * Whether the signal belongs to the request that was the last: timeout(1) sends it to a process,
 * and then to the process group of that. Nobody insists as quickly.
 */
bool tool_request_repeats(struct tool_request *last, const struct signalfd_siginfo *info);

#endif
