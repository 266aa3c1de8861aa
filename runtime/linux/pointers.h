/* SPDX-License-Identifier: MIT */
/*
 * Arguments of system calls that are addresses. Where the runtime's memory is there is nothing for
 * the program, and the kernel does not know that: it would write over code and tables.
 */
#ifndef RUNTIME_LINUX_POINTERS_H
#define RUNTIME_LINUX_POINTERS_H

struct syscall;

/*
 * An argument that leads to the runtime's memory leads nowhere, and the kernel says what it has to
 * say of that. A buffer with its size ends where that memory begins.
 */
void pointers_hide(struct syscall *call);

#endif
