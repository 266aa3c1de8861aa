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
#include "core/hold.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_calls.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

enum { OWNER_PID = 1, OWNER_PGRP = 2 };

/* What the kernel has taken. */
static int64_t set_owner(uint64_t event, const struct core_owner *to)
{
	struct core_hold hold;

	if (!core_hold(&hold, event))
		return -EBADF;
	hold.event->owner.pid = 0; /* nobody, while it changes */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	hold.event->owner.type = to->type;
	hold.event->owner.signo = to->signo;
	hold.event->owner.fd = to->fd;
	hold.event->owner.async = to->async;
	hold.event->owner.name_space = thread_self()->events.name_space;
	__atomic_store_n(&hold.event->owner.pid, to->pid, __ATOMIC_RELEASE);
	core_hold_end(&hold);
	return 0;
}

int64_t event_set_nonblocking(uint64_t event, bool on)
{
	struct core_hold hold;

	if (!core_hold(&hold, event))
		return -EBADF;
	hold.event->nonblocking = on;
	core_hold_end(&hold);
	return 0;
}

static int64_t set_flags(struct thread *thread, struct syscall *call, uint64_t event,
			 struct core_owner *owner)
{
	const uint64_t flags = (uint32_t)call->args[2];
	struct syscall changed = *call;
	int64_t result;

	if (flags & O_DIRECT)
		return -EINVAL;
	changed.args[2] = (flags & ~(uint64_t)FASYNC) | O_NONBLOCK;
	result = syscall_pass(thread, &changed);
	if (!result)
		result = event_set_nonblocking(event, flags & O_NONBLOCK);
	if (result)
		return result;
	owner->fd = (int32_t)call->args[0];
	owner->async = flags & FASYNC;
	return 0;
}

void event_modes(int fd, struct event_modes *modes)
{
	*modes = (struct event_modes){
		.flags = (uint32_t)sys(__NR_fcntl, fd, F_GETFL),
		.signo = (int32_t)sys(__NR_fcntl, fd, F_GETSIG),
	};
	if (sys(__NR_fcntl, fd, F_GETOWN_EX, &modes->owner))
		modes->owner = (struct event_owner){0};
}

/* The kernel keeps them for the pipe, too, to be asked for them. */
void event_set_modes(int fd, uint64_t event, const struct event_modes *modes)
{
	const struct core_owner owner = {
		.type = modes->owner.type,
		.pid = modes->owner.pid,
		.signo = modes->signo,
		.fd = fd,
		.async = modes->flags & FASYNC,
	};

	event_set_nonblocking(event, modes->flags & O_NONBLOCK);
	if (modes->signo)
		sys(__NR_fcntl, fd, F_SETSIG, modes->signo);
	if (modes->owner.pid)
		sys(__NR_fcntl, fd, F_SETOWN_EX, &modes->owner);
	set_owner(event, &owner);
}

/* All that has no file system is one file to those who lock it, which any of it can be asked,
 * and which who closes any has unlocked. */
static int64_t lock_event(struct thread *thread, const struct syscall *call)
{
	struct syscall changed = *call;
	const int64_t fd = sys(__NR_eventfd2, 0, O_CLOEXEC);
	int64_t result;

	if (fd < 0)
		return fd;
	changed.args[0] = (uint64_t)fd;
	result = syscall_pass(thread, &changed);
	sys(__NR_close, fd);
	return result;
}

int64_t event_fcntl(struct thread *thread, struct syscall *call, uint64_t event)
{
	struct core_owner owner = core_named(event)->owner;
	const int32_t argument = (int32_t)call->args[2];
	struct event_owner ex = {0};
	int64_t result;

	switch ((uint32_t)call->args[1]) {
	case F_SETFL:
		result = set_flags(thread, call, event, &owner);
		break;
	case F_GETFL:
		result = syscall_pass(thread, call);
		if (result < 0)
			return result;
		return (result & ~(O_ACCMODE | O_NONBLOCK)) | O_RDWR | (owner.async ? FASYNC : 0) |
		       (core_named(event)->nonblocking ? O_NONBLOCK : 0);
	case F_SETOWN:
		owner.type = argument < 0 ? OWNER_PGRP : OWNER_PID;
		owner.pid = argument < 0 ? -argument : argument;
		result = syscall_pass(thread, call);
		break;
	case F_SETOWN_EX:
		if (copy_in(&ex, call->args[2], sizeof(ex)))
			return -EFAULT;
		owner.type = ex.type;
		owner.pid = ex.pid;
		result = syscall_pass(thread, call);
		break;
	case F_SETSIG:
		owner.signo = argument;
		result = syscall_pass(thread, call);
		break;
	case F_ADD_SEALS:
	case F_GET_SEALS:
		return -EINVAL;
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return lock_event(thread, call);
	case F_GETPIPE_SZ:
	case F_SETPIPE_SZ:
		return -EBADF;
	default:
		return syscall_pass(thread, call);
	}
	return result ? result : set_owner(event, &owner);
}
