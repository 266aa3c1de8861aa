// SPDX-License-Identifier: MIT
/* prctl(2): what of it changes something that the runtime knows, or that would be its end. */
#include <asm/errno.h>
#include <linux/prctl.h>

#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/seccomp.h"
#include "runtime/linux/syscalls.h"
#include "runtime/linux/tsc.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

static int64_t named(struct thread *thread, struct syscall *call)
{
	char comm[sizeof(thread->events.comm)] = "";
	int64_t result = syscall_pass(thread, call);

	/* The events may all be others', who have just begun to look at this process. */
	if (result || !thread->page || !core_nr_events() || !arena_events())
		return result;
	sys(__NR_prctl, PR_GET_NAME, comm);
	core_task_comm(&thread->events, &thread->events, comm);
	return 0;
}

/* The kernel is asked only if it has events of the caller's: it switches nobody else's. */
static int64_t switch_created(struct thread *thread, struct syscall *call, bool on)
{
	const bool has_some = thread->page && core_nr_events() && arena_events();
	int64_t result = 0;

	if (!thread->page || thread->events.passed)
		result = syscall_pass(thread, call);
	if (!result && event_passed_any())
		event_passed_switched(thread, on);
	if (!result && has_some)
		core_prctl(core_task(thread->page), on);
	return result;
}

int64_t sys_prctl(struct thread *thread, struct syscall *call)
{
	switch ((int)call->args[0]) {
	case PR_SET_NAME:
		return named(thread, call);
	case PR_SET_SECCOMP:
		return seccomp_prctl(thread, call);
	case PR_SET_TSC:
		return tsc_prctl(thread, call);
	case PR_SET_SYSCALL_USER_DISPATCH:
		return -EINVAL; /* absent, as in old kernels: it would meet the runtime's calls */
	case PR_TASK_PERF_EVENTS_DISABLE:
		return switch_created(thread, call, false);
	case PR_TASK_PERF_EVENTS_ENABLE:
		return switch_created(thread, call, true);
	default:
		return syscall_pass(thread, call);
	}
}
