// SPDX-License-Identifier: MIT
/*
 * From a note to the program: its handler, its end, or nothing at all.
 *
 * While this runs every signal but SIGSEGV and SIGBUS is blocked, since a note has been made. The
 * last step is always to give the thread the mask that it goes on with; from then on the next
 * signal may come, and makes the next note.
 */
#include "runtime/linux/signal.h"

#include <asm/errno.h>
#include <linux/signal.h>

#include "core/core.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/tasks.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

#define TRAP_INVALID	6
#define TRAP_PROTECTION 13
#define TRAP_PAGE_FAULT 14
#define ERROR_PRESENT	0x01
#define ERROR_WRITE	0x02
#define ERROR_USER	0x04
#define ERROR_FETCH	0x10

enum { DEFAULT_HANDLER = 0, IGNORE_HANDLER = 1 };

static bool ignored_by_default(int number)
{
	return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
}

static bool stops_by_default(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void go_on_under(struct thread *thread, signal_set mask)
{
	signal_set_kernel_mask(signal_set_program_mask(thread->task, mask));
	signal_release_held(thread, mask);
}

/*
 * Ends the process as the kernel would have. The signal is sent again, with what was told of it,
 * and hits the program in its own state, so that even a core file shows that.
 */
static _Noreturn void end_by(struct thread *thread, const siginfo_t *info)
{
	static const struct signal_action by_default;
	const stack_t none = {.ss_flags = SS_DISABLE};
	int number = info->si_signo;

	signal_set_kernel_mask(~0UL);
	signal_set_kernel_action(number, &by_default, NULL);
	tasks_end_all(thread); /* while the kernel tells what software events have counted */
	int64_t pid = sys(__NR_getpid), tid = sys(__NR_gettid);
	if (sys(__NR_rt_tgsigqueueinfo, pid, tid, number, info))
		sys(__NR_tgkill, pid, tid, number);
	frame_leave(&thread->regs, ~SIGNAL_BIT(number), &none);
}

/* The default action of a signal that had a handler until just now. */
static void act_by_default(struct thread *thread, const struct signal_note *note)
{
	int number = note->info.si_signo;

	if (ignored_by_default(number)) {
		go_on_under(thread, note->mask);
		return;
	}
	if (!stops_by_default(number))
		end_by(thread, &note->info);
	sys(__NR_tgkill, sys(__NR_getpid), sys(__NR_gettid), number);
	go_on_under(thread, note->mask & ~SIGNAL_BIT(number));
	go_on_under(thread, note->mask);
}

/*
 * What the kernel calls forcing: a signal that the program cannot go on without having seen. When
 * it blocks or ignores it, it ends.
 */
static bool can_be_forced(const struct signal_note *note, const struct signal_action *action)
{
	return !(note->blocked & SIGNAL_BIT(note->info.si_signo)) &&
	       action->handler != IGNORE_HANDLER;
}

/*
 * Who is told that a signal has ended a child finds that in its rings: the kernel writes the
 * child's PERF_RECORD_EXIT before. A child that ends by itself has done so, too; of others the
 * monitor does.
 */
static void settle_killed(const siginfo_t *info)
{
	if (info->si_signo == SIGCHLD &&
	    (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED) && core_nr_events() &&
	    !confined())
		control_settle();
}

static void deliver(struct thread *thread, struct signal_note *note, bool forced)
{
	struct task *task = thread->task;
	struct signal_action action;
	int number = note->info.si_signo;

	signal_action_get(task, number, &action);
	if (forced && !can_be_forced(note, &action))
		end_by(thread, &note->info);
	if (action.handler == IGNORE_HANDLER) {
		go_on_under(thread, note->mask);
		return;
	}
	if (action.handler == DEFAULT_HANDLER) {
		act_by_default(thread, note);
		return;
	}
	settle_killed(&note->info);
	if (action.flags & SA_RESETHAND)
		signal_action_reset(task, number);
	/* A breakpoint that the thread stands at has been told of: not again when it goes on. */
	if (thread->touches.told == thread->regs.rip)
		thread->regs.rflags |= X86_EFLAGS_RF;
	if (frame_make(thread, note, &action)) {
		/* No room for the frame: that is a SIGSEGV in its turn, or the end of it. */
		memset(&note->info, 0, sizeof(note->info));
		note->info.si_signo = SIGSEGV;
		note->info.si_code = SI_KERNEL;
		if (number == SIGSEGV)
			end_by(thread, &note->info);
		deliver(thread, note, true);
		return;
	}
	/* RF in the frame says so when it goes on there; until then it is met again. */
	thread->touches.told = 0;
	signal_set mask = note->blocked | action.mask;
	if (!(action.flags & SA_NODEFER))
		mask |= SIGNAL_BIT(number);
	go_on_under(thread, mask);
}

static bool is_fault_of(const siginfo_t *info)
{
	return (info->si_signo == SIGSEGV || info->si_signo == SIGBUS) && info->si_code > 0;
}

/* Whether the processor has told the kernel of an address that is not there, or not for that. */
static bool is_page_fault(const siginfo_t *info)
{
	return is_fault_of(info) && info->si_code != SI_KERNEL;
}

static void deliver_note(struct thread *thread)
{
	struct signal_note note = thread->task->note;
	uint64_t address = (uint64_t)note.info.si_addr;

	__atomic_and_fetch(&thread->pending, ~(uint32_t)PENDING_NOTE, __ATOMIC_RELAXED);
	if (note.info.si_signo == SIGSEGV && note.info.si_code == SEGV_ACCERR &&
	    note.error & ERROR_WRITE && memory_written(address)) {
		/* Only the translator's page: the program never hears of it. */
		translate_written(thread, address);
		go_on_under(thread, note.mask);
		return;
	}
	thread->events.faults_failed += is_page_fault(&note.info);
	deliver(thread, &note, is_fault_of(&note.info));
}

void linux_deliver(struct thread *thread)
{
	if (thread->pending & PENDING_NOTE)
		deliver_note(thread);
	if (thread->pending & PENDING_KICK)
		__atomic_and_fetch(&thread->pending, ~(uint32_t)PENDING_KICK, __ATOMIC_RELAXED);
	tasks_update(thread);
	if (thread->task->detach != DETACH_COMING)
		return;
	__atomic_and_fetch(&thread->pending, ~(uint32_t)PENDING_SUMMONS, __ATOMIC_RELAXED);
	linux_detach(thread);
}

bool signal_force(struct thread *thread, int number, int code, uint64_t address)
{
	struct signal_note note = {
		.info = {.si_signo = number, .si_code = code},
	};
	char byte;

	if (!signal_hold(thread, &note.mask))
		return false;
	signal_set_kernel_mask(~SIGNALS_FAULTS);
	note.mask = note.blocked = signal_program_mask(thread->task, note.mask);
	thread->regs.rflags |= X86_EFLAGS_RF; /* as in the frame of any fault */
	if (code != SI_KERNEL)
		note.info.si_addr = (void *)address;
	if (number == SIGILL)
		note.trap = TRAP_INVALID;
	if (number == SIGSEGV && code == SI_KERNEL)
		note.trap = TRAP_PROTECTION;
	if (number == SIGSEGV && code != SI_KERNEL) {
		note.trap = TRAP_PAGE_FAULT;
		note.cr2 = address;
		note.error = ERROR_USER | ERROR_FETCH;
		/* A page that can be read, but not executed, is there; of its own the kernel says
		 * so of all. */
		if (address >= ADDRESS_MAX - PAGE ||
		    (code == SEGV_ACCERR && copy_in(&byte, address, 1) == 0))
			note.error |= ERROR_PRESENT;
	}
	thread->events.faults_failed += is_page_fault(&note.info);
	deliver(thread, &note, true);
	return true;
}

void linux_fault(struct thread *thread, int signo, int code, uint64_t address)
{
	/* If another signal comes first, the fault is still there afterwards. */
	signal_force(thread, signo, code, address);
}
