// SPDX-License-Identifier: MIT
/*
 * The frame that a signal handler finds on its stack, as x86-64 Linux lays it out:
 *
 *	interrupted rsp
 *		128 bytes that functions may use below rsp (not on an alternate stack)
 *	fpstate		64-aligned (fpu.c)
 *	struct frame	8 below 16-aligned, as behind a call:
 *		info
 *		context		registers, mask, alternate stack, address of fpstate
 *		back		where the handler returns to: code that calls rt_sigreturn
 *
 * rt_sigreturn(2) goes by rsp alone: programs return through frames of their own making, too.
 */
#include "runtime/linux/signal.h"

#include <asm/errno.h>
#include <asm/ucontext.h>
#include <linux/signal.h>

#include "runtime/linux/clock_timer.h"
#include "runtime/linux/copy.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

#define SS_AUTODISARM (1U << 31)

/* Of a frame. Not TF: traps would come at instructions of the runtime,
 * and for ever at the one that sets it. A program that steps itself gets the first trap and runs
 * on. */
#define FLAGS_TAKEN (X86_EFLAGS_AC | X86_EFLAGS_RF | X86_EFLAGS_DF | FLAGS_STATUS)

enum { RED_ZONE = 128, CODE_SEGMENT = 0x33, STACK_SEGMENT = 0x2b };

_Static_assert(sizeof(struct signal_context) == sizeof(struct ucontext), "");

struct frame {
	uint64_t back;
	struct signal_context context;
	siginfo_t info;
};
_Static_assert(sizeof(siginfo_t) == 128, "");
_Static_assert(sizeof(struct frame) == 440, "");

static void registers_to(const struct regs *from, struct sigcontext_64 *to)
{
	const uint64_t *gpr = from->gpr;

	*to = (struct sigcontext_64){
		.r8 = gpr[REG_R8],
		.r9 = gpr[REG_R9],
		.r10 = gpr[REG_R10],
		.r11 = gpr[REG_R11],
		.r12 = gpr[REG_R12],
		.r13 = gpr[REG_R13],
		.r14 = gpr[REG_R14],
		.r15 = gpr[REG_R15],
		.di = gpr[REG_RDI],
		.si = gpr[REG_RSI],
		.bp = gpr[REG_RBP],
		.bx = gpr[REG_RBX],
		.dx = gpr[REG_RDX],
		.ax = gpr[REG_RAX],
		.cx = gpr[REG_RCX],
		.sp = gpr[REG_RSP],
		.ip = from->rip,
		.flags = from->rflags,
		.cs = CODE_SEGMENT,
		.ss = STACK_SEGMENT,
	};
}

/* Where the frame's state goes, @size bytes; the frame itself is below. 0: the alternate stack
 * is full. */
static uint64_t place(const struct task *task, uint64_t rsp, bool may_change, size_t size,
		      uint64_t *state)
{
	const stack_t *alternate = &task->stack;
	bool within = signal_stack_flags(alternate, rsp) == SS_ONSTACK;
	uint64_t top = rsp - RED_ZONE;

	if (may_change && signal_stack_flags(alternate, top) == 0) {
		top = (uint64_t)alternate->ss_sp + alternate->ss_size;
		within = true;
	}
	*state = (top - size) & -(uint64_t)FPU_ALIGNMENT;
	uint64_t frame = ((*state - sizeof(struct frame)) & -16UL) - 8;
	return within && !signal_on_stack(alternate, frame) ? 0 : frame;
}

