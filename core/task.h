/* SPDX-License-Identifier: MIT */
/*
 * A task as the event core sees it: the counters that its code adds to, and the events that look at
 * them. It lies in the page of the arena that belongs to the thread (abi/arena.h), so that every
 * process of the tree reads it; the thread itself reaches it through GS.
 *
 *	page	| struct thread (runtime/) | struct core_task |
 *		0			   ARENA_TASK	      4096
 *
 * A counter is two words. Translated code adds to the first, which is negative as long as nobody
 * wants to be told: when it reaches 0 an overflow is due. The value is their sum, and the sum is
 * monotonic. Both are written by the task's own thread alone; who reads them from elsewhere does so
 * under `sequence` (core_counter_read()).
 *
 * While the thread is in translated code it may have its counters in registers, which that code
 * stores here again and again (runtime/translate/count.c).
 */
#ifndef CORE_TASK_H
#define CORE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/kinds.h"
#include "core/used.h"

#define CORE_TASK_COUNTERS 0x000

/* Where a counter stands when nobody samples its kind: it never gets to 0. */
#define CORE_COUNTER_START INT64_MIN

/* How often a reader tries to find `sequence` still: who changes it may have been killed. */
#define CORE_TASK_TRIES 100000

struct core_task {
	int64_t counter[64]; /* by enum core_kind; at CORE_TASK_COUNTERS */
	int64_t bias[64];

	uint32_t sequence; /* odd while counter and bias, or the clock, change together */
	uint32_t lock;	   /* core/lock.h: of all below, and of the events in the list */

	/*
	 * What translated code has to count for the events that are active: bits of enum core_kind.
	 * Changed under the lock by whoever enables or disables; the thread compares `changes` with
	 * what it has followed when it is in the runtime, and makes its counters and its code
	 * follow.
	 */
	uint64_t wanted;  /* kinds to be counted */
	uint64_t sampled; /* kinds of which somebody wants overflows: a subset of wanted */
	uint64_t extras;  /* enum core_extra */
	uint64_t
		places; /* changes when core_breakpoint_places(), _watched() or core_probe_places() do */
	uint32_t changes, followed;
	bool kick;	   /* the thread has to be told, once the lock is given back */
	uint32_t replaced; /* by how many others of its process: core_task_replaced() */
	/* It is not to go on, and does not: core/still.h. */
	bool still, waits;
	uint32_t asked;		/* `changes` when it last did not come to wait; 0: it did */
	uint64_t counting_down; /* kinds whose counters reach 0 at the next overflow, */
	uint64_t early;		/* or, of these, so long before that nobody has to see at once; */
	uint64_t looking_back;	/* which are on the last stretch before it: CORE_LOOK_BACK */

	/* who */
	uint32_t live;	     /* 1: a thread runs here */
	bool everybody;	     /* page 0: no thread; events of every task are attached to it */
	bool apart;	     /* gets no copies of events of every task: core_task_apart() */
	int32_t pid, tid;    /* as the task itself sees them: other tasks may have the same */
	uint64_t id;	     /* no other task has, or had it; 0: everybody */
	uint64_t process;    /* likewise of all threads of a process */
	uint64_t name_space; /* in which pid and tid are, as an inode; 0: not known */
	int32_t cpu;	     /* where it ran when last looked; -1: not known yet */
	uint64_t moves;	     /* how often it was elsewhere than when last looked */
	uint32_t parent;     /* page of the task that began it, */
	uint64_t parent_id;  /* and which that was: another one may have the page by now */
	bool told;	     /* its parent's events know of it, */
	bool told_where;     /* and in which name spaces it is */
	bool told_exec;	     /* its own know what it is about to execute: runtime/linux/exec.c */
	bool moved;	     /* which may be others than its parent's */
	int32_t ppid;	     /* the process of its real parent: of a thread, its process's parent */
	uint32_t next_live;  /* pages: the list of who lives, under the lock of the tree */
	uint32_t previous_live;

	/* In the name space where the run began, of a task in another one; 0: not known. */
	int32_t first_pid, first_tid;

