// SPDX-License-Identifier: MIT
/* The counters of a task: two words each, core/task.h says why. */
#include "core/counter.h"

#include "core/arena.h"

void core_counters_init(struct core_task *task)
{
	for (unsigned int kind = 0; kind < CORE_COUNTED_KINDS; kind++) {
		task->counter[kind] = CORE_COUNTER_START;
		task->bias[kind] = CORE_COUNTER_START; /* they cancel out */
	}
}

void core_counter_raise(struct core_task *task, enum core_kind kind, uint64_t value)
{
	const int64_t more = (int64_t)(value - core_counter_read(task, kind));

	if (more > 0)
		__atomic_store_n(&task->counter[kind], task->counter[kind] + more,
				 __ATOMIC_RELAXED);
}

/* The same value, with @counter in the word to which the code adds. */
static void place(struct core_task *task, enum core_kind kind, int64_t counter)
{
	uint64_t value = (uint64_t)task->counter[kind] + (uint64_t)task->bias[kind];

	__atomic_store_n(&task->sequence, task->sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&task->counter[kind], counter, __ATOMIC_RELAXED);
	__atomic_store_n(&task->bias[kind], (int64_t)(value - (uint64_t)counter), __ATOMIC_RELAXED);
	__atomic_store_n(&task->sequence, task->sequence + 1, __ATOMIC_RELEASE);
}

/*
 * How long to count until something is to be done. Where branches are to be told the thread has to
 * come out earlier, as it notes them on the last stretch alone; and before that, or the overflow,
 * once more, for code that sees it at once.
 */
static int64_t stretch(struct core_task *task, enum core_kind kind, int64_t left)
{
	const uint64_t looks = CORE_EXTRA_BRANCH_STACK | CORE_EXTRA_CALL_STACK;

	if (task->extras & looks && kind < CORE_HARDWARE_KINDS) {
		if (left > CORE_LOOK_BACK)
			left -= CORE_LOOK_BACK;
		else
			task->looking_back |= CORE_KIND_BIT(kind);
	}
	if (CORE_KINDS_EXACT >> kind & 1 && left > core_early(kind)) {
		left -= core_early(kind);
		task->early |= CORE_KIND_BIT(kind);
	}
	return left;
}

void core_counters_program(struct core_task *task)
{
	int64_t left[CORE_COUNTED_KINDS];
	uint64_t kinds = 0, stop;

	core_for_each_event(event, task) {
		const uint64_t bit = core_kind_bit(event->kind);
		int64_t here;

		if (event->state != CORE_ACTIVE || !event->period ||
		    event->kind >= CORE_COUNTED_KINDS)
			continue;
		here = (int64_t)(event->due - core_counter_read(task, event->kind));
		if (!(kinds & bit) || here < left[event->kind])
			left[event->kind] = here;
		kinds |= bit;
	}
	stop = task->counting_down & ~kinds;
	task->early = task->looking_back = 0;
	core_for_each_kind(kind, kinds)
		place(task, kind, -stretch(task, kind, left[kind]));
	core_for_each_kind(kind, stop)
		place(task, kind, CORE_COUNTER_START);
	task->counting_down = kinds;
}
