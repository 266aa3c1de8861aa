// SPDX-License-Identifier: MIT
/*
 * Debuggers put breakpoints where the program's code lies, and step from one instruction to the
 * next; what is executed is a copy. Nobody is to wait in silence for a breakpoint that is never
 * met. strace(1) and the like, which look at system calls, work as ever, and make none of these
 * requests.
 */
#include "runtime/linux/debugger.h"

#include <linux/ptrace.h>
#include <stdbool.h>

#include "runtime/linux/syscalls.h"
#include "runtime/say.h"

/* Of <sys/ptrace.h>, and the kernel's for x86. */
enum { SINGLEBLOCK = 33 };

void debugger_seen(void)
{
	static bool told;

	if (__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		return;
	say("breakpoints and single steps of a debugger do not work on programs that run under "
	    "`tally run`: debug them without it");
}

int64_t sys_ptrace(struct thread *thread, struct syscall *call)
{
	switch (call->args[0]) {
	case PTRACE_POKETEXT:
	case PTRACE_POKEDATA:
	case PTRACE_SINGLESTEP:
	case SINGLEBLOCK:
		debugger_seen();
		break;
	}
	return syscall_pass(thread, call);
}
