// SPDX-License-Identifier: MIT
/*
 * Masks. The kernel's mask of a thread is the program's, without SIGSEGV and SIGBUS; of those two
 * the program's view is in its task.
 */
#include "runtime/linux/signal.h"

#include <asm/errno.h>
#include <linux/signal.h>

#include "runtime/linux/copy.h"

static signal_set combine(int how, signal_set old, signal_set set)
{
	switch (how) {
	case SIG_BLOCK:
		return old | set;
	case SIG_UNBLOCK:
		return old & ~set;
	default:
		return set;
	}
}

/*
 * Makes the call, with @blocked as the program's view of SIGSEGV and SIGBUS: a signal that comes
 * with the new mask finds it complete.
 */
static int64_t change_mask(struct thread *thread, const struct syscall *call, signal_set blocked)
{
	struct task *task = thread->task;
	signal_set before = task->faults_blocked;

	task->faults_blocked = blocked;
	int64_t result = syscall_pass(thread, call);
	if (!result)
		return 0;
	task->faults_blocked = before;
	if (result == SYSCALL_NOT_MADE) { /* and the signal came before it */
		task->note.mask = signal_program_mask(task, task->note.mask & ~SIGNALS_FAULTS);
		task->note.blocked = task->note.mask;
	}
	return result;
}

int64_t sys_rt_sigprocmask(struct thread *thread, struct syscall *call)
{
	struct task *task = thread->task;
	signal_set blocked = task->faults_blocked, set, kernel_set, old = 0;
	struct syscall changed = *call;

	if (call->args[3] != sizeof(signal_set))
		return -EINVAL;
	changed.args[2] = (uint64_t)&old;
	if (call->args[1]) {
		if (copy_in(&set, call->args[1], sizeof(set)))
			return -EFAULT;
		blocked = combine((int)call->args[0], blocked, set) & SIGNALS_FAULTS;
		kernel_set = set & ~SIGNALS_FAULTS;
		changed.args[1] = (uint64_t)&kernel_set;
	}
	signal_set blocked_before = task->faults_blocked;
	int64_t result = change_mask(thread, &changed, blocked);
	if (result)
		return result;
	old |= blocked_before;
	if (call->args[1])
		signal_release_held(thread, combine((int)call->args[0], old, set));
	if (call->args[2] && copy_out(call->args[2], &old, sizeof(old)))
		return -EFAULT;
	return 0;
}

int64_t sys_rt_sigpending(struct thread *thread, struct syscall *call)
{
	struct syscall changed = *call;
	signal_set set = 0;

	if (call->args[1] > sizeof(set))
		return -EINVAL;
	changed.args[0] = (uint64_t)&set;
	int64_t result = syscall_pass(thread, &changed);
	if (result)
		return result;
	set |= thread->task->faults_held & thread->task->faults_blocked;
	return copy_out(call->args[0], &set, call->args[1]);
}

static int64_t wait_in_kernel(struct thread *thread, const struct syscall *call)
{
	int64_t number = syscall_pass(thread, call);
	siginfo_t info;

	if (number > 0 && call->args[1] && !copy_in(&info, call->args[1], sizeof(info)) &&
	    info.si_code < 0) {
		signal_told(&info);
		copy_out(call->args[1], &info, sizeof(info));
	}
	return number;
}

/* Whatever comes during the call, the kernel takes from its own. */
int64_t sys_rt_sigtimedwait(struct thread *thread, struct syscall *call)
{
	siginfo_t info;
	signal_set set;

	if (!thread->task->faults_held || call->args[3] != sizeof(set))
		return wait_in_kernel(thread, call);
	if (copy_in(&set, call->args[0], sizeof(set)))
		return -EFAULT;
	int number = signal_take_held(thread->task, set, &info);
	if (!number)
		return wait_in_kernel(thread, call);
	if (call->args[1] && copy_out(call->args[1], &info, sizeof(info)))
		return -EFAULT;
	return number;
}

/*
 * Makes a call that waits under the mask that the argument @index points at: with a mask of which
 * the kernel gets its part, and the handler of what ends the wait is told of.
 */
static int64_t wait_under(struct thread *thread, struct syscall *call, unsigned int index)
{
	struct task *task = thread->task;
	struct syscall changed = *call;
	signal_set set;

	if (!call->args[index])
		return syscall_pass(thread, call);
	if (copy_in(&set, call->args[index], sizeof(set)))
		return -EFAULT;
	task->waiting_mask = set;
	task->waiting = true;
	set &= ~SIGNALS_FAULTS;
	changed.args[index] = (uint64_t)&set;
	int64_t result = syscall_pass(thread, &changed);
	task->waiting = false;
	return result;
}

/* A SIGSEGV or SIGBUS that waits here and is not blocked by @set ends the wait at once. */
static bool wait_is_over(struct thread *thread, signal_set set)
{
	struct task *task = thread->task;
	struct signal_note note = {.blocked = set};
	signal_set mask;

	if (!(task->faults_held & ~set) || !signal_hold(thread, &mask))
		return false;
	signal_set_kernel_mask(~SIGNALS_FAULTS);
	note.mask = signal_program_mask(task, mask);
	signal_take_held(task, ~set, &note.info);
	task->note = note;
	thread->pending |= PENDING_NOTE;
	return true;
}

int64_t sys_rt_sigsuspend(struct thread *thread, struct syscall *call)
{
	signal_set set;

	if (call->args[1] != sizeof(signal_set))
		return -EINVAL;
	if (!call->args[0] || copy_in(&set, call->args[0], sizeof(set)))
		return -EFAULT;
	if (wait_is_over(thread, set))
		return -EINTR;
	return wait_under(thread, call, 0);
}

int64_t sys_ppoll(struct thread *thread, struct syscall *call)
{
	if (call->args[3] && call->args[4] != sizeof(signal_set))
		return -EINVAL;
	return wait_under(thread, call, 3);
}

/* Also epoll_pwait2: the arguments differ in how long to wait only. */
int64_t sys_epoll_pwait(struct thread *thread, struct syscall *call)
{
	if (call->args[4] && call->args[5] != sizeof(signal_set))
		return -EINVAL;
	return wait_under(thread, call, 4);
}

/* The sixth argument points at the mask's address and size. */
int64_t sys_pselect6(struct thread *thread, struct syscall *call)
{
	struct {
		uint64_t mask, size;
	} sixth = {0};
	struct task *task = thread->task;
	struct syscall changed = *call;
	signal_set set;

	if (call->args[5] && copy_in(&sixth, call->args[5], sizeof(sixth)))
		return -EFAULT;
	if (!sixth.mask)
		return syscall_pass(thread, call);
	if (sixth.size != sizeof(set))
		return -EINVAL;
	if (copy_in(&set, sixth.mask, sizeof(set)))
		return -EFAULT;
	task->waiting_mask = set;
	task->waiting = true;
	set &= ~SIGNALS_FAULTS;
	sixth.mask = (uint64_t)&set;
	changed.args[5] = (uint64_t)&sixth;
	int64_t result = syscall_pass(thread, &changed);
	task->waiting = false;
	return result;
}
