/* SPDX-License-Identifier: MIT */
/*
 * --cpu-model=host: the caches and TLBs of the processor below, as cpuid tells of them and as far
 * as the model can have them (abi/machine.h). Pipeline and latencies stay the reference machine's:
 * no instruction tells them.
 */
#ifndef MONITOR_MACHINE_H
#define MONITOR_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "abi/machine.h"

struct cpuid {
	uint32_t a, b, c, d;
};

/* What the instruction answers; zeros for a leaf that there is not. */
typedef struct cpuid cpuid_answers(uint32_t leaf, uint32_t subleaf);

struct cpuid machine_cpuid(uint32_t leaf, uint32_t subleaf);

/*
 * Returns what is valid whatever @ask answers. @rounded: what differs from what the processor has,
 * and what it does not tell; empty if nothing.
 */
struct machine machine_of_host(cpuid_answers *ask, char *rounded, size_t size);

#endif
