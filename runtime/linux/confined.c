// SPDX-License-Identifier: MIT
#include "runtime/linux/confined.h"

#include <linux/prctl.h>

#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/syscalls.h"
#include "runtime/sys.h"

static bool begun;

bool confined(void)
{
	return __atomic_load_n(&begun, __ATOMIC_RELAXED);
}

static void begin(void)
{
	__atomic_store_n(&begun, true, __ATOMIC_RELAXED);
}

void confined_boot(void)
{
	const int64_t outside = arena_header() ? core_settings()->seccomp : 0;

	if (sys(__NR_prctl, PR_GET_SECCOMP) != outside)
		begin();
}

int64_t sys_seccomp(struct thread *thread, struct syscall *call)
{
	begin();
	return syscall_pass(thread, call);
}
