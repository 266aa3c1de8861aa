// SPDX-License-Identifier: MIT
/*
 * How a thread begins: its parent makes a slot with the registers that it will have, blocks all
 * signals and calls clone(2) with a stack in that slot; the child sets GS base, its signal stack
 * and its mask, and enters the dispatcher. A child with memory of its own (fork) begins on its copy
 * of the parent's stack, throws away the slots of threads that it does not have, and takes its own
 * page of the arena. Until GS base is set a child must not look at thread_self(): that is its
 * parent.
 */
#include "runtime/linux/threads.h"

#include <asm/errno.h>
#include <asm/poll.h>
#include <asm/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time_types.h>

#include "core/time.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/brk.h"
#include "runtime/linux/clock_timer.h"
#include "runtime/linux/code_store.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/exec.h"
#include "runtime/linux/faults.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/halted.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_locked.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/thread_slots.h"
#include "runtime/linux/uprobe_returns.h"
#include "runtime/say.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif

int64_t clone_pass(const struct syscall *call, struct task *child);
_Noreturn void thread_end(uint64_t status, uint32_t *used);
_Noreturn void thread_begin(struct task *task);

void threads_unshared(struct thread *thread)
{
	thread->task->own_numbers = true;
	slots_tables_part();
	arena_hold(thread, thread->task->owner);
}

/* What the kernel has to know of a thread before anything else, and what others read of it. */
static void settle(struct task *task)
{
	const stack_t stack = {.ss_sp = slot_signal_stack(task), .ss_size = SIGNAL_STACK_SIZE};

	segment_set((uint64_t)task->thread);
	sys(__NR_sigaltstack, &stack, NULL);
	task->pid = (int)sys(__NR_getpid);
	task->detach = DETACH_NOT;
	/* Last: from here on it can be sent a signal. */
	__atomic_store_n(&task->thread->tid, (int)sys(__NR_gettid), __ATOMIC_RELEASE);
}

/*
 * Somebody to take the first page: it may have been left by one that was killed, and his events
 * have to be ended first.
 */
static void stand_in(struct task *task)
{
	struct thread *thread = slot_adopt(task, slot_own_thread(task), 0);

	thread->tid = (int)sys(__NR_gettid);
	segment_set((uint64_t)thread);
	task->thread = NULL;
}

struct thread *threads_boot(uint32_t owner)
{
	struct task *task;
	struct thread *before;

	arena_boot(owner);
	task = slot_new();
	if (!task)
		die("no memory for a thread");
	task->stack.ss_flags = SS_DISABLE;
	task->actions = signal_actions_new(NULL);
	if (!task->actions)
		die("no memory for a thread");
	stand_in(task);
	before = arena_take_over(owner);
	if (before)
		slot_adopt(task, before, before->page);
	else
		slot_thread(task);
	task->thread->fs_base = 0;
	task->thread->fs.known = 0;
	settle(task);
	translate_thread(task->thread);
	return task->thread;
}

/* ---- beginnings ---- */

static struct lock *const fork_locks[] = {
	&event_map_changing,   &event_map_lock,	 &event_fds_lock,  &event_passed_lock,
	&virtual_folders_lock, &semaphores_lock, &maps_files_lock,
};

enum { FORK_LOCKS = sizeof(fork_locks) / sizeof(*fork_locks) };

/* Nothing of the runtime is half done in the memory that a forked child gets. */
static void lock_all(void)
{
	for (int i = 0; i < FORK_LOCKS; i++)
		lock_take(fork_locks[i]);
	slots_lock();
	brk_lock();
	translate_lock_all();
}

static void unlock_all(void)
{
	translate_unlock_all();
	brk_unlock();
	slots_unlock();
	for (int i = FORK_LOCKS; i > 0; i--)
		lock_give(fork_locks[i - 1]);
}

/* In a child of fork: its parent's other threads are not there, nor the parent's pages. */
static void forget_others(struct task *self)
{
	lock_forked();
	unlock_all();
	arena_forked(self->shares_table);
	event_maps_forked();
	event_joined_forked();
	memory_locked_forked();
	slots_forked(self);
	self->actions->lock.state = 0;
	self->actions->users = 1;
	self->actions->detaching = 0;
}

/* The page that its parent has made ready: false if somebody has it who took the parent's end for
 * the child's. */
