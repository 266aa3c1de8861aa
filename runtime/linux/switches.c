// SPDX-License-Identifier: MIT
/*
 * The kernel tells how often it took the processor from a thread, not when. Looked at around each
 * system call that shows what the program waited for; a preemption is told at the next call.
 */
#include "runtime/linux/switches.h"

#include <linux/resource.h>

#include "core/core.h"
#include "core/time.h"
#include "runtime/linux/task.h"
#include "runtime/sys.h"

struct counts {
	uint64_t waited, preempted;
};

static struct counts look(void)
{
	enum { OF_THREAD = 1 };
	struct rusage usage = {0};

	sys(__NR_getrusage, OF_THREAD, &usage);
	return (struct counts){(uint64_t)usage.ru_nvcsw, (uint64_t)usage.ru_nivcsw};
}

void switches_before(struct thread *thread)
{
	struct task *task = thread->task;
	struct counts now = look();

	if (task->switches_known && now.preempted != task->preempted)
		core_switched(&thread->events, core_time(), true);
	task->switches_known = true;
	task->preempted = now.preempted;
	task->waited = now.waited;
	task->switches_since = core_time();
}

void switches_after(struct thread *thread)
{
	struct task *task = thread->task;
	struct counts now = look();

	if (!task->switches_known)
		return; /* an event that came meanwhile */
	if (now.waited != task->waited)
		core_switched(&thread->events, task->switches_since, false);
	task->waited = now.waited;
}
