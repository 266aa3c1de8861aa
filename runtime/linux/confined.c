// SPDX-License-Identifier: MIT
#include "runtime/linux/confined.h"

#include "runtime/linux/syscalls.h"

static bool begun;

bool confined(void)
{
	return __atomic_load_n(&begun, __ATOMIC_RELAXED);
}

static void begin(void)
{
	__atomic_store_n(&begun, true, __ATOMIC_RELAXED);
}

void confined_boot(bool before)
{
	begun = before;
}

int64_t sys_seccomp(struct thread *thread, struct syscall *call)
{
	begin();
	return syscall_pass(thread, call);
}
