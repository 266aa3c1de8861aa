// SPDX-License-Identifier: MIT
#include "runtime/linux/tasks.h"

#include <asm/errno.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/time_types.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/still.h"
#include "core/time.h"
#include "core/views.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/cause.h"
#include "runtime/linux/clock_timer.h"
#include "runtime/linux/control.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_mappings.h"
#include "runtime/linux/faults.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/semaphores.h"
#include "runtime/linux/task.h"
#include "runtime/linux/threads.h"
#include "runtime/linux/uprobes.h"
#include "runtime/pmu/tracer.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

/* This process's; a vfork child's is its parent's as long as it has no page. */
static uint64_t name_space;

/* Without /proc it is one of its own. */
static uint64_t find_name_space(struct thread *thread)
{
	const uint64_t found = proc_name_space();

	return found ? found : 1UL << 63 | arena_owner(thread);
}

/* Who watches the run from where it began knows the thread by other numbers, which only the
 * monitor can tell. Without one its own are all that there are. */
static void need_first_numbers(const struct thread *thread, struct core_task *task)
{
	const struct control_message message = {
		.what = CONTROL_NUMBERS,
		.page = thread->page,
		.process = task->id,
		.pid = task->tid,
	};
	const struct __kernel_timespec limit = {.tv_sec = 1};

	if (task->first_tid || task->name_space == core_settings()->name_space ||
	    !core_settings()->name_space || !thread->page || !control_send(&message, -1))
		return;
	while (!__atomic_load_n(&task->first_tid, __ATOMIC_ACQUIRE))
		if (sys(__NR_futex, &task->first_tid, FUTEX_WAIT, 0, &limit) == -ETIMEDOUT)
			return;
}

/* It is in the name space that its parent is in, unless it has no parent there; and that is
 * known before the numbers, which would mean others in the one before. */
static void identify(struct thread *thread)
{
	struct core_task *task = &thread->events;
	const int32_t parent = (int32_t)sys(__NR_getppid);

	if (!parent || !task->name_space)
		__atomic_store_n(&task->name_space, find_name_space(thread), __ATOMIC_RELEASE);
	task->ppid = parent;
	task->pid = (int32_t)sys(__NR_getpid);
	task->tid = (int32_t)sys(__NR_gettid);
	if (!thread->task->vfork)
		name_space = task->name_space;
	need_first_numbers(thread, task);
}

bool tasks_agree(const struct core_task *task)
{
	const struct thread *self = thread_self();

	return task->name_space == (self->page ? self->events.name_space : name_space);
}

bool tasks_numbers(const struct core_task *task, struct task_numbers *numbers)
{
	int32_t process;

	if (tasks_agree(task)) {
		*numbers = (struct task_numbers){task->pid, task->tid};
		return true;
	}
	process = arena_process(core_page(task));
	*numbers = (struct task_numbers){process, process};
	return process && task->pid == task->tid;
}

/* It is the first time that somebody may be lost by the end of this process. */
static void settle(struct thread *thread)
{
	core_clock_start(&thread->events);
	if (thread->events.events) {
		tasks_watch(thread->page);
		tasks_follow(thread);
	}
}

static void first(struct thread *thread)
{
	struct core_task *task = &thread->events;

	sys(__NR_prctl, PR_GET_NAME, task->comm);
	identify(thread);
	core_task_begin(task, NULL, 0);
	core_task_begun(task);
	settle(thread);
}

/* Every page but 0 that was ever in use. */
#define for_each_page(page)                                                                        \
	for (uint32_t page = 1, used_pages_ = arena_used(); page <= used_pages_; page++)

/* What the other threads of the image before have left. */
static void end_others(const struct thread *thread)
{
	for_each_page(page) {
		struct core_task *task = core_task(page);

		if (page != thread->page && task->live && task->process == thread->events.process)
			core_task_exit(task);
	}
}

static struct core_used usage(int who, int clock)
{
	struct rusage of = {0};

	sys(__NR_getrusage, who, &of);
	return (struct core_used){
		.run_time = core_host_clock(clock),
		.minor_faults = (uint64_t)of.ru_minflt,
		.major_faults = (uint64_t)of.ru_majflt,
	};
}

static struct core_used own_usage(void)
{
	return usage(RUSAGE_THREAD, CLOCK_THREAD_CPUTIME_ID);
}

/* Of the threads that there were before. */
static struct core_used usage_of_others(void)
{
	const struct core_used own = own_usage();
	struct core_used all = usage(RUSAGE_SELF, CLOCK_PROCESS_CPUTIME_ID);

	all.run_time -= own.run_time;
	all.minor_faults -= own.minor_faults;
	all.major_faults -= own.major_faults;
	return all;
}

