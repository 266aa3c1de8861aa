/* SPDX-License-Identifier: MIT */
/*
 * Where an event's number comes from: one ioctl(2) on its descriptor that the kernel does not have.
 * It answers ENOTTY; what counts in user mode says how.
 */
#ifndef ABI_SOURCE_H
#define ABI_SOURCE_H

#include <linux/ioctl.h>
#include <stdint.h>

/* What the uint32_t becomes. */
enum abi_source {
	ABI_SOURCE_EXACT = 1, /* counted */
	ABI_SOURCE_MODEL = 2, /* computed by a model of a machine */
};

/* perf_event_open(2)'s own letter, at a number far from its own. */
#define ABI_IOC_SOURCE _IOR('$', 0xc0, uint32_t)

/*
 * Numbers (PERF_EVENT_IOC_ID, PERF_SAMPLE_ID) of events of user mode begin where the kernel's do
 * not come: a program may have events of both and tell their samples apart, and recordings tell who
 * counted.
 */
#define ABI_FIRST_ID (1UL << 40)

#endif
