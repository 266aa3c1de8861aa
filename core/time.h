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

/* What the time stamp counter says, since the processor started, as a time; and that of now. */
uint64_t core_nanoseconds(uint64_t tsc);
uint64_t core_time(void);

/* When the time stamp counter stood at @tsc, a moment ago: from anywhere. That of page 0 is
 * core_time(). */
uint64_t core_clock_at(const struct core_task *task, uint64_t tsc);

/* The caller's: begins and ends a system call, or its life. */
void core_clock_start(struct core_task *task);
void core_clock_stop(struct core_task *task);

#endif
