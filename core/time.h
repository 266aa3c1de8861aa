/* SPDX-License-Identifier: MIT */
/*
 * Times, in nanoseconds, from the processor's time stamp counter: no system call.
 *
 * A task's clock says how long its thread has run. It stands while the thread is in a system call
 * of the program that the kernel makes; that the kernel lets others run in between is not seen.
 */
#ifndef CORE_TIME_H
#define CORE_TIME_H

#include <stdint.h>

#include "core/task.h"

/* Since the processor started. */
uint64_t core_time(void);

/* From anywhere. That of page 0 is core_time(). */
uint64_t core_clock(const struct core_task *task);
/* The same; @time: core_time() at that very moment. */
uint64_t core_clock_and_time(const struct core_task *task, uint64_t *time);

/* The caller's: begins and ends a system call, or its life. */
void core_clock_start(struct core_task *task);
void core_clock_stop(struct core_task *task);

#endif
