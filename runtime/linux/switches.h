/* SPDX-License-Identifier: MIT */
/* Context switches of a thread, for events that want to be told of them: PERF_RECORD_SWITCH. */
#ifndef RUNTIME_LINUX_SWITCHES_H
#define RUNTIME_LINUX_SWITCHES_H

#include "runtime/thread.h"

/* Around a system call that the kernel makes for the program, if thread->events.switches. */
void switches_before(struct thread *thread);
void switches_after(struct thread *thread);

#endif
