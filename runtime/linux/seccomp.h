/* SPDX-License-Identifier: MIT */
/*
 * A program that confines itself, by seccomp(2) or prctl(2), says which calls it will make; of
 * those that the runtime makes in between it knows nothing. So what the kernel gets is the
 * program's filter behind a few instructions that let pass whatever comes from the runtime's text,
 * but for the one place from which calls of the program are made as they are (syscall_pass.S).
 *
 * Calls that have a handler are made by the runtime in the program's stead. For their sake the
 * filters are kept, and asked before a handler begins: what they refuse is not handled, but passed,
 * and the kernel does with it what the filter says. Which filters have been there before an
 * execve(2) nobody knows: the text lies elsewhere after it, so the kernel holds them against all
 * calls.
 */
#ifndef RUNTIME_LINUX_SECCOMP_H
#define RUNTIME_LINUX_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/linux/syscalls.h"

struct sock_filter;
struct task;

/* A filter that a thread is under; they are never changed, and never go. */
struct seccomp_filter {
	const struct seccomp_filter *earlier;
	const struct sock_filter *instructions; /* the program's */
};

/* prctl(PR_SET_SECCOMP); sys_seccomp is in syscalls.h. */
int64_t seccomp_prctl(struct thread *thread, struct syscall *call);

/* Whether a filter of @task's ends @call, answers it, or makes a SIGSYS of it. */
bool seccomp_refuses(const struct task *task, const struct syscall *call);

/* Has the kernel do what is to be done with a call that is refused. */
int64_t seccomp_refused(struct thread *thread, const struct syscall *call);

#endif