static void executed(struct thread *thread)
{
	struct core_task *task = &thread->events;
	const struct core_used others = usage_of_others();
	const bool is_first = task->tid == task->pid;
	char comm[sizeof(task->comm)] = "";

	identify(thread);
	task->first_tid = task->first_pid;
	task->replaced = 0; /* by who was not first */
	if (is_first && core_nr_events())
		core_used_lost(task->process, &others);
	if (core_nr_events())
		end_others(thread);
	core_used_alone(task, &others);
	if (task->views && arena_events())
		core_views_end(task->views);
	task->views = 0;
	sys(__NR_prctl, PR_GET_NAME, comm);
	if (!task->told_exec)
		core_task_exec(task, comm);
	task->told_exec = false;
	event_mapped_all(thread);
	settle(thread);
}

void tasks_boot(struct thread *thread)
{
	if (!thread->page)
		return;
	tracer_machine(&core_settings()->machine);
	faults_boot(thread);
	if (thread->events.live)
		executed(thread);
	else
		first(thread);
}

/* The thread that has ended its tasks is about to end the process; natively it would be gone. */
void tasks_await_end(const struct thread *thread)
{
	const struct __kernel_timespec moment = {.tv_nsec = 10000000};

	for (int i = 0; i < 100 && thread->page && !thread->events.live; i++)
		sys(__NR_nanosleep, &moment, NULL);
}

/* Of the process of @self, whose image is about to be replaced, or is not. */
struct replacing {
	const struct thread *self;
	bool is;
};

static void replace_first(struct task *task, void *what)
{
	const struct replacing *replacing = what;
	const struct thread *self = replacing->self;
	struct thread *thread = task->thread;

	if (thread && thread != self && thread->page && task->pid == self->task->pid &&
	    thread->tid == task->pid)
		core_task_replaced(&thread->events, replacing->is);
}

void tasks_executing(struct thread *thread, bool is)
{
	if (thread->tid != thread->task->pid)
		threads_visit(replace_first, &(struct replacing){thread, is});
}

void tasks_begin(struct thread *child, struct thread *parent, uint64_t flags)
{
	if (!child->page)
		return;
	memcpy(child->events.comm, parent->events.comm, sizeof(child->events.comm));
	if (core_task_begin(&child->events, parent->page ? &parent->events : NULL, flags))
		return;
	tasks_await_end(parent);
	core_task_begin(&child->events, NULL, flags);
}

/* It may be killed before it can say that it is there. */
static void watch_child(struct thread *thread, int32_t pid, uint64_t process)
{
	const struct control_message message = {
		.what = CONTROL_WATCH,
		.pid = pid,
		.process = process,
	};
	int64_t fd = sys(__NR_pidfd_open, pid, 0);

	if (fd < 0)
		return;
	if (control_send(&message, (int)fd))
		arena_expect(thread);
	sys(__NR_close, fd);
}

void tasks_forked(struct thread *child, uint64_t id, int32_t pid)
{
	uint64_t process;

	if (core_nr_events())
		arena_events();
	process = core_task_forked(&child->events, id, pid);
	if (process)
		watch_child(child, pid, process);
}

void tasks_begun(struct thread *thread)
{
	if (!thread->page)
		return;
	identify(thread);
	/* Its parent was killed before anybody knew of it: it goes on without what it has
	 * inherited. */
	if (!core_task_begun(&thread->events) && thread->tid == thread->task->pid) {
		core_task_begin(&thread->events, NULL, 0);
		core_task_begun(&thread->events);
	}
	settle(thread);
}

void tasks_end(struct thread *thread)
{
	if (!thread->page || !thread->events.live)
		return;
	core_clock_stop(&thread->events);
	if (thread == thread_self()) {
		const struct core_used used = own_usage();

		core_used_ended(&thread->events, &used);
	}
	core_task_exit(&thread->events);
	if (thread == thread_self()) /* others may be using theirs until the process is gone */
		faults_end(thread->task);
}

/* Of the process of @self, in whose memory there may be others (CLONE_VM). */
struct ending {
	struct thread *self;
	bool shares_memory;
};

static void end_of_process(struct task *task, void *what)
{
	struct ending *ending = what;
	struct thread *thread = task->thread, *self = ending->self;

	if (!thread || (task->vfork && thread != self))
		return;
	/* If it executes before the process ends, it goes on; if not the monitor sees its end. */
	if (task->handed_over && thread != self)
		return;
	if (thread == self || task->pid == self->task->pid)
		tasks_end(thread);
	else
		ending->shares_memory |= task->pid;
}

