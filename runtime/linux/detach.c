// SPDX-License-Identifier: MIT
/*
 * A program that uses GS itself cannot be translated: GS is where translated code finds its thread.
 * Such a process gets back all that the runtime holds for it (actions, masks, alternate stack,
 * permissions of its pages) and goes on natively from where it is.
 */
#include <asm/errno.h>
#include <asm/prctl.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/threads.h"
#include "runtime/say.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

enum { SYSCALL_SIZE = 2 };

static void give_back_actions(const struct task *task)
{
	for (int number = 1; number <= SIGNALS; number++)
		if (task->actions->known & SIGNAL_BIT(number))
			signal_set_kernel_action(number, &task->actions->of[number], NULL);
}

void linux_detach(struct thread *thread)
{
	struct task *task = thread->task;
	char name[16] = "?";
	signal_set mask;

	if (!signal_hold(thread, &mask))
		return; /* the instruction is still there afterwards */
	sys(__NR_prctl, PR_GET_NAME, name);
	if (!threads_alone())
		die("%s uses the GS register in a process of several threads, which cannot be "
		    "continued natively: run it without 'tally run'",
		    name);
	say("%s uses the GS register: it runs natively from here on", name);
	memory_unwatch_all();
	give_back_actions(task);
	threads_set_gs(0);
	frame_leave(&thread->regs, signal_program_mask(task, mask), &task->stack);
}

int64_t sys_arch_prctl(struct thread *thread, struct syscall *call)
{
	const uint64_t base = 0; /* as far as the program knows */

	switch (call->args[0]) {
	case ARCH_GET_GS:
		return copy_out(call->args[1], &base, sizeof(base));
	case ARCH_SET_GS:
		thread->regs.rip -= SYSCALL_SIZE;
		linux_detach(thread);
		return SYSCALL_REGISTERS_SET;
	default:
		return syscall_pass(thread, call);
	}
}
