/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_LINUX_HALTED_H
#define RUNTIME_LINUX_HALTED_H

struct thread;

/* The caller waits for a lock of @thread, which it may have stopped itself, as its tracer: it lets
 * that go on until it has none. */
void halted_let_go(struct thread *thread);

#endif
