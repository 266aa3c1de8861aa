// SPDX-License-Identifier: MIT
/* One sample at a known place. */
#ifndef CONFORMANCE_SHOT_H
#define CONFORMANCE_SHOT_H

#include "conformance.h"

/* In work_called(), behind its prologue: the frame is complete, and bp equals sp. */
#define FRAMED abi_framed()
uintptr_t abi_framed(void);

/* Bits of the x86 register numbering. */
enum { REG_BP = 6, REG_SP = 7, REG_IP = 8 };
#define REGS (1ULL << REG_BP | 1ULL << REG_SP | 1ULL << REG_IP)

/* A sample each time that FRAMED is executed; a sample for each fault. */
struct perf_event_attr abi_at_function(uint64_t sample_type);
struct perf_event_attr abi_at_fault(uint64_t sample_type);

/* An open event with its buffer. */
struct shot {
	struct perf_event_attr attr;
	struct ring ring;
	int fd;
};

struct shot abi_aim(const struct perf_event_attr *attr);

/* Runs through work_outer(), work_middle() and work_called() once; the one sample of that. */
struct sample abi_fire_at_function(const struct perf_event_attr *attr);

#endif
