// SPDX-License-Identifier: MIT
#include "runtime/linux/clock_timer.h"

#include <linux/signal.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "abi/control.h"
#include "core/host.h"
#include "core/task.h"
#include "runtime/linux/task.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

/* Sooner than this is no sense in waking up. */
#define SHORTEST_NS 20000
#define SECOND	    1000000000

/* Nanoseconds until the nearest overflow, but at least @shortest; 0: no clock is sampled. */
static int64_t until_due(const struct core_task *task, int64_t shortest)
{
	static const enum core_kind clocks[] = {CORE_TASK_CLOCK, CORE_CPU_CLOCK};
	int64_t least = 0;

	for (unsigned int i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		if (!(task->counting_down & CORE_KIND_BIT(clocks[i])))
			continue;
		int64_t left = -task->counter[clocks[i]];

		if (left < shortest)
			left = shortest;
		if (!least || left < least)
			least = left;
	}
	return least;
}

static bool make(struct task *task)
{
	struct sigevent event = {
		.sigev_signo = KICK_SIGNAL,
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_value.sival_ptr = (void *)KICK_VALUE,
	};

	if (task->clock_timer)
		return true;
	event._sigev_un._tid = (int)sys(__NR_gettid);
	if (sys(__NR_timer_create, CLOCK_MONOTONIC, &event, &task->timer))
		return false;
	task->clock_timer = CLOCK_TIMER_STANDS;
	return true;
}

static void set(struct task *task, int64_t ns)
{
	const struct __kernel_itimerspec when = {.it_value = {ns / SECOND, ns % SECOND}};

	sys(__NR_timer_settime, task->timer, 0, &when, NULL);
	task->clock_timer = ns ? CLOCK_TIMER_RUNS : CLOCK_TIMER_STANDS;
}

bool clock_timer_looks(struct thread *thread, uint64_t now)
{
	struct task *task = thread->task;

	if (!(thread->events.counting_down & CORE_KINDS_SOFTWARE))
		return true;
	if (!task->clock.looked && now - task->clock.since < task->clock.rest)
		return false;
	if (!task->clock.looked)
		task->clock.looked = now;
	return true;
}

static void rest(struct task *task)
{
	const uint64_t now = core_host_clock(CLOCK_THREAD_CPUTIME_ID);
	const uint64_t took = now - task->clock.looked;

	task->clock.rest = 2 * took > SHORTEST_NS ? 2 * took : SHORTEST_NS;
	task->clock.since = now;
	task->clock.looked = 0;
}

void clock_timer_follow(struct thread *thread)
{
	struct task *task = thread->task;

	if (!(thread->events.counting_down & CORE_KINDS_SOFTWARE)) {
		clock_timer_stop(thread);
		/* Who begins anew later has not been looking all the time. */
		task->clock = (struct clock_looks){0};
		return;
	}
	if (task->clock.looked)
		rest(task);
	const int64_t ns = until_due(&thread->events, (int64_t)task->clock.rest);

	if (!ns)
		clock_timer_stop(thread);
	else if (make(task))
		set(task, ns);
}

void clock_timer_stop(struct thread *thread)
{
	if (thread->task->clock_timer == CLOCK_TIMER_RUNS)
		set(thread->task, 0);
}

void clock_timer_end(struct thread *thread)
{
	if (thread->task->clock_timer)
		sys(__NR_timer_delete, thread->task->timer);
	thread->task->clock_timer = CLOCK_TIMER_NONE;
}
