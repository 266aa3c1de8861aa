/* SPDX-License-Identifier: MIT */
/*
 * Where the runtime's own memory lies, as far as it may lie anywhere: where the kernel would put a
 * position-independent program, at random as it does. The program is in the window (window.h), so
 * nothing is there; and the kernel, which puts a program's mappings below each other from the top
 * on, does so as if the runtime had none. Sanitizers, whose shadow memory is elsewhere, expect some
 * there.
 */
#ifndef RUNTIME_LINUX_APART_H
#define RUNTIME_LINUX_APART_H

#include <stddef.h>
#include <stdint.h>

/* Where it begins, at random. */
uint64_t apart_start(void);

/* Boot: the first is mapped already, up to @end. */
void apart_boot(uint64_t end);

/* As mmap(2), with @flags for memory that lies apart, or anywhere if there is no room. */
int64_t apart_map(size_t size, int prot, int flags, int fd, uint64_t offset);

/* It is unmapped again: if it was the last, the next one takes its place. */
void apart_freed(uint64_t start, uint64_t end);

#endif
