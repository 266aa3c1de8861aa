/* SPDX-License-Identifier: MIT */
/*
 * Threads and processes of the program, as they begin and end.
 *
 * A thread's struct, its stack in the runtime and the stack for the kernel's signal frames make up
 * a slot (task.h); slots are reused. Translated code of all threads of a process is one, so nothing
 * else belongs to a thread.
 */
#ifndef RUNTIME_LINUX_THREADS_H
#define RUNTIME_LINUX_THREADS_H

#include <stdint.h>

#include "runtime/linux/syscalls.h"

struct task;
struct thread;

/*
 * At boot: makes the process's first thread, on the page of the arena that it had before exec if
 * @owner says so (arena_owner()), and points GS base at it, so that thread_self() works.
 * Never fails: without memory for one thread there is nothing to run, and it says so and ends.
 */
struct thread *threads_boot(uint32_t owner);

/* thread_slots.c: calls @visit for each task in this memory. It must not wait for any of them. */
void threads_visit(void (*visit)(struct task *task, void *what), void *what);

/* @thread, which calls, has a table of descriptors of its own from now on. */
void threads_unshared(struct thread *thread);

syscall_handler sys_clone, sys_clone3, sys_fork, sys_vfork;
syscall_handler sys_exit, sys_exit_group;

/* detach.c: ARCH_SET_GS is of a program that needs GS for itself. */
syscall_handler sys_arch_prctl;

#endif
