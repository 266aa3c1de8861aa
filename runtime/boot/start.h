/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_BOOT_START_H
#define RUNTIME_BOOT_START_H

struct stack;

/*
 * The start of a run: @path has not been looked at yet. Returns if it is a program that can be
 * loaded right here, with its descriptor in descriptors.program; executes it if more is to it, with
 * the arguments and the environment of @stack. Says why when that fails, and ends as shells do
 * then: 127 when there is no such file, 126 otherwise.
 */
void start(const struct stack *stack, const char *path);

#endif
