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
#include "runtime/thread.h"

static void settle(void)
{
	if (core_nr_events())
		control_settle();
}

static bool has_ended(const siginfo_t *child)
{
	return child->si_code == CLD_EXITED || child->si_code == CLD_KILLED ||
	       child->si_code == CLD_DUMPED;
}

/*
 * Whom a call like waitid(@type, @id, ..., @options) will find, once there is somebody. False: a
 * signal came first, and @result is what there is to return. What else is the matter with it the call
 * itself will say; and a program with filters of seccomp(2) may be forbidden this one.
 */
static bool find(struct thread *thread, uint64_t type, uint64_t id, uint64_t options,
		 siginfo_t *child, int64_t *result)
{
	const struct syscall look = {__NR_waitid,
				     {type, id, (uint64_t)(uintptr_t)child, options | WNOWAIT}};

	*child = (siginfo_t){0};
	if (!arena_header() || (options & WNOHANG && !core_nr_events()) || confined() ||
	    thread->task->seccomp)
		return true;
	*result = syscall_pass(thread, &look);
	return *result != SYSCALL_NOT_MADE && *result != -EINTR;
}

/* Returns whether it is a child that has ended, and that the monitor has seen then. */
static bool settled(const siginfo_t *child)
{
	const bool ended = has_ended(child);

	if (ended)
		settle();
	return ended;
}

/* The same of a number of wait4(2), a process or, below 0, a group of them. */
static bool find_by_number(struct thread *thread, int32_t number, uint64_t options,
			   siginfo_t *child, int64_t *result)
{
	uint64_t type = P_PID, id = (uint32_t)number;

	if (number == -1) {
		type = P_ALL;
	} else if (number <= 0) {
		type = P_PGID;
		id = (uint32_t)-number;
	}
	return find(thread, type, id, options | WEXITED, child, result);
}

int64_t sys_wait4(struct thread *thread, struct syscall *call)
{
	enum { STOPPED = 0x7f, CONTINUED = 0xffff };
	siginfo_t child;
	int64_t result;
	int status = 0;
	bool is_settled;

	if (!find_by_number(thread, (int32_t)call->args[0], call->args[2], &child, &result))
		return result;
	is_settled = settled(&child);
	result = syscall_pass(thread, call);
	if (result <= 0 || (is_settled && result == child.si_pid))
		return result;
	if (call->args[1])
		copy_in(&status, call->args[1], sizeof(status));
	if ((status & 0xff) != STOPPED && status != CONTINUED)
		settle();
	return result;
}

int64_t sys_waitid(struct thread *thread, struct syscall *call)
{
	siginfo_t child, found = {0};
	int64_t result;
	bool is_settled;

	if (!find(thread, call->args[0], call->args[1], call->args[3], &child, &result))
		return result;
	is_settled = settled(&child);
	result = syscall_pass(thread, call);
	if (result)
		return result;
	if (call->args[2])
		copy_in(&found, call->args[2], sizeof(found));
	if (!is_settled || found.si_pid != child.si_pid)
		settle();
	return result;
}
