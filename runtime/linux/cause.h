/* SPDX-License-Identifier: MIT */
/* What made a counter overflow: core_host_cause(). */
#ifndef RUNTIME_LINUX_CAUSE_H
#define RUNTIME_LINUX_CAUSE_H

struct thread;

/* What @thread has executed does not matter any more: it may go on in another way. */
void cause_forget(struct thread *thread);

#endif
