/* SPDX-License-Identifier: MIT */
/*
 * What the core asks of who embeds it: tally-rt, the monitor, or a test. It makes no system call
 * of its own.
 *
 * "The caller" is the thread that is inside the core now, mostly with locks. All return at once but
 * those that are called by who waits for one.
 */
#ifndef CORE_HOST_H
#define CORE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kinds.h"

struct core_task;
struct core_event;

/*
 * Sees to it that the whole arena is attached, of which a process that has no event yet has mapped
 * the threads alone: somebody else may just have attached events to its tasks. False: it cannot be.
 */
bool core_host_whole(void);

/* ---- times ---- */

/* The processor's time stamp counter. core/time.c turns it into nanoseconds. */
uint64_t core_host_tsc(void);

/* A clock of clock_gettime(2), ns: for records of events with use_clockid. */
uint64_t core_host_clock(int clockid);

/* Nanoseconds that the caller has run, by the kernel's account: it takes a system call. */
uint64_t core_host_run_time(void);

/* ---- tasks ---- */

/* The processor that the caller runs on. */
int core_host_cpu(void);

/* Brings the software counters in @kinds of @task up to date: exactly if it is the caller's own, as
 * well as it can be seen from outside otherwise. */
void core_host_software(struct core_task *task, uint64_t kinds);

/*
 * core_task_change(@task), by somebody else: brings its thread out of translated code soon, without
 * the program noticing.
 */
void core_host_kick(struct core_task *task);

/* The same, and waits for it, but not for long. False: it is still inside, as it gets no
 * processor. */
bool core_host_still(struct core_task *task);

/*
 * A number of the caller for locks, never 0, that nobody else in the tree has or will have soon:
 * thread numbers are not like that, where there are name spaces. Whether who has that number is
 * still there, and will give back what it took.
 */
uint32_t core_host_owner(void);
bool core_host_owner_alive(uint32_t owner);

/* Whether @task's thread is still there, or about to come. */
bool core_host_alive(const struct core_task *task);

/* The caller waits for a lock of @owner's, and has done so for some ms: if its process is stopped,
 * that is to be helped. */
void core_host_held_up(uint32_t owner);

/* While waiting for a lock, the @turn-th time: let others run. Longer and longer: who has it shall
 * get the processor, of those that want it there may be many. */
void core_host_pause(unsigned int turn);

/* The caller's task, or NULL: the monitor has none. */
struct core_task *core_host_task(void);

/* Whether @task is in the cgroup of that number, or in one below it. */
bool core_host_in_cgroup(const struct core_task *task, uint64_t cgroup);

/* Gives @size bytes of the arena at @offset back to the system: they read as zeros from now on. */
void core_host_discard(uint64_t offset, uint64_t size);

/* ---- what the kernel counts ---- */

/*
 * Events of the kernel's that count for ours (core_event.is_kept) are kept by somebody who is there
 * as long as ours are. He does @what to that of @event, by name, or to those of its group, and
 * writes down what they have counted (core_event.kept). Waits for him, so without locks. @event 0:
 * of all. False: he is gone.
 */
enum core_kept {
	CORE_KEPT_READ,
	CORE_KEPT_SWITCH, /* to be on or off as ours are */
	CORE_KEPT_RESET,
	CORE_KEPT_GONE, /* it was kept, or led what is, and has ended with its last mapping */
};
bool core_host_kept(uint64_t event, bool group, enum core_kept what);

/* ---- descriptors and signals ---- */

/* Makes all who poll @event look again, by core_poll(): @revents (POLLIN, POLLHUP) is there. */
void core_host_wake(struct core_event *event, short revents);

/* Some group waits for counters now: core_rotate() is to be called until core_crowded() is false.
 * False: it will not be, ask again. */
bool core_host_crowded(void);

/* Sends the signal of F_SETSIG/O_ASYNC that @event's owner asked for; @band is POLL_IN or POLL_HUP.
 */
void core_host_signal(struct core_event *event, int band);

/* SIGTRAP with si_code TRAP_PERF to the caller, before it goes on (attr.sigtrap). */
void core_host_sigtrap(const struct core_event *event, uint64_t address);

/* ---- the program, when the caller samples itself ---- */

/* The caller's registers in the order of <asm/perf_regs.h>, PERF_REG_X86_64_MAX of them. */
void core_host_registers(uint64_t regs[]);

/* What the program has done between a cause and where it stands. */
enum core_since {
	CORE_SINCE_NOTHING,  /* gone on: it is in the same function, or in one that this has called
			      */
	CORE_SINCE_RETURNED, /* left the cause's function */
	CORE_SINCE_MORE,     /* nobody knows */
};

/*
 * The instruction that brought the counter of @kind, a hardware kind, to where an overflow is due:
 * the caller stands behind it. False if it is not known. What is not known of it stays as it is in
 * @cause. Where the caller's registers are known as they were before it, @regs, which are those of
 * now, become them. With @access what it accessed is wanted, too, where that takes time to find.
 */
struct core_cause {
	uint64_t ip;
	uint64_t address; /* that it accessed; 0: none, or not known */
	uint64_t source;  /* union perf_mem_data_src */
	uint32_t latency; /* cycles of the model; 0: not known */
	uint8_t since;	  /* enum core_since */
};
bool core_host_cause(enum core_kind kind, bool access, struct core_cause *cause, uint64_t regs[]);

/* Where the @number-th page fault of the caller was, of a kind of them: false if nobody knows. */
bool core_host_fault(enum core_kind kind, uint64_t number, struct core_cause *cause);

/* Copies from the caller's memory; returns how many bytes could be read. */
size_t core_host_read(void *to, uint64_t from, size_t size);

/* Of the caller's memory: where it lies physically (0: not to be known), and in pages of which size
 * (0: nothing is there). */
uint64_t core_host_physical(uint64_t address);
uint64_t core_host_page_size(uint64_t address);

/* The cgroup of the caller, as PERF_SAMPLE_CGROUP numbers it. */
uint64_t core_host_cgroup(void);

/* The name spaces of the caller, by the index of PERF_RECORD_NAMESPACES: NR_NAMESPACES of them. */
struct perf_ns_link_info;
void core_host_namespaces(struct perf_ns_link_info *to);

/* Call chain of the caller when its registers are @regs, innermost first, without the instruction
 * pointer; how many. */
size_t core_host_callchain(const uint64_t regs[], uint64_t *to, size_t max);

/* The last branches, newest first, each with its type and flags; with @calls those that called the
 * functions that have not returned yet. How many. */
struct perf_branch_entry;
size_t core_host_branches(struct perf_branch_entry *to, size_t max, bool calls);

#endif
