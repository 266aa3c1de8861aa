// SPDX-License-Identifier: MIT
#include "core/fake_host.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/arena.h"
#include "core/attach.h"
#include "core/count.h"
#include "core/counter.h"
#include "core/lock.h"
#include "core/output.h"
#include "core/schedule.h"

_Thread_local struct fake_host fake;

static void *arena;

/* ---- what it is asked ---- */

bool core_host_whole(void)
{
	return !fake.partly;
}

uint64_t core_host_tsc(void)
{
	const uint64_t tsc = fake.tsc += fake.tick;
	void (*meanwhile)(void) = fake.meanwhile;

	fake.meanwhile = NULL;
	if (meanwhile)
		meanwhile();
	return tsc;
}

uint64_t core_host_clock(int clockid)
{
	return fake.clock + (uint64_t)clockid;
}

uint64_t core_host_run_time(void)
{
	return fake.tsc - fake.others;
}

int core_host_cpu(void)
{
	return fake.cpu;
}

void core_host_software(struct core_task *task, uint64_t kinds)
{
	for (unsigned int kind = 0; kind < CORE_COUNTED_KINDS; kind++)
		if (kinds & CORE_KIND_BIT(kind))
			core_counter_raise(task, kind, fake.software[kind]);
}

bool core_host_owner_alive(uint32_t owner)
{
	return (int32_t)owner != fake.dead;
}

bool core_host_alive(const struct core_task *task)
{
	return (int32_t)core_page(task) != fake.dead;
}

void core_host_held_up(uint32_t owner)
{
	fake.halted = owner;
	if (fake.halted_lock)
		core_unlock(fake.halted_lock);
}

void core_host_pause(unsigned int turn)
{
	(void)turn;
	sched_yield();
}

struct core_task *core_host_task(void)
{
	return fake.task;
}

uint32_t core_host_owner(void)
{
	return (uint32_t)fake.tid;
}

bool core_host_in_cgroup(const struct core_task *task, uint64_t cgroup)
{
	return task->pid == (int32_t)cgroup;
}

bool core_host_cause(enum core_kind kind, bool access, struct core_cause *cause, uint64_t regs[])
{
	(void)kind, (void)access;
	if (!fake.has_cause)
		return false;
	*cause = fake.cause;
	memcpy(regs, fake.before, sizeof(fake.before));
	return true;
}

bool core_host_fault(enum core_kind kind, uint64_t number, struct core_cause *cause)
{
	(void)kind;
	cause->address = number;
	return true;
}

uint64_t core_host_physical(uint64_t address)
{
	return address + 1;
}

uint64_t core_host_page_size(uint64_t address)
{
	return address ? 4096 : 0;
}

uint64_t core_host_cgroup(void)
{
	return 77;
}

void core_host_namespaces(struct perf_ns_link_info *to)
{
	for (unsigned int i = 0; i < NR_NAMESPACES; i++)
		to[i] = (struct perf_ns_link_info){4, 100 + i};
}

void core_host_registers(uint64_t regs[])
{
	memcpy(regs, fake.regs, sizeof(fake.regs));
}

size_t core_host_read(void *to, uint64_t from, size_t size)
{
	uint64_t offset = from - fake.memory_at;

	if (offset >= fake.memory_size)
		return 0;
	if (size > fake.memory_size - offset)
		size = fake.memory_size - offset;
	memcpy(to, fake.memory + offset, size);
	return size;
}

size_t core_host_callchain(const uint64_t regs[], uint64_t *to, size_t max)
{
	size_t n = fake.frames < max ? fake.frames : max;

	(void)regs;
	memcpy(to, fake.chain, n * sizeof(*to));
	return n;
}

size_t core_host_branches(struct perf_branch_entry *to, size_t max, bool calls)
{
	size_t n = fake.branches < max ? fake.branches : max;

	(void)calls;
	memcpy(to, fake.branch, n * sizeof(*to));
	return n;
}

/* ---- what it is told ---- */

static void note(struct fake_log *log, struct fake_told told)
{
	if (log->nr < sizeof(log->of) / sizeof(log->of[0]))
		log->of[log->nr] = told;
	log->nr++;
}

