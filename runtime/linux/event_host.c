// SPDX-License-Identifier: MIT
/* What the event core asks of a process of the program (core/host.h). */
#include "core/host.h"

#include <asm/errno.h>
#include <asm/perf_regs.h>
#include <asm/poll.h>
#include <linux/falloc.h>
#include <linux/fcntl.h>
#include <linux/perf_event.h>
#include <linux/resource.h>
#include <linux/signal.h>
#include <linux/time.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/counter.h"
#include "core/lock.h"
#include "core/used.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/clock_timer.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/event_host.h"
#include "runtime/linux/faults.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

#define SECOND 1000000000UL

bool core_host_whole(void)
{
	return arena_events();
}

/* ---- times ---- */

uint64_t core_host_clock(int clockid)
{
	struct {
		int64_t seconds, nanoseconds;
	} now = {0};

	sys(__NR_clock_gettime, clockid, &now);
	return (uint64_t)now.seconds * SECOND + (uint64_t)now.nanoseconds;
}

uint64_t core_host_run_time(void)
{
	return core_host_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- tasks ---- */

int core_host_cpu(void)
{
	return tasks_cpu();
}

struct core_task *core_host_task(void)
{
	struct thread *thread = thread_self();

	return thread->page ? core_task(thread->page) : NULL;
}

uint32_t core_host_owner(void)
{
	return arena_owner(thread_self());
}

bool core_host_owner_alive(uint32_t owner)
{
	return arena_owner_alive(owner);
}

bool core_host_alive(const struct core_task *task)
{
	return arena_alive(core_page(task));
}

void core_host_held_up(uint32_t owner)
{
	control_send(&(struct control_message){.what = CONTROL_HELD_UP, .owner = owner}, -1);
}

void core_host_pause(unsigned int turn)
{
	const struct {
		int64_t seconds, nanoseconds;
	} moment = {0, (int64_t)core_pause_ns(turn)};

	if (moment.nanoseconds)
		sys(__NR_nanosleep, &moment, NULL);
	else
		sys(__NR_sched_yield);
}

static const struct thread *thread_of(const struct core_task *task)
{
	return (const struct thread *)((const char *)task - offsetof(struct thread, events));
}

static bool is_inside(const struct thread *thread)
{
	return __atomic_load_n(&thread->inside, __ATOMIC_SEQ_CST);
}

/* False: it is not inside, or cannot be told. */
static bool kick(struct core_task *task)
{
	const struct thread *thread = thread_of(task);
	siginfo_t info = {.si_signo = KICK_SIGNAL, .si_code = SI_QUEUE};
	struct task_numbers to;

	/* Who is not in translated code comes to look by itself; he says that he is, and looks. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!is_inside(thread) || !arena_alive(thread->page) || !tasks_numbers(task, &to))
		return false;
	info.si_pid = (int)sys(__NR_getpid);
	info.si_uid = (uint32_t)sys(__NR_getuid);
	info.si_value.sival_ptr = (void *)KICK_VALUE;
	return !sys(__NR_rt_tgsigqueueinfo, to.pid, to.tid, KICK_SIGNAL, &info);
}

void core_host_kick(struct core_task *task)
{
	kick(task);
}

/*
 * Until then this process does not sleep for a thread to come out: the last time took so long that
 * many must wait for a processor, each of which comes first.
 */
static uint64_t crowded_until;

static bool is_crowded(uint64_t tsc)
{
	return tsc < __atomic_load_n(&crowded_until, __ATOMIC_RELAXED);
}

static void sleep_a_moment(void)
{
	enum { SLEEP_NS = 20000, LONG_TSC = 1000000, SHARE = 16 };
	const struct __kernel_timespec moment = {.tv_nsec = SLEEP_NS};
	const uint64_t since = core_host_tsc();
	uint64_t took;

	sys(__NR_nanosleep, &moment, NULL);
	took = core_host_tsc() - since;
	if (took > LONG_TSC)
		__atomic_store_n(&crowded_until, since + SHARE * took, __ATOMIC_RELAXED);
}

/* It has been where the kick has come, and what it has traced may take a while to be taken in. */
static bool comes_out(const struct thread *thread)
{
	return __atomic_load_n(&thread->pending, __ATOMIC_RELAXED) & PENDING_KICK;
}

static bool spin_for(const struct thread *thread, bool crowded)
{
	enum { TSC = 60000, TSC_CROWDED = 20000, TSC_COMES = 400000 };
	const uint64_t since = core_host_tsc(), most = crowded ? TSC_CROWDED : TSC;

	while (is_inside(thread)) {
		if (core_host_tsc() - since > (comes_out(thread) ? TSC_COMES : most))
			return false;
		__builtin_ia32_pause();
	}
	return true;
}

/*
 * A thread that runs is out within some microseconds. Who sleeps lets others run, the thread it may
 * be.
 */
bool core_host_still(struct core_task *task)
{
	enum { SLEEPS = 2 };
	const struct thread *thread = thread_of(task);
	const uint64_t since = core_host_tsc();

	if (!kick(task))
		return !is_inside(thread);
	if (spin_for(thread, is_crowded(since)))
		return true;
	for (unsigned int n = 0; n < SLEEPS && is_inside(thread) && !is_crowded(since); n++)
		sleep_a_moment();
	return !is_inside(thread);
}

bool core_host_in_cgroup(const struct core_task *task, uint64_t cgroup)
{
	struct task_numbers numbers;

	return tasks_numbers(task, &numbers) && proc_in_cgroup(numbers.tid, cgroup);
}

/* ---- software events ---- */

/* What this thread has used, as getrusage(2) says it. */
static void own_usage(struct core_used *used)
{
	enum { OF_THREAD = 1 };
	struct rusage usage = {0};

	/* While nobody samples records are not taken in, and what is known is of then. */
	if (!(thread_self()->events.sampled & CORE_KINDS_FAULTS))
		faults_drain(thread_self());
	sys(__NR_getrusage, OF_THREAD, &usage);
	faults_known(task_self(), &usage);
	used->minor_faults = (uint64_t)usage.ru_minflt;
	used->major_faults = (uint64_t)usage.ru_majflt;
	used->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

#define KINDS_USAGE (CORE_KINDS_FAULTS | CORE_KIND_BIT(CORE_CONTEXT_SWITCHES))

static void look_at_own(struct core_task *task, uint64_t kinds)
{
	struct core_used used = {0};

	if (kinds & CORE_KINDS_CLOCKS) {
		used.run_time = core_host_run_time();
		if (!clock_timer_looks(thread_self(), used.run_time))
			kinds &= ~CORE_KINDS_CLOCKS;
	}
	if (kinds & KINDS_USAGE)
		own_usage(&used);
	core_used(task, kinds & (CORE_KINDS_CLOCKS | KINDS_USAGE), &used);
	core_used_by_proc(task, kinds & CORE_KIND_BIT(CORE_CPU_MIGRATIONS), task->pid, task->tid,
			  proc_thread_file);
	core_for_each_kind(kind, kinds & KINDS_USAGE ? CORE_KINDS_FAULTS : 0)
		faults_counted(task_self(), kind, core_counter_read(task, kind));
}

/* Counters do not go back, so faults that may be the runtime's are left for the thread to count. */
static void look_at_other(struct core_task *task, uint64_t kinds)
{
	const uint32_t before = __atomic_load_n(&task->populating, __ATOMIC_ACQUIRE);
	struct core_used used = {0};
	struct task_numbers numbers;

	if (!tasks_numbers(task, &numbers))
		return;
	core_used_read(&used, kinds, numbers.pid, numbers.tid, proc_thread_file);
	if (before & 1 || __atomic_load_n(&task->populating, __ATOMIC_ACQUIRE) != before ||
	    __atomic_load_n(&task->faults_watched, __ATOMIC_RELAXED))
		kinds &= ~CORE_KINDS_FAULTS;
	core_used(task, kinds, &used);
}

void core_host_software(struct core_task *task, uint64_t kinds)
{
	if (core_page(task) == thread_self()->page)
		look_at_own(task, kinds);
	else
		look_at_other(task, kinds);
}

void core_host_discard(uint64_t offset, uint64_t size)
{
	sys(__NR_fallocate, descriptors.arena, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
	    size);
}

bool core_host_fault(enum core_kind kind, uint64_t number, struct core_cause *cause)
{
	return faults_find(task_self(), kind, number, cause);
}

/* ---- descriptors and signals ---- */

void core_host_wake(struct core_event *event, short revents)
{
	const struct control_message message = {
		.what = CONTROL_WAKE,
		.event = (uint32_t)(event - core_event(0)),
		.generation = event->generation,
	};

	(void)revents; /* core_poll() says it */
	if (core_wake_begins(event))
		core_wake_ends(event, control_wake(&message));
}

bool core_host_crowded(void)
{
	return control_send(&(struct control_message){.what = CONTROL_CROWDED}, -1);
}

enum { OWNER_TID, OWNER_PID, OWNER_PGRP };

/* The kernel has delivered such a signal, and the program has not seen it: to that it is pending,
 * and those that do not queue are pending once. */
static bool waits_already(int number)
{
	enum { FIRST_THAT_QUEUES = 32 };

	return number < FIRST_THAT_QUEUES && thread_self()->pending & PENDING_NOTE &&
	       task_self()->note.info.si_signo == number;
}

/*
 * Where si_code is one of the kernel's, only the thread itself may send it to itself: for itself
 * alone, or for its process, of which the kernel prefers it, as natively the one that is named.
 */
static bool is_self(const struct core_owner *owner)
{
	return owner->type != OWNER_PGRP && owner->pid == (int32_t)sys(__NR_gettid);
}

static int64_t send_to_self(const struct core_owner *owner, siginfo_t *info)
{
	if (waits_already(info->si_signo))
		return 0;
	signal_action_note(task_self(), info->si_signo);
	if (owner->type == OWNER_PID)
		return sys(__NR_rt_sigqueueinfo, owner->pid, info->si_signo, info);
	return sys(__NR_rt_tgsigqueueinfo, sys(__NR_getpid), owner->pid, info->si_signo, info);
}

/*
 * To others it goes with a si_code that processes may use; their runtime makes of it what the
 * kernel would have said.
 */
static int64_t send_to_owner(const struct core_owner *owner, siginfo_t *info)
{
	info->si_code = SI_SIGIO;
	if (owner->type == OWNER_PGRP)
		tasks_queue_to_group(owner->pid, info);
	else if (owner->type == OWNER_TID)
		return sys(__NR_rt_tgsigqueueinfo, proc_process_of(owner->pid), owner->pid,
			   info->si_signo, info);
	else
		return sys(__NR_rt_sigqueueinfo, owner->pid, info->si_signo, info);
	return 0;
}

static int64_t send(const struct core_owner *owner, siginfo_t *info)
{
	return is_self(owner) ? send_to_self(owner, info) : send_to_owner(owner, info);
}

void core_host_signal(struct core_event *event, int band)
{
	const struct core_owner *owner = &event->owner;
	siginfo_t plain = {.si_signo = SIGIO, .si_code = SI_KERNEL}, info = plain;

	if (!owner->pid)
		return;
	if (owner->signo) {
		info.si_signo = owner->signo;
		info.si_code = band;
		info.si_band = band == POLL_HUP ? POLLHUP | POLLERR : POLLIN | POLLRDNORM;
		info.si_fd = owner->fd;
	}
	/* More than may be queued: one that does not queue says so. */
	if (send(owner, &info) == -EAGAIN)
		send(owner, &plain);
}

void core_host_sigtrap(const struct core_event *event, uint64_t address)
{
	siginfo_t info = {.si_signo = SIGTRAP, .si_code = TRAP_PERF};
	signal_set blocked = 0;

	if (waits_already(SIGTRAP))
		return;
	signal_action_note(task_self(), SIGTRAP);
	sys(__NR_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof(blocked));
	info.si_addr = (void *)address;
	info.si_perf_data = event->attr.sig_data;
	info.si_perf_type = event->attr.type;
	if (blocked & SIGNAL_BIT(SIGTRAP)) {
		info.si_perf_flags = TRAP_PERF_FLAG_ASYNC;
		info.si_code = TRAP_PERF_BLOCKED;
	}
	sys(__NR_rt_tgsigqueueinfo, sys(__NR_getpid), sys(__NR_gettid), SIGTRAP, &info);
}

/* ---- the program ---- */

void event_registers(uint64_t regs[], const struct regs *from)
{
	enum { USER_CODE = 0x33, USER_DATA = 0x2b };

	regs[PERF_REG_X86_AX] = from->gpr[REG_RAX];
	regs[PERF_REG_X86_BX] = from->gpr[REG_RBX];
	regs[PERF_REG_X86_CX] = from->gpr[REG_RCX];
	regs[PERF_REG_X86_DX] = from->gpr[REG_RDX];
	regs[PERF_REG_X86_SI] = from->gpr[REG_RSI];
	regs[PERF_REG_X86_DI] = from->gpr[REG_RDI];
	regs[PERF_REG_X86_BP] = from->gpr[REG_RBP];
	regs[PERF_REG_X86_SP] = from->gpr[REG_RSP];
	for (unsigned int i = 0; i < 8; i++)
		regs[PERF_REG_X86_R8 + i] = from->gpr[REG_R8 + i];
	regs[PERF_REG_X86_IP] = from->rip;
	regs[PERF_REG_X86_FLAGS] = from->rflags;
	regs[PERF_REG_X86_CS] = USER_CODE;
	regs[PERF_REG_X86_SS] = USER_DATA;
	regs[PERF_REG_X86_DS] = regs[PERF_REG_X86_ES] = 0;
	regs[PERF_REG_X86_FS] = regs[PERF_REG_X86_GS] = 0;
}

void core_host_registers(uint64_t regs[])
{
	event_registers(regs, &thread_self()->regs);
}

size_t core_host_read(void *to, uint64_t from, size_t size)
{
	size_t done = 0;

	/* A page at a time: what lies before one that is not there counts. */
	while (done < size) {
		size_t some = PAGE - (from + done) % PAGE;

		if (some > size - done)
			some = size - done;
		if (copy_in((char *)to + done, from + done, some))
			break;
		done += some;
	}
	return done;
}

uint64_t core_host_physical(uint64_t address)
{
	return proc_physical(address);
}

uint64_t core_host_page_size(uint64_t address)
{
	char byte;

	/* Nobody tells of larger ones but /proc/self/smaps, a line a mapping. */
	return copy_in(&byte, address, 1) ? 0 : PAGE;
}

uint64_t core_host_cgroup(void)
{
	return proc_cgroup(thread_self()->tid);
}

void core_host_namespaces(struct perf_ns_link_info *to)
{
	proc_namespaces(to);
}
