// SPDX-License-Identifier: MIT
/*
 * The kernel's handler. Where the signal found the thread decides what to do with the frame that
 * the kernel made:
 *
 *	in translated code	the program's state is recovered into thread->regs, and the frame's
 *				rip is set to the dispatcher
 *	before a system call	rip is set to where that call gives up (syscalls.h)
 *	elsewhere		the runtime goes on with what it does, and ends in the dispatcher
 *
 * In each case a note is made, and the mask in the frame becomes "all", so that the note is the
 * only one until it has been delivered. Vector registers are as the program left them all the time:
 * the kernel restores them with its frame, and the runtime does not touch them.
 */
#include "runtime/linux/signal.h"

#include <asm/errno.h>
#include <asm/poll.h>
#include <linux/signal.h>

#include "abi/control.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/faults.h"
#include "runtime/say.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

/* What of the program's flags is for the kernel to do; the rest is done on delivery. */
#define KERNEL_FLAGS (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART)

void signal_restorer(void);
__asm__(".text\n"
	".hidden signal_restorer\n"
	".type signal_restorer, @function\n"
	"signal_restorer:\n"
	"	mov $15, %eax\n" /* rt_sigreturn */
	"	syscall\n"
	".size signal_restorer, . - signal_restorer\n");

static void registers_of(const struct sigcontext_64 *from, struct regs *to)
{
	*to = (struct regs){
		.gpr = {[REG_RAX] = from->ax,
			[REG_RCX] = from->cx,
			[REG_RDX] = from->dx,
			[REG_RBX] = from->bx,
			[REG_RSP] = from->sp,
			[REG_RBP] = from->bp,
			[REG_RSI] = from->si,
			[REG_RDI] = from->di,
			[REG_R8] = from->r8,
			[REG_R9] = from->r9,
			[REG_R10] = from->r10,
			[REG_R11] = from->r11,
			[REG_R12] = from->r12,
			[REG_R13] = from->r13,
			[REG_R14] = from->r14,
			[REG_R15] = from->r15},
		.rip = from->ip,
		.rflags = from->flags,
	};
}

static bool is_fault(const siginfo_t *info)
{
	if (info->si_signo == SIGTRAP && info->si_code == TRAP_PERF)
		return false; /* of an event: event_host.c */
	if (info->si_signo == SIGILL && info->si_code == SI_KERNEL)
		return false; /* of a call that only the kernel's own uprobes may make: uretprobe(2) */
	switch (info->si_signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGTRAP:
		return info->si_code > 0;
	default:
		return false;
	}
}

static _Noreturn void broken(int number, uint64_t rip, const siginfo_t *info)
{
	die("the runtime itself was hit by signal %d at %x, address %x: please report this",
	    (int64_t)number, rip, (uint64_t)info->si_addr);
}

/* Sends the thread from where it is to where the note will be seen. */
static void redirect(struct thread *thread, const siginfo_t *info, struct sigcontext_64 *context)
{
	struct regs regs;
	struct counts counts;
	uint64_t rip = context->ip;

	registers_of(context, &regs);
	switch (translate_recover(thread, &regs, &counts)) {
	case TRANSLATE_INSIDE:
		translate_count(thread, &counts, fpu_vectors(context->fpstate));
		if (!counts.begun)
			translate_not_passed(thread, &regs);
		thread->touches.passed = 0;
		/* Signals of an instruction that is at fault itself tell its address. */
		if (is_fault(info) && info->si_addr == (void *)rip)
			thread->task->note.info.si_addr = (void *)regs.rip;
		thread->regs = regs;
		context->ip = (uint64_t)translate_run;
		/* It takes its stack itself, but with the program's, if that is not canonical, some
		 * processors do not return to it. */
		context->sp = (uint64_t)thread->stack;
		context->di = (uint64_t)thread;
		context->flags = FLAGS_CLEAN;
		return;
	case TRANSLATE_LEAVING:
		return;
	case TRANSLATE_ELSEWHERE:
		break;
	}
	if (context->ip == (uint64_t)translate_run)
		return; /* the state that rt_sigreturn was to restore is no good */
	if (is_fault(info))
		broken(info->si_signo, rip, info);
	/* At the very instruction, it has most likely been made, and the kernel makes it again:
	 * so would the program, and come to its breakpoint again. */
	if (syscall_was_made(rip + 2))
		thread->touches.passed = 0;
	syscall_not_made(&rip);
	context->ip = rip;
}

