/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_EVENT_HOST_H
#define RUNTIME_LINUX_EVENT_HOST_H

#include <stdint.h>

struct regs;

/* In the order of <asm/perf_regs.h>. */
void event_registers(uint64_t regs[], const struct regs *from);

#endif