static bool has_page(struct task *task)
{
	if (task->forked || task->vfork || slots_tables_differ())
		return arena_hold(task->thread, task->owner);
	return true;
}

/* It goes on without what it would have inherited; beside others in this memory without a page. */
static void begin_anew(struct task *task)
{
	stand_in(task);
	if (!task->forked)
		task->thread = slot_own_thread(task);
	slot_thread(task);
}

/* The first that a child does. */
void thread_begin(struct task *task)
{
	const bool forked = task->forked;
	bool kept;

	if (forked)
		forget_others(task);
	kept = has_page(task);
	if (!kept)
		begin_anew(task);
	task->thread->regs = task->regs;
	task->thread->fs_base = task->fs_base;
	task->thread->fs.known = 0;
	settle(task);
	if (forked)
		translate_forked(task->thread);
	else
		translate_thread(task->thread);
	if (kept)
		tasks_begun(task->thread);
	else
		tasks_boot(task->thread);
	if (task->apart && task->thread->tid == task->pid)
		event_maps_beside();
	if (task->clear)
		signal_actions_clear(task->actions);
	signal_set_kernel_mask(task->start);
	translate_run(task->thread);
}

/* The actions of a child: shared, its own, or at the same place in its own memory. */
static struct signal_actions *actions_for(const struct task *parent, uint64_t flags)
{
	struct signal_actions *actions = parent->actions;

	if (flags & CLONE_SIGHAND)
		__atomic_add_fetch(&actions->users, 1, __ATOMIC_RELAXED);
	else if (flags & CLONE_VM)
		actions = signal_actions_new(actions);
	return actions;
}

/* Makes the child's side ready. @rsp is the program's, 0 for the parent's; @tls is for
 * CLONE_SETTLS. */
static bool conceive(struct task *child, struct thread *parent, uint64_t flags, uint64_t rsp,
		     uint64_t tls)
{
	/* What a vfork child does to its own goes with it. */
	const bool own_table = flags & CLONE_VM && !(flags & (CLONE_FILES | CLONE_VFORK));
	const bool abroad = parent->task->vfork || parent->task->abroad;

	child->actions = actions_for(parent->task, flags);
	if (!child->actions)
		return false;
	if (flags & CLONE_THREAD)
		child->pid = parent->task->pid;
	child->regs = parent->regs;
	child->regs.gpr[REG_RAX] = 0;
	if (rsp)
		child->regs.gpr[REG_RSP] = rsp;
	child->fs_base = flags & CLONE_SETTLS ? tls : parent->fs_base;
	child->vfork = flags & CLONE_VM && flags & CLONE_VFORK;
	child->abroad = flags & CLONE_VM && (own_table || abroad);
	child->apart = flags & CLONE_VM && !(flags & CLONE_VFORK) &&
		       (!(flags & CLONE_THREAD) || abroad || parent->task->apart);
	child->clear = flags & CLONE_CLEAR_SIGHAND;
	child->own_numbers = own_table || parent->task->own_numbers;
	child->waiting = false;
	child->handed_over = false;
	child->exec_lists = NULL;
	memset(child->locks, 0, sizeof(child->locks));
	child->clock_timer = CLOCK_TIMER_NONE;
	child->clock = (struct clock_looks){0}; /* its time is another */
	child->faults_held = 0;
	child->faults_blocked = parent->task->faults_blocked;
	child->stack = parent->task->stack;
	child->seccomp = parent->task->seccomp;
	/* Beside its parent in the same memory it has no alternate stack. */
	if (flags & CLONE_VM && !(flags & CLONE_VFORK))
		child->stack = (stack_t){.ss_flags = SS_DISABLE};
	child->forked = !(flags & CLONE_VM);
	uprobe_returns_begin(child);
	child->shares_table = child->forked && flags & CLONE_FILES;
	if (child->shares_table)
		event_fds_shared();
	/* Its page of the arena would be free with that table's end, which may come without a
	 * word, while this memory goes on to have to do with it: not from there. */
	if (child->abroad)
		slot_leave_page(child);
	else if (child->thread == slot_own_thread(child))
		child->thread = NULL; /* who had the slot before was without a page */
	slot_thread(child);
	child->thread->handed_over = child->forked ? arena_owner(parent) : 0;
	tasks_begin(child->thread, parent, flags);
	return true;
}