void tasks_end_all(struct thread *thread)
{
	struct ending ending = {.self = thread};

	if (thread->task->vfork) {
		tasks_end(thread);
		return;
	}
	threads_visit(end_of_process, &ending);
	/* Of memory that goes on the monitor sees the end. */
	if (event_maps_owner() && !ending.shares_memory)
		core_views_end(event_maps_owner());
}

/* The processor's number is in the limit of a segment, for who may not ask the kernel. */
int tasks_cpu(void)
{
	enum { SEGMENT = 15 * 8 + 3, CPU_MASK = 0xfff };
	uint32_t limit;

	__asm__ volatile("lsl %1, %0" : "=r"(limit) : "r"(SEGMENT));
	return (int)(limit & CPU_MASK);
}

/* Whether the thread is on the last stretch before a sample that tells of branches. */
static bool notes_branches(const struct core_task *task)
{
	return task->extras & (CORE_EXTRA_BRANCH_STACK | CORE_EXTRA_CALL_STACK) &&
	       task->looking_back & task->sampled;
}

/* False: there are too many. Then each instruction is looked at. */
static bool set_stops(struct thread *thread)
{
	enum { MOST = 64 };
	uint64_t places[MOST];
	const size_t n = core_breakpoint_places(&thread->events, places, MOST);
	bool all = n <= MOST;

	translate_lock();
	for (size_t i = 0; i < n && all; i++)
		all = translate_stop_at(places[i]);
	translate_unlock();
	return uprobes_follow(thread) && all;
}

/* Whether its code asks at speed what it touches. Else each instruction is looked at, as where
 * somebody wants to see the branches before that. */
static bool set_watched(struct thread *thread)
{
	enum { MOST = 64 };
	struct core_breakpoint_range watched[MOST];
	const size_t n = core_breakpoint_watched(&thread->events, watched, MOST);

	if (n > MOST || thread->events.extras & (CORE_EXTRA_BRANCH_STACK | CORE_EXTRA_CALL_STACK))
		return false;
	translate_watch(thread, watched, n);
	return true;
}

/* Whether there is memory for that. @stepped: the extras that need each instruction looked at. */
static bool instrument(struct thread *thread, uint64_t *stepped)
{
	const struct core_task *task = &thread->events;
	/* Branches are told of by the trace that the model is fed with. */
	const uint64_t traced =
		task->extras & CORE_EXTRA_TRACE ? CORE_KIND_BIT(CORE_BRANCH_MISSES) : 0;
	const uint64_t counted = (task->wanted & (CORE_KINDS_EXACT | CORE_KINDS_MODEL)) | traced;
	struct instrumentation does = {
		.counted = counted,
		.checked = task->sampled & (CORE_KINDS_EXACT | CORE_KINDS_MODEL),
		.extras = task->extras & (CORE_EXTRA_BREAKPOINTS | CORE_EXTRA_STOPS),
	};

	*stepped = 0;
	if (does.extras & CORE_EXTRA_STOPS && !set_stops(thread))
		*stepped |= CORE_EXTRA_STOPS;
	if (does.extras & CORE_EXTRA_BREAKPOINTS && !set_watched(thread))
		*stepped |= CORE_EXTRA_BREAKPOINTS;
	semaphores_follow(thread);

	if (*stepped || notes_branches(task))
		does.extras |= INSTRUMENT_STEPS;
	if (translate_instrument(thread, &does))
		return true;
	/* Where there is no memory for the model, what is exact is counted all the same. */
	does.counted &= CORE_KINDS_EXACT;
	translate_instrument(thread, &does);
	return false;
}

void tasks_instrument(struct thread *thread)
{
	const uint64_t all = CORE_KINDS_EXACT | CORE_KINDS_MODEL;
	struct instrumentation does;
	struct core_code code;
	uint64_t stepped;
	bool steps;

	if (instrument(thread, &stepped))
		return;
	translate_instrumented(thread, &does);
	steps = does.extras & INSTRUMENT_STEPS;
	/* Stacks of branches are shorter, at most. */
	code = (struct core_code){
		.counted = does.counted | ~all,
		.checked = (steps ? all : does.checked) | ~all,
		.extras = (does.extras & ~(steps ? 0 : stepped)) | CORE_EXTRA_BRANCH_STACK |
			  CORE_EXTRA_CALL_STACK,
	};
	if (does.counted & CORE_KIND_BIT(CORE_BRANCH_MISSES))
		code.extras |= CORE_EXTRA_TRACE;
	core_task_affords(&thread->events, &code);
}

