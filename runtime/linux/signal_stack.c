// SPDX-License-Identifier: MIT
/* sigaltstack(2). The kernel's own alternate stack is the runtime's; the program's is kept here. */
#include "runtime/linux/signal.h"

#include <asm/errno.h>
#include <linux/signal.h>

#include "runtime/linux/copy.h"

#define SS_AUTODISARM (1U << 31)

enum { SMALLEST = 2048 }; /* MINSIGSTKSZ, which <linux/signal.h> may make larger */

bool signal_on_stack(const stack_t *stack, uint64_t rsp)
{
	uint64_t start = (uint64_t)stack->ss_sp;

	return rsp > start && rsp - start <= stack->ss_size;
}

static bool changes_under_itself(const stack_t *stack, uint64_t rsp)
{
	/* A stack that is disarmed when it is in use can be changed meanwhile. */
	return !((unsigned int)stack->ss_flags & SS_AUTODISARM) && signal_on_stack(stack, rsp);
}

int signal_stack_flags(const stack_t *stack, uint64_t rsp)
{
	if (!stack->ss_size)
		return SS_DISABLE;
	return changes_under_itself(stack, rsp) ? SS_ONSTACK : 0;
}

int64_t signal_stack_change(struct task *task, const stack_t *to, uint64_t rsp)
{
	int mode = (int)((unsigned int)to->ss_flags & ~SS_AUTODISARM);

	if (changes_under_itself(&task->stack, rsp))
		return -EPERM;
	if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
		return -EINVAL;
	if (mode == SS_DISABLE) {
		task->stack = (stack_t){.ss_flags = to->ss_flags};
		return 0;
	}
	if (to->ss_size < SMALLEST)
		return -ENOMEM;
	task->stack = *to;
	return 0;
}

int64_t sys_sigaltstack(struct thread *thread, struct syscall *call)
{
	struct task *task = thread->task;
	uint64_t rsp = thread->regs.gpr[REG_RSP];
	stack_t to, old = task->stack;

	old.ss_flags = signal_stack_flags(&task->stack, rsp) |
		       (int)((unsigned int)task->stack.ss_flags & SS_AUTODISARM);
	if (call->args[0]) {
		if (copy_in(&to, call->args[0], sizeof(to)))
			return -EFAULT;
		int64_t error = signal_stack_change(task, &to, rsp);
		if (error)
			return error;
	}
	if (call->args[1] && copy_out(call->args[1], &old, sizeof(old)))
		return -EFAULT;
	return 0;
}