	/* events */
	uint32_t events;	     /* the first of the list, index; 0: none */
	uint32_t created;	     /* the first event of those that it opened: prctl(2) */
	uint32_t last, last_created; /* hints: the ends of both lists */
	uint32_t opening;	     /* the one that has no descriptor yet; 0: none */
	uint32_t opening_generation;
	uint32_t turn;	   /* the group that comes first when counters are short; 0: the first */
	bool exclusive;	   /* some group wants the PMU for itself */
	bool crowded;	   /* some group waits for counters, */
	bool turn_due;	   /* and may have some now: its thread sees to that */
	bool bound;	   /* some event depends on the processor, */
	bool grouped;	   /* or on the cgroup */
	bool mapped;	   /* some event's mmap page tells how its clock goes */
	bool switches;	   /* some event wants to be told when it does not run, */
	bool mappings;	   /* or what it maps */
	bool reads_kept;   /* samples of some have the count of one that the kernel counts */
	bool stops_kept;   /* a leader of such has disabled itself: core_stop_kept() */
	bool passed;	   /* the kernel has, or had, events of its, which it keeps through exec */
	uint64_t software; /* kinds of software events in the list */

	/* Page faults that have ended in a signal, which the kernel's counters leave out; and
	 * those of the runtime's own that are known to be (runtime/linux/faults.c). */
	uint64_t faults_failed, faults_own;
	uint32_t populating; /* odd while faults_own is about to change, */
	bool faults_watched; /* or always: its thread finds out from records which are its own */

	/* core/used.h: where its process's first thread lies, and there what threads have used
	 * that have ended. */
	uint32_t first;
	struct core_used ended;

	/* The event for which its branches go to an AUX area, as its thread has followed: it goes
	 * on until then, whoever has stopped it. 0: none. */
	uint32_t tracing, tracing_generation;

	uint64_t now;	 /* its clock, as of the last look: core/count.h, */
	uint64_t looked; /* and the time stamp counter then */

	uint64_t clock;	    /* core/time.h: nanoseconds that it has run, as of `clock_tsc` */
	uint64_t clock_tsc; /* 0: the clock stands */
	uint32_t views;	    /* core/views.h: of the memory that it left by executing */
	char comm[16];

	uint64_t seen[CORE_COUNTED_KINDS]; /* while it is held still: the values of its counters */
};

_Static_assert(offsetof(struct core_task, counter) == CORE_TASK_COUNTERS, "");

/* Its thread has something to follow: with its lock. */
static inline void core_task_change(struct core_task *task)
{
	__atomic_store_n(&task->changes, task->changes + 1, __ATOMIC_RELEASE);
}

/* The thread's own: whether it has, and that it does from here on. */
static inline bool core_task_changed(const struct core_task *task)
{
	return __atomic_load_n(&task->changes, __ATOMIC_ACQUIRE) != task->followed;
}

static inline void core_task_followed(struct core_task *task)
{
	task->followed = __atomic_load_n(&task->changes, __ATOMIC_ACQUIRE);
}

/*
 * Code that counts far from an overflow need not see at each instruction that a counter has got to
 * 0: it is stopped so many before, and may be late by as many less one. An instruction has three
 * operands at most.
 */
enum { CORE_EARLY_INSNS = 160 };

static inline int64_t core_early(unsigned int kind)
{
	return kind == CORE_LOADS || kind == CORE_STORES ? 3 * CORE_EARLY_INSNS : CORE_EARLY_INSNS;
}

/* How many events before an overflow a thread comes out whose last branches are to be told. */
#define CORE_LOOK_BACK 256

/* What else translated code has to do for the events of a task. */
enum core_extra {
	CORE_EXTRA_BRANCH_STACK = 1, /* note the last branches before a sample, */
	CORE_EXTRA_CALL_STACK = 2,   /* or of them the calls that have not returned */
	CORE_EXTRA_BREAKPOINTS = 4,  /* compare addresses with core_breakpoint_watched() */
	CORE_EXTRA_TRACE = 8,	     /* tell every branch by core_trace() */
	CORE_EXTRA_STOPS = 16, /* stop where core_breakpoint_places() and core_probe_places() say */
};

#define CORE_EXTRAS 31

#endif
