/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_BOOT_START_H
#define RUNTIME_BOOT_START_H

struct stack;

/*
 * The start of a run: executes @path with the arguments and the environment of @stack. Says why
 * when that fails, and ends as shells do then: 127 when there is no such file, 126 otherwise.
 */
_Noreturn void start(const struct stack *stack, const char *path);

#endif
