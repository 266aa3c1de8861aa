/* SPDX-License-Identifier: MIT */
/* Which functions with a probe on their return have been entered, and when they return. */
#ifndef RUNTIME_LINUX_UPROBE_RETURNS_H
#define RUNTIME_LINUX_UPROBE_RETURNS_H

#include <stdbool.h>
#include <stdint.h>

struct core_probe_met;
struct task;
struct thread;

/* The program is at the first instruction of a function, and somebody wants to see it return. */
void uprobe_await_return(struct thread *thread, const struct core_probe_met *met);

/* The program is about to go on at @pc, where it stops: if a function has just returned to it,
 * whoever has a probe on that is told. Whether anybody has been. */
bool uprobe_returned(struct thread *thread, uint64_t pc);

/* A thread is about to begin, in no function that it has called itself; as to the kernel, also
 * of who comes back from where its parent has gone to. */
void uprobe_returns_begin(struct task *task);

#endif
