// SPDX-License-Identifier: MIT
/*
 * A leak checker stops all threads of its process from another one in the same memory, which it
 * makes for that (clone(2) with CLONE_VM), by ptrace(2). They may be in the runtime, with locks. Who
 * waits for one is the tracer, and lets the thread go on from system call to system call until it
 * has none: to give back a lock for which somebody waits is such a call. The program sees none of
 * that: a stop that it knows of stays one, and one of which it has not been told yet is told of.
 */
#include "runtime/linux/halted.h"

#include <linux/ptrace.h>
#include <linux/signal.h>
#include <linux/time_types.h>
#include <linux/wait.h>

#include "runtime/linux/confined.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/task.h"
#include "runtime/linux/thread_slots.h"
#include "runtime/lock.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* How long it is looked at for its next stop, before it is known to wait for somebody else. */
enum { LOOKS = 400, LOOK_NS = 50000 };

/* Of all the calls that it may make with a lock. */
enum { CALLS = 10000 };

enum { LAST_SIGNAL = 64 };

/* The signal that it has stopped for, of which wait(2) tells still, or again; 0: it has not, or has
 * told; -1: it is gone. */
static int stop_of(int tid)
{
	siginfo_t info = {0};

	if (sys(__NR_waitid, P_PID, tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL,
		NULL))
		return -1;
	if (!info.si_pid)
		return 0;
	return info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED ? info.si_status : -1;
}

static int await_stop(int tid)
{
	const struct __kernel_timespec moment = {.tv_nsec = LOOK_NS};
	int stopped = 0;

	for (int looks = 0; looks < LOOKS && !(stopped = stop_of(tid)); looks++)
		sys(__NR_nanosleep, &moment, NULL);
	return stopped;
}

/* What it has stopped for may be no signal, but a call, or an event of the tracer's. */
static void go_on(int tid, int stopped)
{
	const bool is_due = stopped <= LAST_SIGNAL && stopped != SIGTRAP && stopped != SIGSTOP;

	sys(__NR_ptrace, PTRACE_SYSCALL, tid, 0, is_due ? stopped : 0);
}

/* One that comes of a signal, so that no such signal is left over; and wait(2) tells of it. */
static void stop_again(const struct thread *thread, int stopped)
{
	const int tid = thread->tid;

	sys(__NR_tgkill, thread->task->pid, tid, SIGSTOP);
	for (; stopped >= 0 && stopped != SIGSTOP; stopped = await_stop(tid))
		if (stopped)
			go_on(tid, stopped);
}

static void let_go(struct thread *thread);

/* It waits for a lock itself, of who is stopped, too. */
static void let_other_go(const struct thread *thread)
{
	struct task *other = slot_of((int)lock_waits_for(thread));

	if (other && other->thread != thread)
		let_go(other->thread);
}

static void let_go(struct thread *thread)
{
	const int tid = thread->tid, first = stop_of(tid);
	int stopped = first;

	if (first >= 0)
		go_on(tid, first);
	for (int calls = 0; stopped >= 0 && calls < CALLS && lock_has_any(thread); calls++) {
		if (calls && stopped)
			go_on(tid, stopped);
		else if (calls)
			let_other_go(thread);
		stopped = await_stop(tid);
	}
	if (stopped < 0)
		return;
	if (first || !stopped)
		stop_again(thread, stopped);
	if (!first)
		sys(__NR_wait4, tid, NULL, __WALL, NULL);
}

void halted_let_go(struct thread *thread)
{
	if (!confined() && proc_tracer_of(thread->tid) == thread_self()->tid)
		let_go(thread);
}
