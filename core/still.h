/* SPDX-License-Identifier: MIT */
/*
 * A task held still from elsewhere, as the kernel interrupts the processor where it runs: its
 * thread comes out of translated code, where its counters are in registers, and waits. So a group
 * is read, and begins and ends to count, at one place of the program, and nothing that has been
 * executed is missing.
 *
 *	who holds (with the lock)		the thread
 *	still = true
 *	changes++
 *	inside? kick it, and wait		comes out: inside = 0
 *	...					followed = changes; waits while still
 *	unlock: still = false			goes inside, if changes are followed
 *
 * A thread that does not get a processor does not come out. It is waited for a moment; what it has
 * in registers then comes too late, some hundred instructions, or a trace that it has not taken in.
 * All counters are looked at together, so that a thread which goes on is seen at one place all the
 * same.
 */
#ifndef CORE_STILL_H
#define CORE_STILL_H

#include "core/core.h"
#include "core/schedule.h"
#include "core/task.h"

/* With the lock of @task, who is not the caller. */
void core_still_others(struct core_task *task);

/* With @task's lock, which ends it; NULL, or the caller's own: nothing is to be done. */
static inline void core_still(struct core_task *task)
{
	if (task && !core_is_callers(task))
		core_still_others(task);
}

/* The thread's own, without locks, once it has followed: waits while somebody holds it still. */
void core_still_wait(struct core_task *task);

/*
 * The thread's own, without locks, when it is outside: who has changed something, and has seen it
 * inside, has sent his kick when this returns. Else the signal would come in the system call that
 * is next, of which some are cut short by that: what they have done by then cannot be done again.
 */
void core_still_before_call(struct core_task *task);

/* With the lock: looks at all counters of who is held still, and at its clock. */
void core_still_see(struct core_task *task);

/* With the lock: a counter, as it was seen if @task is held still. */
static inline uint64_t core_still_counter(const struct core_task *task, enum core_kind kind)
{
	return task->still ? task->seen[kind] : core_counter_read(task, kind);
}

#endif
