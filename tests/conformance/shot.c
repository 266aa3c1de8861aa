// SPDX-License-Identifier: MIT
#include "shot.h"

#include <linux/hw_breakpoint.h>
#include <sys/mman.h>

#include "workload.h"

uintptr_t abi_framed(void)
{
	return (uintptr_t)work_called + 4;
}

struct perf_event_attr abi_at_function(uint64_t sample_type)
{
	struct perf_event_attr attr =
		abi_breakpoint(HW_BREAKPOINT_X, (const void *)FRAMED, sizeof(long));

	attr.sample_period = 1;
	attr.sample_type = sample_type;
	return attr;
}

struct perf_event_attr abi_at_fault(uint64_t sample_type)
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_period = 1;
	attr.sample_type = sample_type;
	return attr;
}

struct shot abi_aim(const struct perf_event_attr *attr)
{
	struct shot shot = {.attr = *attr, .fd = OPEN_SELF(attr)};

	shot.ring = MAP(shot.fd, 32);
	return shot;
}

struct sample abi_fire_at_function(const struct perf_event_attr *attr)
{
	struct shot shot = abi_aim(attr);

	START(shot.fd);
	work_call_chain();
	STOP(shot.fd);
	CHECK_EQ(VALUE(shot.fd), 1);
	return SAMPLE(attr, EXPECT(&shot.ring, PERF_RECORD_SAMPLE));
}
