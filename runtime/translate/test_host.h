/* SPDX-License-Identifier: MIT */
/*
 * The translator inside of an ordinary process: runs code of that process, C library and all, in
 * the cache. What the rest of the runtime would do is as little as it takes.
 */
#ifndef RUNTIME_TRANSLATE_TEST_HOST_H
#define RUNTIME_TRANSLATE_TEST_HOST_H

/* glibc has its own REG_RAX ..., with other values. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE
#include <signal.h>
#include <ucontext.h>

#include "runtime/translate/translate.h"

/* Once; the code cache lies near the program, whose data RIP-relative operands then reach, while
 * those of the libraries are out of reach. */
void host_start(void);

struct thread *host_thread(void);

/* Runs from @regs until the program gets to host_finish, and puts into @regs how it got there. */
void host_run(struct regs *regs);

/* Calls function(argument) so, on a stack of its own. */
void host_call(void (*function)(long), long argument);

/* A program under test jumps here to end. */
extern const char host_finish[];

/* There is no memory for another cache. */
extern bool host_short_of_memory;

/* What linux_due() does. */
extern void (*host_due)(struct thread *thread);

/* What linux_before_insn() and linux_after_insn() do. */
extern void (*host_before_insn)(struct thread *thread);
extern void (*host_after_insn)(struct thread *thread);

/* The registers of a signal frame, and back. */
void host_regs(const ucontext_t *context, struct regs *regs);

/* The mappings have changed. */
void host_maps(void);

#endif
