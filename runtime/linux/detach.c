// SPDX-License-Identifier: MIT
/*
 * A program that uses GS itself cannot be translated: GS is where translated code finds its thread.
 * Such a process gets back all that the runtime holds for it (actions, masks, alternate stacks,
 * permissions of its pages) and goes on natively from where it is.
 *
 * Actions are the whole process's, so its threads leave together. The first that meets GS summons
 * the others by a SIGBUS, which is never blocked and always ours. Each comes to the dispatcher as
 * it does for any signal, blocks all signals, and waits there until the last one has come.
 */
#include <asm/errno.h>
#include <asm/prctl.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/threads.h"
#include "runtime/say.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

enum { SYSCALL_SIZE = 2, FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

/* Of a process, in its actions. */
enum detaching { STAYING, GATHERING, DETACHED };

static void give_back_actions(const struct task *task)
{
	for (int number = 1; number <= SIGNALS; number++)
		if (task->actions->known & SIGNAL_BIT(number))
			signal_set_kernel_action(number, &task->actions->of[number], NULL);
}

/* Whom a thread waits for, and how many of them have not come. */
struct company {
	const struct task *leader;
	unsigned int missing;
};

/* One that is just beginning has no number yet, and is summoned the next time. */
static void summon(struct task *task, void *what)
{
	struct company *company = what;
	uint32_t not = DETACH_NOT;
	int tid;

	if (task == company->leader || task->actions != company->leader->actions)
		return;
	company->missing += __atomic_load_n(&task->detach, __ATOMIC_ACQUIRE) != DETACH_READY;
	tid = task->thread ? __atomic_load_n(&task->thread->tid, __ATOMIC_ACQUIRE) : 0;
	if (tid && __atomic_compare_exchange_n(&task->detach, &not, DETACH_SUMMONED, false,
					       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		sys(__NR_tgkill, task->pid, tid, SIGBUS);
}

/* Threads may begin and end meanwhile, so there is no number to wait for: look again. */
static void gather(const struct task *leader)
{
	const struct {
		int64_t seconds, nanoseconds;
	} moment = {0, 100000};
	struct company company = {.leader = leader};

	for (;;) {
		company.missing = 0;
		threads_visit(summon, &company);
		if (!company.missing)
			return;
		sys(__NR_nanosleep, &moment, NULL);
	}
}

static void lead(struct task *task)
{
	char name[16] = "?";

	sys(__NR_prctl, PR_GET_NAME, name);
	say(segment_is_fs() ? "%s uses the FS register in a rare way: it runs natively from here on"
			    : "%s uses the GS register: it runs natively from here on",
	    name);
	gather(task);
	memory_unwatch_all();
	give_back_actions(task);
	descriptors_keep(false);
	__atomic_store_n(&task->actions->detaching, DETACHED, __ATOMIC_RELEASE);
	sys(__NR_futex, &task->actions->detaching, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* A thread that came by itself has been sent the signal none the less. */
static void take_summons(void)
{
	const signal_set set = SIGNAL_BIT(SIGBUS);

	sys(__NR_rt_sigtimedwait, &set, NULL, NULL, sizeof(set));
}

static void follow(struct task *task)
{
	uint32_t *detaching = &task->actions->detaching;
	uint32_t before = __atomic_exchange_n(&task->detach, DETACH_READY, __ATOMIC_ACQ_REL);

	while (__atomic_load_n(detaching, __ATOMIC_ACQUIRE) == GATHERING)
		sys(__NR_futex, detaching, FUTEX_WAIT_PRIVATE, GATHERING, NULL);
	if (before == DETACH_SUMMONED)
		take_summons();
}

/* Of a signal that was ignored when the thread came here, and got its handler since. */
static void give_back_note(const struct thread *thread)
{
	const siginfo_t *info = &thread->task->note.info;

	if (thread->pending & PENDING_NOTE)
		sys(__NR_rt_tgsigqueueinfo, sys(__NR_getpid), sys(__NR_gettid), info->si_signo,
		    info);
}

void linux_detach(struct thread *thread)
{
	struct task *task = thread->task;
	uint32_t staying = STAYING;
	signal_set mask;

	if (!signal_hold(thread, &mask))
		return; /* the instruction, or the summons, is still there afterwards */
	task->regs = thread->regs;
	signal_hold_ignored_not(task, mask);
	if (__atomic_compare_exchange_n(&task->actions->detaching, &staying, GATHERING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		lead(task);
	else
		follow(task);
	signal_set_kernel_mask(~0UL);
	give_back_note(thread);
	signal_give_back_held(task);
	tasks_end(thread);
	segment_give_back(thread->fs_base);
	frame_leave(&task->regs, signal_program_mask(task, mask), &task->stack);
}

/* As far as the kernel lets anybody have it. */
static int64_t set_fs(struct thread *thread, struct syscall *call)
{
	const uint64_t end = (1UL << 47) - PAGE;
	int64_t result = 0;

	if (!segment_is_fs())
		result = syscall_pass(thread, call);
	else if (call->args[1] >= end)
		result = -EPERM;
	else
		thread->fs_base = call->args[1];
	thread->fs.known = 0;
	return result;
}

int64_t sys_arch_prctl(struct thread *thread, struct syscall *call)
{
	const uint64_t base = 0; /* as far as the program knows */
	int64_t result;

	switch (call->args[0]) {
	case ARCH_GET_GS:
		if (segment_is_fs())
			return syscall_pass(thread, call);
		return copy_out(call->args[1], &base, sizeof(base));
	case ARCH_SET_GS:
		if (segment_is_fs())
			return syscall_pass(thread, call);
		thread->regs.rip -= SYSCALL_SIZE;
		linux_detach(thread);
		return SYSCALL_REGISTERS_SET;
	case ARCH_SET_FS:
		return set_fs(thread, call);
	case ARCH_GET_FS:
		if (!segment_is_fs())
			return syscall_pass(thread, call);
		return copy_out(call->args[1], &thread->fs_base, sizeof(thread->fs_base));
	case ARCH_REQ_XCOMP_PERM:
		result = syscall_pass(thread, call);
		if (!result)
			fpu_learn();
		return result;
	default:
		return syscall_pass(thread, call);
	}
}