/* The page is another process's now: the child's own, or that of the image that it executed. */
static void part_with_page(struct task *child)
{
	if (child->thread->page && child->shares_table)
		arena_lend(child->thread);
	else if (child->thread->page)
		arena_give(child->thread);
	child->thread = NULL;
	child->owner = 0;
}

/* Of a child that executes another image, or ends by itself, there are none. */
static void give_locks_back(const struct task *child)
{
	/* What has been handed over is another process's by now. */
	if (child->handed_over)
		return;
	translate_interrupted(child->thread, memory_interrupted);
	lock_give_all_of(child->thread);
}

static bool process_has_ended(int pid)
{
	struct pollfd end = {.fd = (int)sys(__NR_pidfd_open, pid, 0), .events = POLLIN};
	const struct __kernel_timespec now = {0};
	int64_t result;

	if (end.fd < 0)
		return end.fd == -ESRCH;
	result = sys(__NR_ppoll, &end, 1, &now, NULL, 0);
	sys(__NR_close, end.fd);
	return result == 1;
}

/* Another one in this memory may have been killed. */
static bool is_gone(const struct thread *thread)
{
	const int pid = thread->task->pid;

	return pid && pid != thread_self()->task->pid && !confined() && process_has_ended(pid);
}

static void look_at(uint32_t tid)
{
	struct task *task = slot_of((int)tid);

	if (!task)
		return;
	if (is_gone(task->thread))
		give_locks_back(task);
	else
		halted_let_go(task->thread);
}

/* @child is about to be a process beside its parent's in this memory. */
static void goes_beside(const struct task *child, uint64_t flags)
{
	if (!child->apart || flags & CLONE_THREAD)
		return;
	event_maps_beside();
	lock_is_gone = is_gone;
	lock_look_at = look_at;
	lock_child_begins(); /* and is never known to have ended */
	/* Who has one from before has not said so, and may be killed, too. */
	lock_all();
	unlock_all();
}

/* The child is not there, or has gone, or has memory of its own by now. */
static void discard(struct task *child, bool born)
{
	if (!child->forked) {
		translate_thread_gone(child->thread);
		exec_release(child);
		faults_end(child);
		signal_actions_give(child->actions);
	}
	if (born && child->handed_over) {
		part_with_page(child);
	} else {
		/* It may have been killed with locks, for which nobody is to wait: nor are we. */
		arena_renew(child->thread);
		child->owner = child->thread->page ? arena_owner(child->thread) : 0;
		tasks_end(child->thread);
		child->thread->handed_over = 0;
	}
	slot_give(child);
}

/* Frees the slot of a process in this memory that is not there any more, or of a thread of such. */
static void bury(struct task *task, void *unused)
{
	struct thread *thread = task->thread;

	(void)unused;
	if (task->apart && thread && thread->tid &&
	    sys(__NR_tgkill, task->pid, thread->tid, 0) == -ESRCH) {
		give_locks_back(task);
		discard(task, CLONE_VM);
	}
}

static struct task *slot_take(void)
{
	struct task *task = slot_reused();

	if (!task) {
		threads_visit(bury, NULL);
		task = slot_reused();
	}
	return task ? task : slot_new();
}

/*
 * A child with memory of its own. As soon as it is there, this process has nothing to do with its
 * page any more: it may be killed with locks, and who waits for them, be it this thread, has to see
 * that nobody has the page.
 */
static int64_t bear_process(struct thread *thread, const struct syscall *call, struct task *child)
{
	struct thread *its = child->thread;
	const uint64_t id = its->page ? its->events.id : 0;
	int64_t result;

	translate_forking(thread);
	lock_all();
	result = clone_pass(call, child);
	unlock_all();
	if (result < 0) {
		discard(child, false);
		return result;
	}
	part_with_page(child);
	if (id)
		tasks_forked(its, id, (int32_t)result);
	slot_give(child);
	return result;
}

/*
 * A child of @thread by @call, of which the kernel has to be told another stack: at @stack, and for
 * clone3 its size at @size.
 */
