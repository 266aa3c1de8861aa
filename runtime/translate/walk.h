/* SPDX-License-Identifier: MIT */
/*
 * The last instructions before an overflow, and those behind it. A thread comes to them once,
 * mostly, and to make code for them takes longer than to execute them without any (interpret.h).
 *
 * Of the caller, which is not inside: executes the program's instructions from thread->regs on.
 * Stops where something waits for the thread, too, and at what has to have code. False: that is the
 * first one, or there is nothing to walk to.
 */
#ifndef RUNTIME_TRANSLATE_WALK_H
#define RUNTIME_TRANSLATE_WALK_H

#include <stdbool.h>

struct thread;

/* Until a counter has got to 0, which is near. */
bool walk_to_overflow(struct thread *thread);

/* Until the thread's cache has code for what comes. */
bool walk_to_code(struct thread *thread);

#endif