bool tasks_affords(struct thread *thread, uint64_t kinds, uint64_t extras, bool later)
{
	const uint64_t all = CORE_KINDS_EXACT | CORE_KINDS_MODEL;
	const struct core_task *task = &thread->events;
	const struct instrumentation does = {
		.counted = (kinds | task->wanted) & all,
		.checked = task->sampled & all,
		.extras = extras | (task->extras & (CORE_EXTRA_BREAKPOINTS | CORE_EXTRA_STOPS)),
	};
	uint64_t stepped;
	bool afforded;

	/* What is exact makes no caches before they are needed, where there is memory for them. */
	if (!(kinds & all || extras) ||
	    (later && !(kinds & CORE_KINDS_MODEL) && !translate_is_short()))
		return true;
	afforded = translate_instrument(thread, &does);
	instrument(thread, &stepped); /* what cannot be afforded is about to be closed */
	return afforded;
}

void tasks_uncount(struct thread *thread)
{
	struct core_task *task = &thread->events;

	if (task->wanted & CORE_KIND_BIT(CORE_INSTRUCTIONS))
		__atomic_store_n(&task->counter[CORE_INSTRUCTIONS],
				 task->counter[CORE_INSTRUCTIONS] - 1, __ATOMIC_RELAXED);
}

void tasks_follow(struct thread *thread)
{
	struct core_task *task = &thread->events;
	uint64_t sampling;

	if (!arena_events()) {
		core_task_followed(task);
		return;
	}
	faults_drain(thread);
	if (task->bound) /* to ask takes as long as all the rest */
		core_task_cpu(task, tasks_cpu());
	core_task_regroup(task); /* nobody tells whom somebody else has moved */
	sampling = task->sampled | task->counting_down;
	core_task_update(task);
	tasks_instrument(thread);
	faults_follow(thread);
	if (sampling) {
		cause_forget(thread);
		clock_timer_follow(thread);
	}
}

void tasks_await_kick(struct thread *thread)
{
	if (!arena_events())
		return;
	core_still_before_call(&thread->events);
	/* Signals are taken at the end of a call, whichever. */
	sys(__NR_getpid);
}

void linux_rdpmc(struct thread *thread, unsigned int length)
{
	struct regs *regs = &thread->regs;
	uint64_t value;

	if (!arena_events() || !core_rdpmc(&thread->events, (uint32_t)regs->gpr[REG_RCX], &value)) {
		linux_fault(thread, SIGSEGV, SI_KERNEL, 0);
		return;
	}
	regs->gpr[REG_RAX] = (uint32_t)value;
	regs->gpr[REG_RDX] = value >> 32;
	regs->rip += length;
}

void linux_due(struct thread *thread)
{
	tasks_follow(thread);
}

static uint32_t find(int32_t tid)
{
	struct task_numbers numbers;

	for_each_page(page) {
		const struct core_task *task = core_task(page);

		if (!task->live || (task->tid != tid && tasks_agree(task)))
			continue;
		if (tasks_numbers(task, &numbers) && numbers.tid == tid && arena_alive(page))
			return page;
	}
	return 0;
}

uint32_t tasks_find(int32_t tid)
{
	const struct __kernel_timespec moment = {.tv_nsec = 100000};
	uint32_t page = find(tid);

	/* A thread beside this one that has not come to say who it is. */
	for (int i = 0; !page && i < 10000 && !sys(__NR_tgkill, sys(__NR_getpid), tid, 0); i++) {
		sys(__NR_nanosleep, &moment, NULL);
		page = find(tid);
	}
	return page;
}

void tasks_queue_to_group(int32_t group, const siginfo_t *info)
{
	for_each_page(page) {
		const struct core_task *task = core_task(page);
		struct task_numbers numbers;

		if (task->live && core_speaks_for_process(page) && tasks_numbers(task, &numbers) &&
		    sys(__NR_getpgid, numbers.pid) == group)
			sys(__NR_rt_sigqueueinfo, numbers.pid, info->si_signo, info);
	}
}

/* The caller's process, if the monitor has been told of it: a child of vfork has its memory. */
static uint64_t watched;

void tasks_watch(uint32_t page)
{
	const struct core_task *task = core_task(page);
	const struct control_message message = {
		.what = CONTROL_WATCH,
		.page = page,
		.pid = task->pid,
		.process = task->process,
		.own = thread_self()->page && task->process == thread_self()->events.process,
	};

	if (message.own && __atomic_load_n(&watched, __ATOMIC_RELAXED) == task->process)
		return;
	if (control_send(&message, -1) && message.own)
		__atomic_store_n(&watched, task->process, __ATOMIC_RELAXED);
}

void tasks_watch_all(void)
{
	for_each_page(page)
		if (core_task(page)->live)
			tasks_watch(page);
}

void tasks_sweep(void)
{
	for_each_page(page)
		if (core_task(page)->live)
			core_task_lost(core_task(page), 0);
}