void core_host_kick(struct core_task *task)
{
	note(&fake.kicks, (struct fake_told){.event = core_page(task)});
}

bool core_host_still(struct core_task *task)
{
	void (*const comes)(struct core_task * task) = fake.comes_out;

	note(&fake.stills, (struct fake_told){.event = core_page(task)});
	if (comes)
		comes(task);
	return comes;
}

void core_host_wake(struct core_event *event, short revents)
{
	note(&fake.wakes, (struct fake_told){.event = core_index(event), .what = revents});
}

bool core_host_kept(uint64_t event, bool group, enum core_kept what)
{
	note(&fake.keeps, (struct fake_told){.event = (uint32_t)event, .what = (int)what});
	(void)group;
	if (what == CORE_KEPT_RESET)
		fake.kernels = 0;
	for (uint32_t i = 1; i <= core_tree()->made; i++)
		if (core_event(i)->is_kept && !core_event(i)->parent)
			core_event(i)->kept = fake.kernels;
	return !fake.keeper_gone;
}

bool core_host_crowded(void)
{
	fake.crowds++;
	return true;
}

void core_host_signal(struct core_event *event, int band)
{
	note(&fake.signals, (struct fake_told){.event = core_index(event), .what = band});
}

void core_host_sigtrap(const struct core_event *event, uint64_t address)
{
	note(&fake.traps, (struct fake_told){.event = core_index(event), .address = address});
}

void core_host_discard(uint64_t offset, uint64_t size)
{
	fake.discarded += size;
	madvise((char *)arena + offset, size, MADV_REMOVE);
}

/* ---- the tree ---- */

void fake_begin(void)
{
	const struct core_settings settings = {
		.paranoid = 2,
		.max_sample_rate = 100000,
		.mlock_kb = 516,
		.max_stack = 127,
		.cpus = 2,
		.tsc_mult = 1,
	};

	fake = (struct fake_host){.tsc = 1000000, .tid = 1001};
	arena = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED)
		abort();
	core_attach(arena);
	core_setup(&settings);
	fake_caller(1);
}

void fake_caller(uint32_t page)
{
	struct core_task *task = core_task(page);

	task->pid = 1000;
	task->tid = 1000 + (int32_t)page;
	task->ppid = 999;
	task->live = 1;
	memcpy(task->comm, "fake", 5);
	core_counters_init(task);
	fake.tid = task->tid;
	fake.task = task;
}

void fake_end(void)
{
	munmap(arena, ARENA_SIZE);
}

uint32_t fake_event(const struct perf_event_attr *attr, enum core_kind kind)
{
	struct core_event *event = core_event_make();

	event->attr = *attr;
	event->kind = (uint8_t)kind;
	event->hardware = kind < CORE_HARDWARE_KINDS;
	event->cpu = -1;
	core_sampling_init(event);
	core_task_lock(fake.task);
	core_attach_event(fake.task, event, NULL, CORE_INACTIVE);
	core_schedule(fake.task);
	core_task_unlock(fake.task);
	core_task_update(fake.task);
	return core_index(event);
}

static void count(enum core_kind kind, uint64_t n)
{
	static uint64_t part; /* of a nanosecond */

	fake.task->counter[kind] += (int64_t)n;
	if (!fake.rate)
		return;
	part += n * 1000000000;
	fake.tsc += part / fake.rate;
	part %= fake.rate;
}

void fake_run(enum core_kind kind, uint64_t n)
{
	int64_t *counter = &fake.task->counter[kind];

	while (fake.task->counting_down & CORE_KIND_BIT(kind) && *counter + (int64_t)n >= 0) {
		n -= (uint64_t) - *counter;
		count(kind, (uint64_t) - *counter);
		core_overflow(fake.task, kind);
	}
	count(kind, n);
}

int fake_setup(void **state)
{
	(void)state;
	fake_begin();
	return 0;
}

int fake_teardown(void **state)
{
	(void)state;
	fake_end();
	return 0;
}
