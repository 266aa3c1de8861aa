// SPDX-License-Identifier: MIT
#include "runtime/linux/tsc.h"

#include <linux/prctl.h>

#include "core/host.h"
#include "runtime/sys.h"

/* Whether any thread may have it so: which, the kernel knows. */
static bool refused;

static bool is_refused_here(void)
{
	int mode = PR_TSC_ENABLE;

	sys(__NR_prctl, PR_GET_TSC, &mode);
	return mode == PR_TSC_SIGSEGV;
}

void tsc_boot(void)
{
	refused = is_refused_here();
}

int64_t tsc_prctl(struct thread *thread, struct syscall *call)
{
	if ((int)call->args[1] == PR_TSC_SIGSEGV)
		__atomic_store_n(&refused, true, __ATOMIC_RELAXED);
	return syscall_pass(thread, call);
}

uint64_t core_host_tsc(void)
{
	uint64_t tsc;

	if (!__atomic_load_n(&refused, __ATOMIC_RELAXED) || !is_refused_here())
		return __builtin_ia32_rdtsc();
	sys(__NR_prctl, PR_SET_TSC, PR_TSC_ENABLE);
	tsc = __builtin_ia32_rdtsc();
	sys(__NR_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	return tsc;
}
