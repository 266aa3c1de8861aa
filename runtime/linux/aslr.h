/* SPDX-License-Identifier: MIT */
/* Address space layout randomisation, as the kernel would have it for the program. */
#ifndef RUNTIME_LINUX_ASLR_H
#define RUNTIME_LINUX_ASLR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * @name is the kernel's AT_EXECFN, which lies at the end of the stack: where that is tells all that
 * one could ask for. A sandbox may not answer personality(2), nor is there always a /proc with
 * randomize_va_space. @fixed: they are not to be random anyway (boot/fixed.h).
 */
void aslr_boot(uint64_t name, bool fixed);
bool aslr_is_fixed(void);

/* Whether the kernel has chosen some: not so by personality(2), or on the whole machine. */
bool aslr_is_the_kernels(void);

/* Whether addresses are to be the same each time. */
bool aslr_is_off(void);

/* To choose an address by; 0 where they are to be the same, and as long as the kernel has none. */
uint64_t aslr_random(void);

#endif
