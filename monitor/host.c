// SPDX-License-Identifier: MIT
/*
 * What the event core asks of the monitor. It closes events and ends tasks for processes that are
 * gone; it is no task, runs no program, and so is never sampled.
 */
#include "core/host.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "abi/arena.h"
#include "abi/control.h"
#include "core/core.h"
#include "core/lock.h"
#include "monitor/feeds.h"
#include "monitor/monitor.h"

bool core_host_whole(void)
{
	return true;
}

uint64_t core_host_tsc(void)
{
	return __rdtsc();
}

uint64_t core_host_clock(int clockid)
{
	struct timespec now = {0};

	clock_gettime(clockid, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t core_host_run_time(void)
{
	return core_host_clock(CLOCK_THREAD_CPUTIME_ID);
}

int core_host_cpu(void)
{
	return sched_getcpu();
}

struct core_task *core_host_task(void)
{
	return NULL;
}

uint32_t core_host_owner(void)
{
	return ARENA_MONITOR;
}

bool core_host_owner_alive(uint32_t owner)
{
	return owner == ARENA_MONITOR || arena_owner_there(owner);
}

bool core_host_alive(const struct core_task *task)
{
	return arena_locked(core_page(task));
}

void core_host_held_up(uint32_t owner)
{
	/* It may wait for somebody else, and has said so: to us, who do not listen while we wait
	 * for it. */
	(void)owner;
	halted_help_any();
}

void core_host_pause(unsigned int turn)
{
	const uint64_t ns = core_pause_ns(turn);

	if (ns)
		nanosleep(&(struct timespec){0, (long)ns}, NULL);
	else
		sched_yield();
}

bool host_agrees(const struct core_task *task)
{
	return task->name_space == core_settings()->name_space;
}

/* It asks nobody to be still: what it does to events is done when their descriptors are gone. */
bool core_host_still(struct core_task *task)
{
	core_host_kick(task);
	return true;
}

void core_host_kick(struct core_task *task)
{
	uint32_t page = core_page(task);
	pid_t pid = task->pid, tid = task->tid;
	siginfo_t info = {.si_signo = KICK_SIGNAL, .si_code = SI_QUEUE};

	/* As in the runtime's. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!arena_inside(page) || !arena_locked(page))
		return;
	if (!host_agrees(task)) {
		if (pid != tid)
			return;
		pid = tid = arena_process(page);
	}
	if (pid <= 0)
		return;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)KICK_VALUE;
	syscall(__NR_rt_tgsigqueueinfo, pid, tid, KICK_SIGNAL, &info);
}

/* Of who is gone, what the task itself has seen last stays. */
void core_host_software(struct core_task *task, uint64_t kinds)
{
	unreaped_used(task, kinds);
}

/* It ends tasks, and lets none count. */
bool core_host_in_cgroup(const struct core_task *task, uint64_t cgroup)
{
	(void)task, (void)cgroup;
	return false;
}

void core_host_discard(uint64_t offset, uint64_t size)
{
	arena_discard(offset, size);
}

void core_host_wake(struct core_event *event, short revents)
{
	(void)revents;
	events_wake((uint32_t)(event - core_event(0)), event->generation);
}

bool core_host_kept(uint64_t event, bool group, enum core_kept what)
{
	feeds_kept(event, group, what);
	return true;
}

bool core_host_crowded(void)
{
	events_crowded();
	return true;
}

/* Where its number means to us what it does to who has set it: elsewhere it may be anybody's. */
static bool may_be_sent(const struct core_owner *owner)
{
	return owner->pid &&
	       (!owner->name_space || owner->name_space == core_settings()->name_space);
}

static pid_t process_of(pid_t tid)
{
	for (uint32_t page = 1; page <= arena_used(); page++) {
		const struct core_task *task = core_task(page);

		if (task->live && task->tid == tid && host_agrees(task))
			return task->pid;
	}
	return tid;
}

static void send_to_group(pid_t group, const siginfo_t *info)
{
	for (uint32_t page = 1; page <= arena_used(); page++) {
		const struct core_task *task = core_task(page);

		if (task->live && core_speaks_for_process(page) && host_agrees(task) &&
		    getpgid(task->pid) == group)
			syscall(__NR_rt_sigqueueinfo, task->pid, info->si_signo, info);
	}
}

static long send_to(const struct core_owner *owner, const siginfo_t *info)
{
	switch (owner->type) {
	case F_OWNER_PGRP:
		send_to_group(owner->pid, info);
		return 0;
	case F_OWNER_TID:
		return syscall(__NR_rt_tgsigqueueinfo, process_of(owner->pid), owner->pid,
			       info->si_signo, info);
	default:
		return syscall(__NR_rt_sigqueueinfo, owner->pid, info->si_signo, info);
	}
}

/* As the runtime sends it to others. */
void core_host_signal(struct core_event *event, int band)
{
	const struct core_owner *owner = &event->owner;
	siginfo_t plain = {.si_signo = SIGIO, .si_code = SI_SIGIO}, info = plain;

	if (!may_be_sent(owner))
		return;
	if (owner->signo) {
		info.si_signo = owner->signo;
		info.si_band = band == POLL_HUP ? POLLHUP | POLLERR : POLLIN | POLLRDNORM;
		info.si_fd = owner->fd;
	}
	/* More than may be queued: one that does not queue says so. */
	if (send_to(owner, &info) < 0 && errno == EAGAIN)
		send_to(owner, &plain);
}

void core_host_sigtrap(const struct core_event *event, uint64_t address)
{
	(void)event, (void)address;
}

void core_host_registers(uint64_t regs[])
{
	memset(regs, 0, PERF_REG_X86_64_MAX * sizeof(*regs));
}

size_t core_host_read(void *to, uint64_t from, size_t size)
{
	(void)to, (void)from, (void)size;
	return 0;
}

bool core_host_cause(enum core_kind kind, bool access, struct core_cause *cause, uint64_t regs[])
{
	(void)kind, (void)access, (void)cause, (void)regs;
	return false;
}

bool core_host_fault(enum core_kind kind, uint64_t number, struct core_cause *cause)
{
	(void)kind, (void)number, (void)cause;
	return false;
}

uint64_t core_host_physical(uint64_t address)
{
	(void)address;
	return 0;
}

uint64_t core_host_page_size(uint64_t address)
{
	(void)address;
	return 0;
}

uint64_t core_host_cgroup(void)
{
	return 0;
}

void core_host_namespaces(struct perf_ns_link_info *to)
{
	memset(to, 0, NR_NAMESPACES * sizeof(*to));
}

size_t core_host_callchain(const uint64_t regs[], uint64_t *to, size_t max)
{
	(void)regs, (void)to, (void)max;
	return 0;
}

size_t core_host_branches(struct perf_branch_entry *to, size_t max, bool calls)
{
	(void)to, (void)max, (void)calls;
	return 0;
}
