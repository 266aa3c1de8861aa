/* SPDX-License-Identifier: MIT */
/*
 * The memory that all processes of a tally run share, one file:
 *
 *	threads	| header | page of thread 1 | page of thread 2 | ...	ARENA_PAGES pages
 *	numbers	| how many | who is 1 | who is 2 | ...			ARENA_INCARNATIONS words
 *	events	| struct core_event 1 | ...				ARENA_EVENTS (core/event.h)
 *	rings	| mmap pages and buffers of events |			ARENA_RINGS
 *
 * What is never used is never there. The page of a thread begins with struct thread (runtime/), and
 * has its struct core_task (core/task.h) at ARENA_TASK. A page belongs to the process that holds a
 * record lock on some of it (fcntl F_SETLK); the monitor holds one on the header.
 *
 * The header: struct arena_header, what the core keeps at ARENA_CORE, and at ARENA_TASK the
 * core_task to which events of every task are attached.
 */
#ifndef ABI_ARENA_H
#define ABI_ARENA_H

#define ARENA_PAGE 4096UL

/* Threads of a whole tree at a time. */
#define ARENA_PAGES   32768UL
#define ARENA_TASK    0x400UL
#define ARENA_CORE    0x40UL
#define ARENA_HANDLED 4

/* In a thread's page: 0 while its thread is certainly not in translated code. */
#define ARENA_INSIDE 0x68UL

/*
 * In a thread's page: not 0 while it is on its way from one process to another. Then it is there,
 * locked or not, as long as who gives it away is (an owner, below), or until the monitor finds that
 * the process that was to take it is gone (ARENA_EXPECTED).
 */
#define ARENA_HANDED_OVER 0x6c
#define ARENA_EXPECTED	  0xffffffffU

/* In a thread's page: how often it has been taken; at least 1. */
#define ARENA_INCARNATION 0x128

/*
 * Who holds a lock in the arena (core/lock.h), or gives a page away: a page and its incarnation, so
 * that who has been killed is not taken for who has the page next. Threads without a page have page
 * 0 and a number instead. Among the numbers it says which thread that is (ARENA_NUMBER; 0: nobody),
 * which is there as long as the byte so far behind the arena's end is locked, too: either alone may
 * outlive it. The first word counts those that were given.
 */
#define ARENA_INCARNATIONS	       (1U << 17)
#define ARENA_OWNER(page, as)	       ((uint32_t)(page) | (uint32_t)(as) << 15)
#define ARENA_OWNER_PAGE(owner)	       ((owner)&0x7fff)
#define ARENA_OWNER_INCARNATION(owner) ((owner) >> 15)
#define ARENA_MONITOR		       ARENA_OWNER(0, 1)

/* @first: the thread's number is the one it has where the monitor is. */
#define ARENA_NUMBER(tid, first)   ((uint32_t)(tid) << 1 | (uint32_t)(first))
#define ARENA_NUMBER_TID(number)   ((int32_t)((number) >> 1))
#define ARENA_NUMBER_FIRST(number) ((number)&1)

#define ARENA_NUMBERS_AT   (ARENA_PAGES * ARENA_PAGE)
#define ARENA_THREADS_SIZE (ARENA_NUMBERS_AT + ARENA_INCARNATIONS * 4UL)
#define ARENA_EVENTS_AT	   ARENA_THREADS_SIZE
#define ARENA_EVENTS_SIZE  (64UL << 20)
#define ARENA_RINGS_AT	   (ARENA_EVENTS_AT + ARENA_EVENTS_SIZE)
#define ARENA_RINGS_SIZE   (1UL << 30)
#define ARENA_SIZE	   (ARENA_RINGS_AT + ARENA_RINGS_SIZE)

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stdint.h>

struct arena_header {
	/* Both are hints: what is free, the locks know. */
	uint32_t used; /* the highest page that anybody has had */
	uint32_t next;

	/*
	 * Tickets: who waits for the monitor to have seen what has happened (CONTROL_SETTLE) adds 1
	 * to `asked`, says which ticket that is, and waits until `answered`, a futex, has come to
	 * it. What was sent before by whoever has an earlier one has been done by then, too.
	 */
	uint32_t asked, answered;

	/* How often the monitor has been told to wake who polls, and how often it has
	 * (CONTROL_WAKE). */
	uint32_t wakes, woken;

	/*
	 * The process that is the command, and what it has last handled of what kill(2) has sent,
	 * at the signal's number modulo ARENA_HANDLED: see arena_handled().
	 */
	int32_t command;
	/* Not 0: LIMITS_SPACE of RLIMIT_AS is the runtime's, not LIMITS_LEAST_SPACE
	 * (abi/limits.h). */
	uint32_t reserves;
	uint64_t handled[ARENA_HANDLED];
};

/*
 * What is sent to their process group comes to the monitor and to the command, and is not to be
 * passed on. Bits: 35 milliseconds of CLOCK_MONOTONIC, 22 the sender's pid, 7 the signal.
 */
static inline uint64_t arena_handled(int signal, int32_t sender, uint64_t milliseconds)
{
	return milliseconds << 29 | (uint64_t)(sender & 0x3fffff) << 7 | (uint64_t)(signal & 0x7f);
}

static inline int32_t arena_handled_of(uint64_t handled)
{
	return (int32_t)(handled >> 7 & 0x3fffff);
}

/* Whether it was the signal that @now says, of whomever, and just before. */
static inline bool arena_handled_just(uint64_t handled, uint64_t now)
{
	enum { WITHIN_MS = 200 };

	return (handled & 0x7f) == (now & 0x7f) && (now >> 29) - (handled >> 29) < WITHIN_MS;
}

#endif
#endif
