/* SPDX-License-Identifier: MIT */
/* For tests of groups of tracepoints, which the kernel alone counts, and breakpoints, which in
 * the run it does not: what happens to be counted, and the events of it. */
#ifndef TESTS_RUN_KEPT_CASE_H
#define TESTS_RUN_KEPT_CASE_H

#include <linux/perf_event.h>
#include <stdint.h>

/* Where the breakpoint is. */
void place(void);
/* Calls that neither C library nor runtime make. */
void call(int times);

/* They count, no more. */
struct perf_event_attr place_breakpoint(void);
struct perf_event_attr call_tracepoint(void);

/* By its name, as "sched/sched_switch"; or the end of the case where there is none. */
uint64_t tracepoint_number(const char *name);

/* Linux 6.18 lets who comes to a running group of another unit, or is switched on there, count
 * from the next time on that its task gets the processor. */
void settle(void);

/* A BPF program for tracepoints that returns @result, as a descriptor; or the end of the case. */
int load_program(int result);

#endif
