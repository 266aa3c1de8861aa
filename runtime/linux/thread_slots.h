/* SPDX-License-Identifier: MIT */
/*
 * What a thread has of its own in the runtime:
 *
 *	| struct task | its own struct thread | signal stack | stack in the runtime |
 *
 * Its struct thread is a page of the arena; its own one serves while that cannot be had.
 */
#ifndef RUNTIME_LINUX_THREAD_SLOTS_H
#define RUNTIME_LINUX_THREAD_SLOTS_H

#define SIGNAL_STACK_SIZE  32768 /* the kernel's largest frame, and what the handler needs */
#define RUNTIME_STACK_SIZE 131072
#define SLOT_HEAD	   8192 /* struct task and struct thread */
#define SLOT_SIZE	   (SLOT_HEAD + SIGNAL_STACK_SIZE + RUNTIME_STACK_SIZE)

/* What of the stack the boot needs, and translating, in whole pages. */
#define BOOT_STACK	 16384
#define TRANSLATOR_STACK 36864

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stdint.h>

struct task;
struct thread;

/* The first thread's: the boot works on its stack. */
extern char slot_first[SLOT_SIZE];

char *slot_signal_stack(struct task *task);
char *slot_runtime_stack(struct task *task);
struct thread *slot_own_thread(struct task *task);

/* A slot, new or left by a thread that has ended; NULL if there is none. */
struct task *slot_new(void);
struct task *slot_reused(void);
void slot_give(struct task *task);

/* Whose thread has that number; NULL: nobody's. Without the lock, which that one may have. */
struct task *slot_of(int tid);

/* Makes @thread, whose events stay as they are, the slot's: it is on @page. */
struct thread *slot_adopt(struct task *task, struct thread *thread, uint32_t page);

/* The slot is to have its own. */
void slot_leave_page(struct task *task);

/* Gives the slot its struct thread: the one it had, one of the arena, or its own. */
struct thread *slot_thread(struct task *task);

/* Some thread has, or had, a table of descriptors of its own: who took the page of a slot may end
 * before who uses it now. */
bool slots_tables_differ(void);
void slots_tables_part(void);

/* Around fork, so that the child finds no slot half done. */
void slots_lock(void);
void slots_unlock(void);

/* In a child of fork: @self is its only thread. */
void slots_forked(const struct task *self);

#endif

#endif