static siginfo_t *held_place(struct task *task, int number)
{
	return &task->held[number == SIGBUS];
}

/* A SIGSEGV or SIGBUS that somebody sent, at a time when the program must not see it. */
static void hold(struct task *task, const siginfo_t *info)
{
	if (task->faults_held & SIGNAL_BIT(info->si_signo))
		return; /* it does not queue */
	*held_place(task, info->si_signo) = *info;
	task->faults_held |= SIGNAL_BIT(info->si_signo);
}

/* Without F_SETSIG there is none. */
static int code_of_band(int64_t band)
{
	if (!band)
		return SI_KERNEL;
	return band & POLLHUP ? POLL_HUP : POLL_IN;
}

void signal_told(siginfo_t *info)
{
	/* Of an event that another process has overflown: event_host.c. */
	if (info->si_code == SI_SIGIO)
		info->si_code = code_of_band(info->si_band);
	if (info->si_signo == SIGTRAP && info->si_code == TRAP_PERF_BLOCKED)
		info->si_code = TRAP_PERF;
}

static void note(struct thread *thread, const siginfo_t *info, const struct signal_context *context)
{
	const struct sigcontext_64 *registers = &context->registers;
	struct task *task = thread->task;
	struct signal_note *to = &task->note;

	/* First, so that a SIGSEGV which somebody sends just now does not become a note, too. */
	thread->pending |= PENDING_NOTE;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	to->info = *info;
	signal_told(&to->info);
	/* The kernel has seen the call in syscall_pass(). */
	if (info->si_signo == SIGSYS && info->si_code == SYS_SECCOMP)
		to->info.si_call_addr = (void *)thread->regs.rip;
	to->trap = registers->trapno;
	to->error = registers->err;
	to->cr2 = registers->cr2;
	to->mask = signal_program_mask(task, context->mask);
	to->blocked = to->mask;
	/* The mask that a call waited under still holds when the kernel makes the frame. */
	if (task->waiting && syscall_was_made(registers->ip) && registers->ax == (uint64_t)-EINTR)
		to->blocked = task->waiting_mask;
}

/* The kernel leaves AC as the program has it; the runtime is not aligned for it. */
static void allow_unaligned(void)
{
	uint64_t flags = __builtin_ia32_readeflags_u64();

	if (flags & X86_EFLAGS_AC)
		__builtin_ia32_writeeflags_u64(flags & ~X86_EFLAGS_AC);
}

static bool blocks(const struct task *task, int number)
{
	return (task->waiting ? task->waiting_mask : task->faults_blocked) & SIGNAL_BIT(number);
}

/* Where no more signals may be queued (RLIMIT_SIGPENDING), one comes all the same, but nothing that
 * its sender has told of it. */
static bool is_untold(const siginfo_t *info)
{
	return info->si_code == SI_USER && !info->si_pid && !info->si_uid;
}

static bool is_summons(const struct task *task, const siginfo_t *info)
{
	return task->detach == DETACH_SUMMONED && info->si_signo == SIGBUS &&
	       (info->si_code == SI_TKILL || is_untold(info));
}

/* What a handler may write to before anything else, below its frame. */
enum { FRAME_REACH = 4096 };

static void on_signal(int number, siginfo_t *info, void *frame);

/*
 * When the kernel has a signal of an event (TRAP_PERF) and a fault to tell of, the fault can come
 * second: on top of the other's handler, which has not begun. The instruction that is at fault is
 * executed again behind that one. What lies just below the frame is the handler's own.
 */