int64_t frame_make(struct thread *thread, const struct signal_note *note,
		   const struct signal_action *action)
{
	_Alignas(FPU_ALIGNMENT) char state[FPU_STATE_MAX];
	struct task *task = thread->task;
	struct regs *regs = &thread->regs;
	struct frame frame = {
		.back = action->restorer,
		.context = {.flags = fpu_context_flags(), .stack = task->stack, .mask = note->mask},
		.info = note->info,
	};
	const size_t size = fpu_save(state);
	uint64_t state_at;
	uint64_t at = place(task, regs->gpr[REG_RSP], action->flags & SA_ONSTACK, size, &state_at);

	if (!at || !(action->flags & SA_RESTORER))
		return -EFAULT;
	registers_to(regs, &frame.context.registers);
	frame.context.registers.trapno = note->trap;
	frame.context.registers.err = note->error;
	frame.context.registers.cr2 = note->cr2;
	frame.context.registers.oldmask = note->mask;
	frame.context.registers.fpstate = state_at;
	if (copy_out(state_at, state, size) || copy_out(at, &frame, sizeof(frame)))
		return -EFAULT;

	if ((unsigned int)task->stack.ss_flags & SS_AUTODISARM)
		task->stack = (stack_t){.ss_flags = SS_DISABLE};
	fpu_reset();
	regs->gpr[REG_RDI] = (uint64_t)note->info.si_signo;
	regs->gpr[REG_RSI] = at + offsetof(struct frame, info);
	regs->gpr[REG_RDX] = at + offsetof(struct frame, context);
	regs->gpr[REG_RAX] = 0;
	regs->gpr[REG_RSP] = at;
	regs->rip = action->handler;
	regs->rflags &= ~(X86_EFLAGS_DF | X86_EFLAGS_RF | X86_EFLAGS_TF);
	return 0;
}

/*
 * A real rt_sigreturn: sets vector state, mask and all registers in one step. The kernel looks for
 * the context where rsp points.
 */
static _Noreturn void return_through(const struct signal_context *context)
{
	__asm__ volatile("mov %0, %%rsp\n\t"
			 "mov %1, %%eax\n\t"
			 "syscall\n\t"
			 "ud2"
			 :
			 : "r"(context), "i"(__NR_rt_sigreturn)
			 : "memory");
	__builtin_unreachable();
}

static stack_t kernel_stack(void)
{
	stack_t stack;

	sys(__NR_sigaltstack, NULL, &stack);
	return stack;
}

int64_t sys_rt_sigreturn(struct thread *thread, struct syscall *call)
{
	struct task *task = thread->task;
	struct regs *regs = &thread->regs;
	struct signal_context context;
	signal_set mask;

	(void)call;
	if (copy_in(&context, regs->gpr[REG_RSP], sizeof(context)))
		return signal_force(thread, SIGSEGV, SI_KERNEL, 0) ? SYSCALL_REGISTERS_SET
								   : SYSCALL_NOT_MADE;
	if (!signal_hold(thread, &mask))
		return SYSCALL_NOT_MADE;

	const struct sigcontext_64 from = context.registers;
	*regs = (struct regs){
		.gpr = {from.ax, from.cx, from.dx, from.bx, from.sp, from.bp, from.si, from.di,
			from.r8, from.r9, from.r10, from.r11, from.r12, from.r13, from.r14,
			from.r15},
		.rip = from.ip,
		.rflags = (regs->rflags & ~FLAGS_TAKEN) | (from.flags & FLAGS_TAKEN),
	};
	signal_stack_change(task, &context.stack, regs->gpr[REG_RSP]);
	context.mask = signal_set_program_mask(task, context.mask);

	/* The kernel takes the vector state from the program's frame; the rest is done. */
	context.stack = kernel_stack();
	context.registers.ip = (uint64_t)translate_run;
	context.registers.di = (uint64_t)thread;
	context.registers.sp = (uint64_t)thread->stack;
	context.registers.flags = FLAGS_CLEAN;
	context.registers.cs = CODE_SEGMENT;
	context.registers.ss = STACK_SEGMENT;
	clock_timer_follow(thread); /* that it stood for the call, nobody behind here would undo */
	return_through(&context);
}

_Noreturn void frame_leave(const struct regs *regs, signal_set mask, const stack_t *stack)
{
	_Alignas(FPU_ALIGNMENT) char state[FPU_STATE_MAX];
	struct signal_context context = {
		.flags = fpu_context_flags(),
		.stack = *stack,
		.mask = mask,
	};

	registers_to(regs, &context.registers);
	context.registers.fpstate = (uint64_t)state;
	fpu_save(state);
	return_through(&context);
}
