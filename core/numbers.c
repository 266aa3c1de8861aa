// SPDX-License-Identifier: MIT
#include "core/numbers.h"

#include "core/arena.h"
#include "core/core.h"

static bool agrees(const struct core_event *event, const struct core_task *task)
{
	const uint64_t here = core_opened_const(event)->name_space;

	return here == task->name_space || !here || !core_settings()->name_space;
}

struct core_numbers core_numbers(const struct core_event *event, const struct core_task *task)
{
	const uint64_t first = core_settings()->name_space;
	const uint64_t here = core_opened_const(event)->name_space;
	const struct core_numbers own = {task->pid, task->tid};

	if (agrees(event, task))
		return own;
	if (here == first)
		return task->first_tid ? (struct core_numbers){task->first_pid, task->first_tid}
				       : own;
	return task->name_space == first ? (struct core_numbers){0, 0} : own;
}

struct core_numbers core_parent_numbers(const struct core_event *event,
					const struct core_task *task)
{
	const struct core_task *parent = core_task(task->parent);
	int32_t pid = 0;

	if (agrees(event, task))
		pid = task->ppid;
	else if (task->parent && parent->live && parent->id == task->parent_id &&
		 (!task->ppid || task->ppid == parent->pid))
		pid = core_numbers(event, parent).pid;
	return (struct core_numbers){pid, pid};
}