static bool comes_again(const siginfo_t *info, const struct sigcontext_64 *context)
{
	const uint64_t below = context->sp - (uint64_t)info->si_addr;

	return context->ip == (uint64_t)on_signal && SIGNAL_BIT(info->si_signo) & SIGNALS_FAULTS &&
	       below - 1 >= FRAME_REACH;
}

/* One that is not told of is taken for a kick where there has been any reason for one: a program
 * that nobody has sent a signal must not end by it. */
static bool is_kick(const struct thread *thread, const siginfo_t *info)
{
	if (info->si_signo != KICK_SIGNAL)
		return false;
	if (is_untold(info))
		return __atomic_load_n(&thread->events.changes, __ATOMIC_RELAXED);
	return (info->si_code == SI_QUEUE || info->si_code == SI_TIMER) &&
	       info->si_value.sival_ptr == (void *)KICK_VALUE;
}

/*
 * Of a page fault, whether the program had it, itself or in a call. For one of the runtime's nobody
 * comes out: what it does again after that, as exec, would have the next one.
 */
static bool is_programs(const struct sigcontext_64 *context)
{
	return translate_has_emitted(context->ip) || syscall_was_made(context->ip);
}

/*
 * To the dispatcher, for a reason of the runtime's own. The program does not hear of it: a call
 * that it has interrupted is made again.
 */
static void call_in(struct thread *thread, enum pending why, const siginfo_t *info,
		    struct sigcontext_64 *context)
{
	uint64_t rip = context->ip;

	thread->pending |= why;
	if (syscall_interrupted(&rip, context->ax))
		context->ip = rip;
	else
		redirect(thread, info, context);
}

static void on_signal(int number, siginfo_t *info, void *frame)
{
	struct thread *thread = thread_self();
	struct task *task = thread->task;
	struct signal_context *context = frame;
	bool fault = is_fault(info);
	uint64_t rip = context->registers.ip;

	allow_unaligned();
	if (fault && copy_fault(&rip)) {
		context->registers.ip = rip;
		return;
	}
	if (fault && comes_again(info, &context->registers))
		return;
	if (is_summons(task, info)) {
		task->detach = DETACH_COMING;
		call_in(thread, PENDING_SUMMONS, info, &context->registers);
		return;
	}
	if (is_kick(thread, info)) {
		call_in(thread, PENDING_KICK, info, &context->registers);
		return;
	}
	if (info->si_signo == KICK_SIGNAL && faults_tell(task, info)) {
		if (is_programs(&context->registers))
			call_in(thread, PENDING_KICK, info, &context->registers);
		return;
	}
	if (SIGNAL_BIT(number) & SIGNALS_FAULTS && !fault &&
	    (thread->pending & PENDING_NOTE || blocks(task, number))) {
		hold(task, info);
		return;
	}
	if (info->si_code == SI_USER && control_handled(number, info->si_pid)) {
		call_in(thread, PENDING_KICK, info, &context->registers);
		return;
	}
	note(thread, info, context);
	redirect(thread, info, &context->registers);
	context->mask = ~SIGNALS_FAULTS;
}

int64_t signal_set_kernel_action(int number, const struct signal_action *action,
				 struct signal_action *old)
{
	return sys(__NR_rt_sigaction, number, action, old, sizeof(signal_set));
}

int64_t signal_catch(int number, uint64_t flags)
{
	struct signal_action action = {
		.handler = (uint64_t)on_signal,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER | (flags & KERNEL_FLAGS),
		.restorer = (uint64_t)signal_restorer,
		.mask = ~SIGNALS_FAULTS,
	};

	return signal_set_kernel_action(number, &action, NULL);
}

signal_set signal_set_kernel_mask(signal_set mask)
{
	signal_set old;

	sys(__NR_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof(mask));
	return old;
}

bool signal_hold(struct thread *thread, signal_set *mask)
{
	*mask = signal_set_kernel_mask(~0UL);
	if (!thread->pending)
		return true;
	signal_set_kernel_mask(*mask);
	return false;
}

