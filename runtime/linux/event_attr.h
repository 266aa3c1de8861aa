/* SPDX-License-Identifier: MIT */
/* The attr that a program gives, and what it may do with it. */
#ifndef RUNTIME_LINUX_EVENT_ATTR_H
#define RUNTIME_LINUX_EVENT_ATTR_H

#include <linux/perf_event.h>
#include <stdint.h>

#include "core/core.h"

union event_attr {
	struct perf_event_attr attr;
	unsigned char bytes[CORE_ATTR_SIZE];
};

/* Copies it from @from and checks it: 0, -EFAULT, -E2BIG with the size that is known written back,
 * or what core_attr_check() says. */
int64_t event_attr_in(union event_attr *attr, uint64_t from, const struct core_rights *rights);

/* What the calling thread may do; attaching to other tasks is for the caller to find out. */
void event_rights(struct core_rights *rights);

#endif
