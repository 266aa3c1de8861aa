/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing the program's memory at addresses that the program gave: a bad one gives
 * -EFAULT, as from the kernel, and so does one of the runtime's own memory. The handler of SIGSEGV
 * and SIGBUS asks copy_fault().
 */
#ifndef RUNTIME_LINUX_COPY_H
#define RUNTIME_LINUX_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 or -EFAULT; then some of the bytes may have been copied. */
int64_t copy_in(void *to, uint64_t from, size_t size);
int64_t copy_out(uint64_t to, const void *from, size_t size);

/* copy_in() of what may as well be the runtime's. */
int64_t copy_from_any(void *to, uint64_t from, size_t size);

/* Makes a system call of 32-bit programs: 0, or -EFAULT if the kernel has none. */
int64_t copy_int80(void);

/* copy_in() of eight bytes, in less time. */
int64_t copy_word(uint64_t *to, uint64_t from);

/* Copies a string with its zero; returns its length, -EFAULT, or -ENAMETOOLONG past @size. */
int64_t copy_string_in(char *to, uint64_t from, size_t size);

/*
 * A fault came with the processor at @rip: true if one of these functions was at it; then *@rip is
 * where to go on.
 */
bool copy_fault(uint64_t *rip);

#endif
