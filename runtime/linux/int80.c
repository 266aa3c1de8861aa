// SPDX-License-Identifier: MIT
/*
 * int 0x80: the system calls of 32-bit programs, which a 64-bit program can make too. Few do, to
 * write a text and end. What would change the process behind the runtime's back is not offered.
 */
#include <asm/errno.h>
#include <asm/unistd_32.h>
#include <linux/signal.h>

#include "runtime/linux/copy.h"
#include "runtime/say.h"
#include "runtime/thread.h"
#include "runtime/translate/translate.h"

static bool offered(uint64_t number)
{
	switch (number) {
	case __NR_exit:
	case __NR_exit_group:
	case __NR_read:
	case __NR_write:
	case __NR_open:
	case __NR_lseek:
	case __NR_getpid:
	case __NR_gettid:
	case __NR_getuid32:
	case __NR_getgid32:
	case __NR_time:
	case __NR_uname:
		return true;
	}
	return false;
}

/* Some kernels have none of them. */
static bool has_calls(void)
{
	enum { UNKNOWN, HAS, HAS_NOT };
	static uint8_t calls;

	if (__atomic_load_n(&calls, __ATOMIC_RELAXED) == UNKNOWN)
		__atomic_store_n(&calls, copy_int80() ? HAS_NOT : HAS, __ATOMIC_RELAXED);
	return __atomic_load_n(&calls, __ATOMIC_RELAXED) == HAS;
}

void linux_int80(struct thread *thread, unsigned int length)
{
	uint64_t *gpr = thread->regs.gpr;
	uint64_t number = (uint32_t)gpr[REG_RAX], result = (uint64_t)-ENOSYS;

	if (!has_calls()) {
		linux_fault(thread, SIGSEGV, SI_KERNEL, 0);
		return;
	}
	thread->regs.rip += length;
	if (offered(number))
		__asm__ volatile("int $0x80"
				 : "=a"(result)
				 : "a"(number), "b"(gpr[REG_RBX]), "c"(gpr[REG_RCX]),
				   "d"(gpr[REG_RDX]), "S"(gpr[REG_RSI]), "D"(gpr[REG_RDI])
				 : "r8", "r9", "r10", "r11", "memory");
	else
		say("system call %u by int 0x80 is not supported: it fails with ENOSYS", number);
	gpr[REG_RAX] = result;
}
