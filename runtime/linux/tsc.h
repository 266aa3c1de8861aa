/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter, by which tasks are timed. A thread may have it that whoever reads it gets
 * a SIGSEGV (PR_SET_TSC): the runtime does so where nobody sees it.
 */
#ifndef RUNTIME_LINUX_TSC_H
#define RUNTIME_LINUX_TSC_H

#include "runtime/linux/syscalls.h"

/* At boot: what exec has left. */
void tsc_boot(void);

/* prctl(PR_SET_TSC) */
int64_t tsc_prctl(struct thread *thread, struct syscall *call);

#endif
