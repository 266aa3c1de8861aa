// SPDX-License-Identifier: MIT
/*
 * fcntl(2) of an event. Whom to tell of overflows, and how, the kernel keeps and checks for the
 * pipe as it would for the event; it must not send anything when the pipe becomes readable, though,
 * so FASYNC is known here alone.
 */
#include <asm/errno.h>
#include <asm/fcntl.h>
#include <linux/fcntl.h>

#include "core/core.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_calls.h"
#include "runtime/sys.h"

enum { OWNER_PID = 1, OWNER_PGRP = 2 };

struct owner_ex {
	int32_t type, pid;
};

static int64_t set_flags(struct thread *thread, struct syscall *call, struct core_owner *owner)
{
	const uint64_t flags = (uint32_t)call->args[2];
	struct syscall changed = *call;
	int64_t result;

	if (flags & O_DIRECT)
		return -EINVAL;
	changed.args[2] = flags & ~(uint64_t)FASYNC;
	result = syscall_pass(thread, &changed);
	if (result)
		return result;
	owner->fd = (int32_t)call->args[0];
	owner->async = flags & FASYNC;
	return 0;
}

static void own(struct core_owner *owner, int32_t type, int32_t pid)
{
	owner->pid = 0; /* nobody, while it changes */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	owner->type = type;
	__atomic_store_n(&owner->pid, pid, __ATOMIC_RELEASE);
}

int64_t event_fcntl(struct thread *thread, struct syscall *call, uint32_t event)
{
	struct core_owner *owner = &core_event(event)->owner;
	const int32_t argument = (int32_t)call->args[2];
	struct owner_ex ex = {0};
	int64_t result;

	switch ((uint32_t)call->args[1]) {
	case F_SETFL:
		return set_flags(thread, call, owner);
	case F_GETFL:
		result = syscall_pass(thread, call);
		if (result < 0)
			return result;
		return (result & ~O_ACCMODE) | O_RDWR | (owner->async ? FASYNC : 0);
	case F_SETOWN:
		result = syscall_pass(thread, call);
		if (!result && argument < 0)
			own(owner, OWNER_PGRP, -argument);
		else if (!result)
			own(owner, OWNER_PID, argument);
		return result;
	case F_SETOWN_EX:
		if (copy_in(&ex, call->args[2], sizeof(ex)))
			return -EFAULT;
		result = syscall_pass(thread, call);
		if (!result)
			own(owner, ex.type, ex.pid);
		return result;
	case F_SETSIG:
		result = syscall_pass(thread, call);
		if (!result)
			owner->signo = argument;
		return result;
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		return -EBADF;
	default:
		return syscall_pass(thread, call);
	}
}
