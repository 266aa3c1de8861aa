// SPDX-License-Identifier: MIT
/*
 * wait4(2), waitid(2). Who knows that a process is gone finds its descriptors closed and its tasks
 * ended. And as long as nobody has waited for it the kernel knows what it had used, which a process
 * that a signal has ended could tell nobody (monitor/unreaped.c). So a call looks first, and waits
 * once the monitor has seen to that.
 */
#include <asm/errno.h>
#include <linux/wait.h>

#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/syscalls.h"
#include "runtime/linux/task.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

static void settle(void)
{
	if (core_nr_events())
		control_settle();
}

static void settle_if_ended(const siginfo_t *child)
{
	if (child->si_code == CLD_EXITED || child->si_code == CLD_KILLED ||
	    child->si_code == CLD_DUMPED)
		settle();
}

/* A program with filters of seccomp(2) may be forbidden to make another call than its own. */
static bool may_look(const struct thread *thread, uint64_t options)
{
	return arena_header() && (!(options & WNOHANG) || core_nr_events()) && !confined() &&
	       !thread->task->seccomp;
}

/* Whom a call like waitid(@type, @id, ..., @options) finds, as it is then; nobody: si_pid is 0. */
static int64_t look(struct thread *thread, uint64_t type, uint64_t id, uint64_t options,
		    siginfo_t *child)
{
	const struct syscall call = {__NR_waitid,
				     {type, id, (uint64_t)(uintptr_t)child, options | WNOWAIT}};

	*child = (siginfo_t){0};
	return syscall_pass(thread, &call);
}

/* ---- wait4 ---- */

static int64_t look_for_number(struct thread *thread, int32_t number, uint64_t options,
			       siginfo_t *child)
{
	uint64_t type = P_PID, id = (uint32_t)number;

	if (number == -1) {
		type = P_ALL;
	} else if (number <= 0) {
		type = P_PGID;
		id = (uint32_t)-number;
	}
	return look(thread, type, id, options | WEXITED, child);
}

static int64_t wait_unseen(struct thread *thread, const struct syscall *call)
{
	enum { STOPPED = 0x7f, CONTINUED = 0xffff };
	const int64_t result = syscall_pass(thread, call);
	int status = 0;

	if (result <= 0)
		return result;
	if (call->args[1])
		copy_in(&status, call->args[1], sizeof(status));
	if ((status & 0xff) != STOPPED && status != CONTINUED)
		settle();
	return result;
}

int64_t sys_wait4(struct thread *thread, struct syscall *call)
{
	const uint64_t known = WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
	const uint64_t options = (uint32_t)call->args[2];
	const int32_t number = (int32_t)call->args[0];
	siginfo_t child;
	int64_t result;

	if (options & ~known || number == INT32_MIN || !may_look(thread, options))
		return wait_unseen(thread, call);
	for (;;) {
		result = look_for_number(thread, number, options, &child);
		if (result || !child.si_pid)
			return result;
		settle_if_ended(&child);
		/* Not so that a signal would come first: a handler may wait, too, and natively
		 * it is called when this has. */
		result = sys(__NR_wait4, child.si_pid, call->args[1], options | WNOHANG,
			     call->args[3]);
		/* Or another thread has been faster. */
		if (result && result != -ECHILD)
			return result;
	}
}

/* ---- waitid ---- */

/* What the kernel writes of it. */
static int64_t tell(uint64_t to, const siginfo_t *child)
{
	const int first[] = {child->si_signo, child->si_errno, child->si_code};
	const int second[] = {child->si_pid, (int)child->si_uid, child->si_status};

	if (!to)
		return 0;
	if (copy_out(to, first, sizeof(first)) ||
	    copy_out(to + offsetof(siginfo_t, si_pid), second, sizeof(second)))
		return -EFAULT;
	return 0;
}

static int64_t waitid_unseen(struct thread *thread, const struct syscall *call)
{
	const int64_t result = syscall_pass(thread, call);

	if (!result)
		settle();
	return result;
}

int64_t sys_waitid(struct thread *thread, struct syscall *call)
{
	const uint64_t options = (uint32_t)call->args[3];
	siginfo_t child;
	int64_t result;

	if (!may_look(thread, options))
		return waitid_unseen(thread, call);
	for (;;) {
		result = look(thread, call->args[0], call->args[1], options, &child);
		if (result)
			return result;
		if (!child.si_pid)
			return tell(call->args[2], &child);
		settle_if_ended(&child);
		/* As above. */
		result = sys(__NR_waitid, P_PID, child.si_pid, &child, options | WNOHANG,
			     call->args[4]);
		if (!result && child.si_pid)
			return tell(call->args[2], &child);
		if (result && result != -ECHILD)
			return result;
	}
}
