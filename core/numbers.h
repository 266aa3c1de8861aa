/* SPDX-License-Identifier: MIT */
/* Of what number a task is, to whom: PID name spaces. */
#ifndef CORE_NUMBERS_H
#define CORE_NUMBERS_H

#include <stdint.h>

struct core_event;
struct core_task;

struct core_numbers {
	int32_t pid, tid;
};

/*
 * As records of @event have them: of the name space in which it was opened. 0, as the kernel has
 * it, for tasks that are not in there. Between two name spaces of which neither is that of the run,
 * the task's own.
 */
struct core_numbers core_numbers(const struct core_event *event, const struct core_task *task);

/* Of the process that is waiting for @task, also where threads made it: twice that of its first
 * thread. */
struct core_numbers core_parent_numbers(const struct core_event *event,
					const struct core_task *task);

#endif
