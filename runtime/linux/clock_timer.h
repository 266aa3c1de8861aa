/* SPDX-License-Identifier: MIT */
/*
 * Clocks that are sampled: a timer brings the thread to the dispatcher when the next overflow is
 * due. It runs while translated code does and stands during system calls, which it would interrupt
 * for nothing.
 *
 * To look costs processor time, and so does a handler of the overflow that is found: where that is
 * longer than the period, the next overflow is there before the program has gone on, and it never
 * would. So between two looks it has at least as much time to itself, as the kernel's own timers
 * give it 10 us.
 */
#ifndef RUNTIME_LINUX_CLOCK_TIMER_H
#define RUNTIME_LINUX_CLOCK_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* The caller's: sets it to what its counters say. */
void clock_timer_follow(struct thread *thread);
void clock_timer_stop(struct thread *thread);

/* Whether the caller, who has had @now of processor time, is to look at its clocks. */
bool clock_timer_looks(struct thread *thread, uint64_t now);

/* The thread ends; a child of fork has none yet. */
void clock_timer_end(struct thread *thread);

#endif
