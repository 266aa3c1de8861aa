// SPDX-License-Identifier: MIT
#include "core/still.h"

#include "core/count.h"
#include "core/host.h"
#include "core/schedule.h"
#include "core/time.h"

/* Tries before others are let run, and turns of that before the lock is asked for. */
enum { SPINS = 200, TURNS = 16 };

/* How often all is looked at until it was at one time, and how long that may last. */
enum { LOOKS = 32, AT_ONCE = 20000 /* ns */ };

static bool spins(const bool *flag)
{
	for (unsigned int i = 0; i < SPINS && __atomic_load_n(flag, __ATOMIC_RELAXED); i++)
		__builtin_ia32_pause();
	return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* Asked before, it has not come out since: then it has had no processor, and executed nothing. */
static bool is_asked(const struct core_task *task)
{
	const uint32_t followed = __atomic_load_n(&task->followed, __ATOMIC_RELAXED);

	return task->asked && (int32_t)(followed - task->asked) < 0;
}

/* When it is held again, and would wait if it came now: it may have come in between. */
static bool is_still_asked(struct core_task *task)
{
	if (!is_asked(task))
		return false;
	__atomic_store_n(&task->still, true, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return is_asked(task);
}

/* Who waits since the last time goes first: else the program would not get on at all while somebody
 * looks at it again and again. */
static void let_go(const struct core_task *task)
{
	spins(&task->waits);
}

static void ask(struct core_task *task)
{
	let_go(task);
	__atomic_store_n(&task->still, true, __ATOMIC_RELAXED);
	core_task_change(task);
	task->asked = task->replaced || core_host_still(task) ? 0 : task->changes;
}

void core_still_others(struct core_task *task)
{
	if (task->everybody || !task->live)
		return;
	if (!is_still_asked(task))
		ask(task);
	core_still_see(task);
}

/* By its own thread alone, and not without the lock, a counter's two words change together. */
static void see_counters(struct core_task *task)
{
	for (unsigned int kind = 0; kind < CORE_COUNTED_KINDS; kind++)
		task->seen[kind] =
			(uint64_t)__atomic_load_n(&task->counter[kind], __ATOMIC_RELAXED) +
			(uint64_t)task->bias[kind];
}

/*
 * Where the clock began or ceased to go meanwhile, the next look, or the one before, may find the
 * same time with other counts: something would have been counted in no time at all, and perf drops
 * that.
 */
void core_still_see(struct core_task *task)
{
	for (unsigned int looks = 0; looks < LOOKS; looks++) {
		const uint32_t sequence = __atomic_load_n(&task->sequence, __ATOMIC_ACQUIRE);
		const uint64_t since = core_time();

		see_counters(task);
		core_look_at_clock(task);
		if (__atomic_load_n(&task->sequence, __ATOMIC_ACQUIRE) == sequence &&
		    core_time() - since < AT_ONCE)
			return;
	}
}

void core_still_before_call(struct core_task *task)
{
	core_still_wait(task);
	core_task_lock(task);
	core_task_unlock(task);
}

void core_still_wait(struct core_task *task)
{
	/* That it has followed comes before it looks: is_still_asked(). */
	if (__atomic_load_n(&task->asked, __ATOMIC_RELAXED))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&task->still, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&task->waits, true, __ATOMIC_RELAXED);
	for (unsigned int turn = 0; spins(&task->still) && turn < TURNS; turn++)
		core_host_pause(turn);
	__atomic_store_n(&task->waits, false, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&task->still, __ATOMIC_RELAXED))
		return;
	/* Who holds it may have been killed: the lock tells. */
	core_task_lock(task);
	core_task_unlock(task);
}
