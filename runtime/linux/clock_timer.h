/* SPDX-License-Identifier: MIT */
/*
 * Clocks that are sampled: a timer brings the thread to the dispatcher when the next overflow is
 * due. It runs while translated code does and stands during system calls, which it would interrupt
 * for nothing.
 */
#ifndef RUNTIME_LINUX_CLOCK_TIMER_H
#define RUNTIME_LINUX_CLOCK_TIMER_H

struct thread;

/* The caller's: sets it to what its counters say. */
void clock_timer_follow(struct thread *thread);
void clock_timer_stop(struct thread *thread);

/* The thread ends; a child of fork has none yet. */
void clock_timer_end(struct thread *thread);

#endif
