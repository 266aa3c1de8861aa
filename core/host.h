/* SPDX-License-Identifier: MIT */
/*
 * What the core asks of who embeds it: tally-rt, the monitor, or a test. It makes no system call
 * of its own.
 *
 * "The caller" is the thread that is inside the core now. All return at once.
 */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kinds.h"

struct core_task;
struct core_event;

/* ---- times ---- */

/* The processor's time stamp counter. core/time.c turns it into nanoseconds. */
uint64_t core_host_tsc(void);

/* A clock of clock_gettime(2), ns: for records of events with use_clockid. */
uint64_t core_host_clock(int clockid);

/* ---- tasks ---- */

/* The processor that the caller runs on. */
int core_host_cpu(void);

/* Brings the software counters in @kinds of @task up to date: exactly if it is the caller's own, as
 * well as it can be seen from outside otherwise. */
void core_host_software(struct core_task *task, uint64_t kinds);

/*
 * @task->changed was set by somebody else: brings its thread out of translated code soon, without
 * the program noticing.
 */
void core_host_kick(struct core_task *task);

/* Whether a thread of that number exists: of who took a lock and has not given it back. */
bool core_host_alive(int32_t tid);

void core_host_pause(void); /* while waiting for a lock: let others run */

/* The caller's task, or NULL: the monitor has none. */
struct core_task *core_host_task(void);
int32_t core_host_tid(void);

/* ---- descriptors and signals ---- */

/* Makes all who poll @event see @revents (POLLIN, POLLHUP), until it is consumed. */
void core_host_wake(struct core_event *event, short revents);

/* Sends the signal of F_SETSIG/O_ASYNC that @event's owner asked for; @band is POLL_IN or POLL_HUP.
 */
void core_host_signal(struct core_event *event, int band);

/* SIGTRAP with si_code TRAP_PERF to the caller, before it goes on (attr.sigtrap). */
void core_host_sigtrap(const struct core_event *event, uint64_t address);

/* ---- the program, when the caller samples itself ---- */

/* The caller's registers in the order of <asm/perf_regs.h>, PERF_REG_X86_64_MAX of them. */
void core_host_registers(uint64_t regs[]);

/* Copies from the caller's memory; returns how many bytes could be read. */
size_t core_host_read(void *to, uint64_t from, size_t size);

/* Call chain of the caller, innermost first, without the instruction pointer; how many. */
size_t core_host_callchain(uint64_t *to, size_t max);

/* The last branches, newest first, as struct perf_branch_entry; how many. */
struct perf_branch_entry;
size_t core_host_branches(struct perf_branch_entry *to, size_t max);

#endif
