/* SPDX-License-Identifier: MIT */
/*
 * The life of the program's threads as the event core is told of it. A thread without a page of the
 * arena has no events; nothing here does anything for it.
 */
#ifndef RUNTIME_LINUX_TASKS_H
#define RUNTIME_LINUX_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread.h"

/* At boot, when signals can come and the program's registers are known: the first of a run, or one
 * that goes on with the events that it had before exec. */
void tasks_boot(struct thread *thread);

/* @parent, the caller, is about to make @child with clone(2)'s @flags: what is inherited. */
void tasks_begin(struct thread *child, struct thread *parent, uint64_t flags);

/*
 * Before @thread, the caller, forks or executes: another one may have ended the tasks of their
 * process, and be about to end that. What came of it would go on without what it should have
 * inherited. Waits for the end, but not for ever.
 */
void tasks_await_end(const struct thread *thread);
/* @thread, the caller, is about to execute, or has failed to: what that is to the first thread of
 * its process, if it is another. */
void tasks_executing(struct thread *thread, bool is);
/*
 * The parent's: the child of fork(2) that began as the task @id, at @child, is @pid to the parent;
 * who is told that number may ask for the child at once. That may have ended, and its place be
 * another's.
 */
void tasks_forked(struct thread *child, uint64_t id, int32_t pid);
/* The child's: it runs. */
void tasks_begun(struct thread *thread);

/* The thread ends, or goes on natively. Harmless when it has ended already. */
void tasks_end(struct thread *thread);
/* All threads of the caller's process. */
void tasks_end_all(struct thread *thread);

/* Whether there is memory for @thread, the caller, to count @kinds and look for @extras beside
 * what it does; @later: not from now on. */
bool tasks_affords(struct thread *thread, uint64_t kinds, uint64_t extras, bool later);

/* The caller, @thread, will execute its last instruction, a plain one, once more. */
void tasks_uncount(struct thread *thread);

/* The slow half of tasks_update(). */
void tasks_follow(struct thread *thread);

/* The caller's code counts, and stops, as its events want it from now on; those for which it
 * cannot are in error. */
void tasks_instrument(struct thread *thread);

/*
 * The caller's: follows what others, or it itself, have changed of what is to be counted. To be
 * called before the thread goes back to translated code.
 */
static inline void tasks_update(struct thread *thread)
{
	if (core_task_changed(&thread->events) || thread->events.bound ||
	    thread->events.counting_down & CORE_KINDS_SOFTWARE)
		tasks_follow(thread);
}

/* The slow half of tasks_before_call(). */
void tasks_await_kick(struct thread *thread);

/*
 * The caller's, which has come out for a system call: takes the kick that somebody may be about to
 * send it, as he has seen it inside a moment ago.
 */
static inline void tasks_before_call(struct thread *thread)
{
	/* That it is outside comes before it looks: so he has seen that, or it sees what he has
	 * changed. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (core_task_changed(&thread->events))
		tasks_await_kick(thread);
}

/* Whether the caller's process and @task's are in the same name space: then its numbers mean it. */
bool tasks_agree(const struct core_task *task);

/* What the caller knows @task by, where there is a number: of the first thread of a process at
 * least. */
struct task_numbers {
	int32_t pid, tid;
};
bool tasks_numbers(const struct core_task *task, struct task_numbers *numbers);

/* The page of the thread that the program knows by that number; 0: none of this run. */
uint32_t tasks_find(int32_t tid);

/* Queues it to each process of the run that is in that group. */
struct siginfo;
void tasks_queue_to_group(int32_t group, const struct siginfo *info);

/* Events have been attached to that page: its process is watched. */
void tasks_watch(uint32_t page);
/* Events have been attached to every task. */
void tasks_watch_all(void);
/* Of all that the arena says live, those that do not are ended. */
void tasks_sweep(void);

/* The number of the processor that the caller runs on. */
int tasks_cpu(void);

#endif
