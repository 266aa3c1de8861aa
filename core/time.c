// SPDX-License-Identifier: MIT
#include "core/time.h"

#include "core/arena.h"
#include "core/host.h"
#include "core/output.h"

uint64_t core_nanoseconds(uint64_t tsc)
{
	const struct core_settings *settings = core_settings();

	return (uint64_t)((unsigned __int128)tsc * settings->tsc_mult >> settings->tsc_shift);
}

uint64_t core_time(void)
{
	return core_nanoseconds(core_host_tsc());
}

/* The two words change together, and only the task's own thread changes them. */
static void set(struct core_task *task, uint64_t clock, uint64_t tsc)
{
	__atomic_store_n(&task->sequence, task->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&task->clock, clock, __ATOMIC_RELAXED);
	__atomic_store_n(&task->clock_tsc, tsc, __ATOMIC_RELAXED);
	__atomic_store_n(&task->sequence, task->sequence + 1, __ATOMIC_RELEASE);
}

static uint64_t at(uint64_t clock, uint64_t since, uint64_t tsc)
{
	/* Counters of processors may differ by a little. */
	return since && tsc > since ? clock + core_nanoseconds(tsc - since) : clock;
}

uint64_t core_clock_at(const struct core_task *task, uint64_t tsc)
{
	uint64_t clock, since;
	uint32_t before;

	if (task->everybody)
		return core_nanoseconds(tsc);
	for (unsigned int tries = 0; tries < CORE_TASK_TRIES; tries++) {
		before = __atomic_load_n(&task->sequence, __ATOMIC_ACQUIRE);
		clock = __atomic_load_n(&task->clock, __ATOMIC_RELAXED);
		since = __atomic_load_n(&task->clock_tsc, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && __atomic_load_n(&task->sequence, __ATOMIC_RELAXED) == before)
			break;
		__builtin_ia32_pause();
	}
	return at(clock, since, tsc);
}

void core_clock_start(struct core_task *task)
{
	if (task->clock_tsc)
		return;
	set(task, task->clock, core_host_tsc());
	if (task->mapped && core_host_whole())
		core_pages_update(task);
}

void core_clock_stop(struct core_task *task)
{
	if (task->clock_tsc)
		set(task, at(task->clock, task->clock_tsc, core_host_tsc()), 0);
}
