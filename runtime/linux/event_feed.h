/* SPDX-License-Identifier: MIT */
/*
 * What only the kernel can tell of, in the records of our events: what happens to its code
 * (attr.ksymbol, bpf_event, text_poke), and what BPF programs write (PERF_COUNT_SW_BPF_OUTPUT). An
 * event of the kernel's that the program does not see writes it down, and it is handed on
 * (event_joined.h).
 */
#ifndef RUNTIME_LINUX_EVENT_FEED_H
#define RUNTIME_LINUX_EVENT_FEED_H

#include <stdint.h>

#include "runtime/linux/syscalls.h"

/* The event of that name has just been opened. */
void event_feed(uint64_t event);

/* bpf(2), which gives programs events to write to. */
int64_t event_bpf(struct thread *thread, struct syscall *call);

#endif