/* Of what no action is known, only the kernel knows what exec has left: the default or SIG_IGN. */
static bool is_ignored(const struct task *task, int number)
{
	const signal_set by_default = SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) |
				      SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH);
	const uint64_t handler = task->actions->known & SIGNAL_BIT(number)
					 ? task->actions->of[number].handler
					 : (uint64_t)SIG_DFL;

	return handler == (uint64_t)SIG_IGN ||
	       (handler == (uint64_t)SIG_DFL && by_default & SIGNAL_BIT(number));
}

void signal_hold_ignored_not(const struct task *task, signal_set mask)
{
	signal_set ignored = 0;

	for (int number = 1; number <= SIGNALS; number++)
		if (!(SIGNALS_FAULTS & SIGNAL_BIT(number)) && is_ignored(task, number))
			ignored |= SIGNAL_BIT(number);
	signal_set_kernel_mask(~ignored | mask);
}

signal_set signal_program_mask(const struct task *task, signal_set kernel)
{
	return (kernel & ~SIGNALS_FAULTS) | task->faults_blocked;
}

signal_set signal_set_program_mask(struct task *task, signal_set mask)
{
	task->faults_blocked = mask & SIGNALS_FAULTS;
	return mask & ~SIGNALS_FAULTS;
}

int signal_take_held(struct task *task, signal_set set, siginfo_t *info)
{
	signal_set taken = task->faults_held & set;

	if (!taken)
		return 0;
	int number = taken & SIGNAL_BIT(SIGBUS) ? SIGBUS : SIGSEGV;
	*info = *held_place(task, number);
	task->faults_held &= ~SIGNAL_BIT(number);
	return number;
}

void signal_release_held(struct thread *thread, signal_set mask)
{
	struct task *task = thread->task;
	siginfo_t info;

	if (!(task->faults_held & ~task->faults_blocked))
		return;
	/* From here on no other note is made. */
	signal_set_kernel_mask(~SIGNALS_FAULTS);
	if (thread->pending || !signal_take_held(task, ~task->faults_blocked, &info))
		return;
	task->note = (struct signal_note){.info = info, .mask = mask, .blocked = mask};
	thread->pending |= PENDING_NOTE;
}

void signal_boot(struct thread *thread)
{
	static const int faults[] = {SIGSEGV, SIGBUS};
	struct task *task = thread->task;
	signal_set mask = signal_set_kernel_mask(~0UL);

	fpu_learn();
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		struct signal_action *action = &task->actions->of[faults[i]];

		signal_set_kernel_action(faults[i], NULL, action);
		task->actions->known |= SIGNAL_BIT(faults[i]);
		signal_catch(faults[i], SA_RESTART);
	}
	signal_set_kernel_mask(signal_set_program_mask(task, mask));
}

void signal_give_back_held(struct task *task)
{
	for (int number = SIGBUS; number <= SIGSEGV; number += SIGSEGV - SIGBUS)
		if (task->faults_held & SIGNAL_BIT(number))
			sys(__NR_rt_tgsigqueueinfo, sys(__NR_getpid), sys(__NR_gettid), number,
			    held_place(task, number));
	task->faults_held = 0;
}

void signal_before_exec(struct thread *thread)
{
	struct task *task = thread->task;
	static const struct signal_action ignore = {.handler = (uint64_t)SIG_IGN};

	for (int number = SIGBUS; number <= SIGSEGV; number += SIGSEGV - SIGBUS)
		if (task->actions->of[number].handler == ignore.handler)
			signal_set_kernel_action(number, &ignore, NULL);
	signal_set blocked = task->faults_blocked;
	if (!blocked)
		return;
	sys(__NR_rt_sigprocmask, SIG_BLOCK, &blocked, NULL, sizeof(blocked));
	signal_give_back_held(task);
}

void signal_after_exec(struct thread *thread)
{
	signal_set faults = SIGNALS_FAULTS;

	(void)thread;
	signal_catch(SIGSEGV, SA_RESTART);
	signal_catch(SIGBUS, SA_RESTART);
	sys(__NR_rt_sigprocmask, SIG_UNBLOCK, &faults, NULL, sizeof(faults));
}
