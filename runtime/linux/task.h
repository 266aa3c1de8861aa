/* SPDX-License-Identifier: MIT */
/*
 * What the runtime keeps for a thread besides struct thread, which is for translated code and for
 * other processes to look at: this is private to the process.
 *
 * Each thread has a slot, one piece of memory. The kernel puts its signal frames on a stack of
 * their own, so that a signal that comes while the runtime is deep in its stack needs no room
 * there.
 *
 *	slot	| struct task | struct thread* | signal stack <-- | runtime stack <-- |
 *
 *	* used only when the arena is full: usually struct thread lies there (arena.h)
 */
#ifndef RUNTIME_LINUX_TASK_H
#define RUNTIME_LINUX_TASK_H

#include <linux/signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/lock.h"
#include "runtime/thread.h"

/* A set of signals as the kernel has it: signal N is bit N - 1. */
typedef uint64_t signal_set;
#define SIGNAL_BIT(number) (1UL << ((number)-1))
#define SIGNALS		   64

/* Never blocked, always handled by the runtime: see signal.h. */
#define SIGNALS_FAULTS (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS))

/* struct sigaction of rt_sigaction(2). */
struct signal_action {
	uint64_t handler; /* SIG_DFL, SIG_IGN or an address */
	uint64_t flags;
	uint64_t restorer;
	signal_set mask;
};

/*
 * What the program has set for each signal. Shared by the threads of a process, and by whoever else
 * was cloned with CLONE_SIGHAND.
 */
struct signal_actions {
	struct lock lock;
	uint32_t users;
	uint32_t detaching; /* enum detaching of detach.c; a futex */
	signal_set known;   /* of the others only the kernel knows what exec has left */
	struct signal_action of[SIGNALS + 1];
};

/* Bits of thread->pending. */
enum pending {
	PENDING_NOTE = 1,
	PENDING_SUMMONS = 2, /* the process detaches, and this thread has to come along */
	PENDING_KICK = 4,    /* somebody has changed what is to be counted: core_task_changed() */
};

/* How far a task is with that. */
enum detach {
	DETACH_NOT,
	DETACH_SUMMONED, /* it has been sent the signal, or will be at once */
	DETACH_COMING,	 /* the signal has come */
	DETACH_READY,
};

/* The timer of clocks that are sampled: clock_timer.h. */
enum clock_timer { CLOCK_TIMER_NONE, CLOCK_TIMER_STANDS, CLOCK_TIMER_RUNS };

/* Of a thread's processor time: when its clocks were looked at (0: they were not), when it went on
 * after that, and for how long nobody looks then. */
struct clock_looks {
	uint64_t looked, since, rest;
};

/* A signal that the kernel has delivered to the runtime and the program has not seen yet. */
struct signal_note {
	siginfo_t info;
	uint64_t trap, error, cr2; /* of the thread's last processor fault */
	signal_set mask;	   /* to be restored when the handler returns */
	signal_set blocked;	   /* what is blocked when it begins, beside its own */
};

struct task {
	struct thread *thread;
	struct task *next; /* of all slots of the process */
	uint32_t used;	   /* cleared by the last store of an exiting thread */
	bool vfork;	   /* the parent waits for the end and frees the slot */
	bool apart;	   /* of another process, which may end without a word */
	bool abroad;	   /* its table of descriptors ends with such: it has no page */
	bool clear;	   /* it begins with default actions */
	bool forked;	   /* it has memory of its own */
	bool shares_table; /* but its parent's table of descriptors */
	bool own_numbers;  /* its table of descriptors is not the one that most threads share */
	uint32_t owner;	   /* of the thread's page: arena_owner(); 0: it has none */

	/* exec.c: of an exec under way the argument lists, and whether the image gets the page */
	void *exec_lists;
	size_t exec_lists_size;
	bool handed_over;

	struct lock
		*locks[LOCK_KINDS]; /* thread->locks: what is left here is not from other memory */

	uint64_t fs_base; /* to begin with: thread->fs_base */
	struct regs regs; /* to begin with, or to leave with, and the kernel's mask */
	signal_set start;
	int pid;	 /* of its thread group */
	uint32_t detach; /* enum detach */

	/* seccomp.h; NULL: none that is known */
	const struct seccomp_filter *seccomp;

	struct signal_actions *actions;
	stack_t stack; /* sigaltstack(2) of the program, in the kernel's terms */

	/* Of SIGSEGV and SIGBUS: blocked as the program sees it, and waiting for that to end. */
	signal_set faults_blocked, faults_held;
	siginfo_t held[2];

	/* cause.c: before the instruction that the thread has executed alone; rip 0: none */
	struct regs stepped;

	/* faults.c; NULL: nobody has sampled page faults */
	struct faults *faults;

	/* unwind.c; NULL: nobody has asked for its callers yet */
	struct unwinder *unwinder;

	/* uprobes.c; NULL: nobody has asked for returns yet */
	struct returns *returns;

	/* switches.c: the kernel's counts when it was last asked, and when that was. */
	uint64_t waited, preempted, switches_since;
	bool switches_known;

	uint32_t clock_timer; /* enum clock_timer; the kernel knows it as: */
	int32_t timer;
	struct clock_looks clock;

	/* PENDING_NOTE: this is the one that waits. */
	struct signal_note note;

	/* While the kernel waits under another mask (sigsuspend and so on): that one. */
	bool waiting;
	signal_set waiting_mask;
};

static inline struct task *task_self(void)
{
	return thread_self()->task;
}

#endif
