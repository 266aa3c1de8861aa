/* SPDX-License-Identifier: MIT */
/*
 * The runtime's own system calls: results are negative errno values, as the kernel returns them.
 * The program's calls go through linux/syscalls.h instead, which a signal can interrupt.
 */
#ifndef RUNTIME_SYS_H
#define RUNTIME_SYS_H

#include <asm/unistd.h>
#include <stdbool.h>
#include <stdint.h>

static inline int64_t sys6(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			   uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	int64_t result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* sys(NUMBER, up to six arguments of any integer or pointer type) */
#define sys(...) sys_pad(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define sys_pad(number, a, b, c, d, e, f, ...)                                                     \
	sys6((uint64_t)(number), (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d),       \
	     (uint64_t)(e), (uint64_t)(f))

/* Whether a system call has failed, also one that gives an address: programs have none below 0. */
static inline bool sys_failed(int64_t result)
{
	return result < 0;
}

#endif