static int64_t bear(struct thread *thread, const struct syscall *call, uint64_t flags, uint64_t rsp,
		    uint64_t tls, uint64_t *stack, uint64_t *size)
{
	const bool vfork = flags & CLONE_VM && flags & CLONE_VFORK;
	struct task *child;
	signal_set mask;
	int64_t result;

	/* What it takes is locked under its own table. */
	if (thread->task->vfork || thread->task->own_numbers)
		slots_tables_part();
	child = slot_take();
	if (!child)
		return -EAGAIN;
	if (!conceive(child, thread, flags, rsp, tls)) {
		slot_give(child);
		return -EAGAIN;
	}
	if (!signal_hold(thread, &mask)) {
		discard(child, false);
		return SYSCALL_NOT_MADE;
	}
	child->start = mask;
	signal_hold_ignored_not(thread->task, mask);
	/* As in all calls: of vfork it waits for the child. */
	if (thread->page)
		core_clock_stop(&thread->events);
	if (flags & CLONE_VM) {
		*stack = (uint64_t)(size ? slot_runtime_stack(child) : child->thread->stack);
		if (size)
			*size = RUNTIME_STACK_SIZE;
		if (vfork)
			lock_child_begins();
		goes_beside(child, flags);
		result = clone_pass(call, child);
		if (vfork) {
			give_locks_back(child);
			lock_child_ended();
		}
		/* A thread may have ended by now, and its slot be another's. */
		if (result < 0 || vfork)
			discard(child, result >= 0);
		/* Its threads have ended with it. */
		if (vfork && slots_tables_differ())
			threads_visit(bury, NULL);
	} else {
		*stack = 0;
		if (size)
			*size = 0;
		result = bear_process(thread, call, child);
	}
	if (thread->page)
		core_clock_start(&thread->events);
	signal_set_kernel_mask(mask);
	return result;
}

int64_t sys_clone(struct thread *thread, struct syscall *call)
{
	struct syscall changed = *call;
	uint64_t flags = (uint32_t)call->args[0] & ~CSIGNAL;

	if (segment_is_fs())
		changed.args[0] &= ~(uint64_t)CLONE_SETTLS;
	return bear(thread, &changed, flags, call->args[1], call->args[4], &changed.args[1], NULL);
}

static int64_t bear_simply(struct thread *thread, uint64_t flags)
{
	struct syscall call = {.number = __NR_clone, .args = {flags | SIGCHLD}};

	return bear(thread, &call, flags, 0, 0, &call.args[1], NULL);
}

int64_t sys_fork(struct thread *thread, struct syscall *call)
{
	(void)call;
	return bear_simply(thread, 0);
}

int64_t sys_vfork(struct thread *thread, struct syscall *call)
{
	(void)call;
	return bear_simply(thread, CLONE_VM | CLONE_VFORK);
}

int64_t sys_clone3(struct thread *thread, struct syscall *call)
{
	union {
		struct clone_args known;
		char bytes[PAGE]; /* as much as the kernel takes */
	} args;
	struct syscall changed = *call;
	uint64_t size = call->args[1], flags;

	/* What the kernel refuses without a look at the rest, it may refuse. */
	if (size < CLONE_ARGS_SIZE_VER0 || size > sizeof(args))
		return syscall_pass(thread, call);
	if (copy_in(&args, call->args[0], size))
		return -EFAULT;
	if (!args.known.stack != !args.known.stack_size)
		return -EINVAL;
	changed.args[0] = (uint64_t)&args;
	flags = args.known.flags;
	if (segment_is_fs())
		args.known.flags &= ~(uint64_t)CLONE_SETTLS;
	return bear(thread, &changed, flags, args.known.stack + args.known.stack_size,
		    args.known.tls, (uint64_t *)&args.known.stack,
		    (uint64_t *)&args.known.stack_size);
}

/* ---- ends ---- */

int64_t sys_exit(struct thread *thread, struct syscall *call)
{
	struct task *task = thread->task;
	signal_set mask;

	if (!signal_hold(thread, &mask))
		return SYSCALL_NOT_MADE;
	clock_timer_end(thread);
	tasks_end(thread);
	/* Of a vfork child its parent clears up. */
	while (task->vfork)
		sys(__NR_exit, call->args[0]);
	translate_thread_gone(thread);
	signal_actions_give(task->actions);
	arena_give_number(thread);
	thread_end(call->args[0], &task->used);
}

int64_t sys_exit_group(struct thread *thread, struct syscall *call)
{
	signal_set mask;

	if (!signal_hold(thread, &mask))
		return SYSCALL_NOT_MADE;
	tasks_end_all(thread);
	code_store_leave(thread);
	arena_give_number(thread);
	for (;;)
		sys(__NR_exit_group, call->args[0]);
}
