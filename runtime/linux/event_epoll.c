// SPDX-License-Identifier: MIT
/*
 * epoll(7) of events. The kernel watches the pipes, and says which is readable by a word that
 * stands for the event and for the word of the program's (core/watched.h). A wait that was woken
 * for nothing goes on.
 */
#include <asm/errno.h>
#include <asm/poll.h>
#include <linux/eventpoll.h>
#include <linux/time_types.h>

#include "core/core.h"
#include "core/host.h"
#include "core/watched.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_poll.h"
#include "runtime/linux/signal.h"
#include "runtime/sys.h"

enum { AT_ONCE = 1024 }; /* that one call gives */

int64_t event_epoll_ctl(struct thread *thread, struct syscall *call)
{
	const int command = (int)call->args[1], fd = (int)call->args[2];
	const uint64_t event = event_of_fd((uint32_t)fd);
	struct syscall changed = *call;
	struct epoll_event what;
	int64_t result;

	if (!event || command == EPOLL_CTL_DEL)
		return EVENT_CALL_OTHER;
	if (copy_in(&what, call->args[3], sizeof(what)))
		return -EFAULT;
	/* What is wanted is a matter of the core; the kernel is to say when to ask it. */
	struct epoll_event told = {
		.events = what.events | EPOLLIN,
		.data = core_watch(&(struct core_watched){
			.event = event,
			.data = what.data,
			.wanted = what.events,
			.fd = fd,
		}),
	};

	if (!told.data)
		return -ENOSPC;
	changed.args[3] = (uint64_t)&told;
	result = syscall_pass(thread, &changed);
	if (!result && core_poll_peek(event))
		core_host_wake(core_named(event), POLLIN);
	return result;
}

/* What there is to see of an event that the kernel has told of by @item; 0: nothing, and then it is
 * to be told of again, though it was to be only once. */
static uint32_t look(uint64_t epoll, const struct core_watched *watched,
		     const struct epoll_event *item)
{
	const int64_t fd = event_fd_of(watched->event, watched->fd);
	/* When the monitor is gone, the pipe says so. */
	const uint32_t seen = (item->events & EPOLLHUP) |
			      event_look((uint64_t)fd, watched->event, watched->wanted);
	const struct epoll_event again = {.events = watched->wanted | EPOLLIN, .data = item->data};

	if (!seen && watched->wanted & EPOLLONESHOT && fd >= 0)
		sys(__NR_epoll_ctl, epoll, EPOLL_CTL_MOD, fd, &again);
	return seen;
}

/* Of @nr items those stay where there is something to see. */
static int64_t sift(uint64_t epoll, struct epoll_event *items, int64_t nr)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < nr; i++) {
		struct epoll_event item = items[i];
		struct core_watched watched;

		if (core_watched(item.data, &watched)) {
			item.events = look(epoll, &watched, &item);
			item.data = watched.data;
		}
		if (item.events)
			items[kept++] = item;
	}
	return kept;
}

static int64_t wait(struct thread *thread, struct syscall *call)
{
	return (uint32_t)call->number == __NR_epoll_wait ? syscall_pass(thread, call)
							 : sys_epoll_pwait(thread, call);
}

/* The same with what is left of its time; the argument is milliseconds or a struct. */
static void set_timeout(struct syscall *call, int64_t ns, struct __kernel_timespec *timeout)
{
	const int64_t second = 1000000000, ms = 1000000;

	if ((uint32_t)call->number != __NR_epoll_pwait2) {
		call->args[3] = ns < 0 ? (uint64_t)-1 : (uint64_t)((ns + ms - 1) / ms);
		return;
	}
	*timeout = (struct __kernel_timespec){ns / second, ns % second};
	call->args[3] = ns < 0 ? 0 : (uint64_t)timeout;
}

int64_t event_epoll_wait(struct thread *thread, struct syscall *call)
{
	struct epoll_event items[AT_ONCE];
	struct syscall changed = *call;
	struct __kernel_timespec timeout;
	struct event_deadline deadline;
	int64_t result, ns = -1;

	if (!core_nr_events())
		return EVENT_CALL_OTHER;
	if ((uint32_t)call->number != __NR_epoll_pwait2) {
		if ((int)call->args[3] >= 0)
			ns = (int64_t)(int)call->args[3] * 1000000;
	} else if (call->args[3]) {
		if (copy_in(&timeout, call->args[3], sizeof(timeout)))
			return -EFAULT;
		if (!event_timeout(&timeout, &ns))
			return -EINVAL;
	}
	deadline = event_deadline(ns);
	/* What is not for the program it does not see. */
	changed.args[1] = (uint64_t)items;
	if ((int)call->args[2] > AT_ONCE)
		changed.args[2] = AT_ONCE;
	for (;;) {
		/* What has happened is there to be seen. */
		control_settle_wakes();
		ns = event_remaining(&deadline);
		set_timeout(&changed, ns, &timeout);
		result = wait(thread, &changed);
		if (result <= 0)
			return result;
		result = sift(call->args[0], items, result);
		if (result && copy_out(call->args[1], items, (size_t)result * sizeof(*items)))
			return -EFAULT;
		if (result || !ns)
			return result;
	}
}
