// SPDX-License-Identifier: MIT
/*
 * Waiting for events. The kernel waits for the pipes that are their descriptors; what there is to
 * see the core says, and to see it is to take it, as with the kernel's own. So each call is made
 * with a copy of its list, and made again when it was woken for nothing.
 */
#include "runtime/linux/event_list.h"

#include <asm/errno.h>
#include <asm/poll.h>
#include <linux/time_types.h>

#include "core/core.h"
#include "core/host.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/signal.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum {
	FEW = 64,	/* whose list is on the stack */
	MOST = 1 << 20, /* sysctl fs.nr_open */
	CLOCK = 1,	/* CLOCK_MONOTONIC */
};

uint32_t event_look(uint64_t fd, uint64_t event, uint32_t wanted)
{
	const uint32_t always = POLLERR | POLLHUP;
	const uint8_t state = core_named(event)->state;
	uint32_t seen = 0;
	bool drained;

	event_joined_forward();
	/* The end of a task is there for good, and the pipe stays readable. */
	if (state == CORE_EXITED || state == CORE_ERROR)
		seen = (uint16_t)core_poll(event) & always;
	if (seen)
		return seen;
	/* Another thread may have put something else there meanwhile. */
	drained = event_of_fd(fd) == event && event_fd_drain(fd, event);
	seen = (uint16_t)core_poll(event) & (wanted | always);
	if (drained && seen & always)
		core_host_wake(core_named(event), POLLHUP);
	return seen;
}

/* ---- how long ---- */

static int64_t now(void)
{
	return (int64_t)core_host_clock(CLOCK);
}

struct event_deadline event_deadline(int64_t ns)
{
	if (ns <= 0)
		return (struct event_deadline){.forever = ns < 0};
	return (struct event_deadline){.at = now() + ns};
}

int64_t event_remaining(const struct event_deadline *deadline)
{
	int64_t left;

	if (deadline->forever)
		return -1;
	if (!deadline->at)
		return 0;
	left = deadline->at - now();
	return left > 0 ? left : 0;
}

/* ---- poll ---- */

enum { LIST_ITEM = sizeof(struct pollfd) + sizeof(uint64_t) + sizeof(uint16_t) };

bool event_list_make(struct event_list *list, uint32_t nr)
{
	list->fds = memory_allocate(nr * LIST_ITEM, 0);
	if (!list->fds)
		return false;
	list->events = (uint64_t *)(list->fds + nr);
	list->wanted = (uint16_t *)(list->events + nr);
	list->nr = nr;
	return true;
}

void event_list_free(struct event_list *list, uint32_t nr)
{
	memory_free(list->fds, nr * LIST_ITEM);
}

void event_list_look_up(struct event_list *list)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		struct pollfd *fd = &list->fds[i];

		fd->revents = 0;
		list->events[i] = 0;
		list->wanted[i] = (uint16_t)fd->events;
		if (fd->fd < 0)
			continue;
		if (descriptors_have((uint32_t)fd->fd))
			fd->fd = NEVER_OPEN;
		else
			list->events[i] = event_of_fd((uint32_t)fd->fd);
		list->nr_events += list->events[i] != 0;
	}
}

/* What is there of events now; how many. */
static int64_t look_at_events(struct event_list *list)
{
	int64_t seen = 0;

	for (uint32_t i = 0; i < list->nr; i++) {
		struct pollfd *fd = &list->fds[i];

		if (!list->events[i])
			continue;
		fd->revents = (short)event_look((uint64_t)fd->fd, list->events[i], list->wanted[i]);
		seen += fd->revents != 0;
	}
	return seen;
}

/* And of everything else, without waiting. */
static int64_t look_at_others(struct event_list *list)
{
	int64_t seen = 0;

	for (uint32_t i = 0; i < list->nr; i++) {
		if (list->events[i])
			continue;
		if (sys(__NR_poll, &list->fds[i], 1, 0) == 1)
			seen++;
	}
	return seen;
}

/* Another thread may have put something else in the place of an event: from then on the kernel
 * waits for that. */
static void look_up_again(struct event_list *list)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		struct pollfd *fd = &list->fds[i];

		if (list->events[i] && fd->revents &&
		    event_of_fd((uint64_t)fd->fd) != list->events[i]) {
			list->events[i] = 0;
			fd->events = (short)list->wanted[i];
			fd->revents = 0;
		}
	}
}

/* For the kernel, events are pipes. */
static int64_t wait_for_any(struct thread *thread, struct event_list *list, int64_t ns,
			    uint64_t mask, uint64_t mask_size)
{
	struct __kernel_timespec timeout = {ns / EVENT_SECOND, ns % EVENT_SECOND};
	struct syscall call = {
		.number = __NR_ppoll,
		.args = {(uint64_t)list->fds, list->nr, ns < 0 ? 0 : (uint64_t)&timeout, mask,
			 mask_size},
	};

	for (uint32_t i = 0; i < list->nr; i++)
		if (list->events[i])
			list->fds[i].events = POLLIN;
	const int64_t result = sys_ppoll(thread, &call);

	if (result > 0)
		look_up_again(list);
	return result;
}

/* With its end of the pipes: nobody will ever tell of anything again. */
static bool monitor_is_gone(const struct event_list *list)
{
	for (uint32_t i = 0; i < list->nr; i++)
		if (list->events[i] && list->fds[i].revents & POLLHUP)
			return true;
	return false;
}

static int64_t hang_up(struct event_list *list)
{
	int64_t nr = 0;

	for (uint32_t i = 0; i < list->nr; i++)
		if (list->events[i]) {
			list->fds[i].revents = POLLHUP;
			nr++;
		}
	return nr;
}

/*
 * A task's events tell of its end a moment before its process is gone, which to the kernel is one
 * and the same. Who waits for the one and sees the other is not to ask thousands of times.
 */
static void let_go(const struct event_list *list)
{
	const struct __kernel_timespec moment = {0, 100000};

	for (uint32_t i = 0; i < list->nr; i++)
		if (list->fds[i].revents & ~POLLHUP)
			return;
	sys(__NR_ppoll, 0, 0, &moment, 0, 0);
}

int64_t event_list_poll(struct thread *thread, struct event_list *list,
			const struct event_deadline *deadline, uint64_t mask, uint64_t mask_size)
{
	for (;;) {
		const int64_t left = event_remaining(deadline);
		int64_t seen = look_at_events(list), result;

		if (seen || !left) {
			result = seen + look_at_others(list);
			if (seen && left)
				let_go(list);
			return result;
		}
		result = wait_for_any(thread, list, left, mask, mask_size);
		if (result < 0)
			return result;
		if (monitor_is_gone(list))
			return hang_up(list) + look_at_others(list);
		seen = 0;
		for (uint32_t i = 0; i < list->nr; i++)
			seen += !list->events[i] && list->fds[i].revents;
		if (seen)
			return seen + look_at_events(list);
	}
}

static int64_t poll_program(struct thread *thread, struct syscall *call, struct event_list *list)
{
	const bool ppoll = (uint32_t)call->number == __NR_ppoll;
	const uint64_t size = list->nr * sizeof(struct pollfd);
	struct event_deadline deadline;
	struct __kernel_timespec timeout;
	int64_t result, ns = -1;

	if (copy_in(list->fds, call->args[0], size))
		return EVENT_CALL_OTHER;
	event_list_look_up(list);
	if (!list->nr_events)
		return EVENT_CALL_OTHER;
	if (!ppoll && (int)call->args[2] >= 0)
		ns = (int64_t)(int)call->args[2] * 1000000;
	if (ppoll && call->args[2]) {
		if (copy_in(&timeout, call->args[2], sizeof(timeout)))
			return -EFAULT;
		if (!event_timeout(&timeout, &ns))
			return -EINVAL;
	}
	deadline = event_deadline(ns);
	result = event_list_poll(thread, list, &deadline, ppoll ? call->args[3] : 0,
				 ppoll ? call->args[4] : 0);
	if (ppoll && call->args[2] && result != SYSCALL_NOT_MADE) {
		ns = event_remaining(&deadline);
		timeout = (struct __kernel_timespec){ns / EVENT_SECOND, ns % EVENT_SECOND};
		copy_out(call->args[2], &timeout, sizeof(timeout));
	}
	for (uint32_t i = 0; i < list->nr && result >= 0; i++)
		if (copy_out(call->args[0] + i * sizeof(struct pollfd) +
				     offsetof(struct pollfd, revents),
			     &list->fds[i].revents, sizeof(list->fds[i].revents)))
			result = -EFAULT;
	return result;
}

bool event_timeout(const struct __kernel_timespec *timeout, int64_t *ns)
{
	const int64_t most = INT64_MAX / EVENT_SECOND / 2;

	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= EVENT_SECOND)
		return false;
	*ns = timeout->tv_sec > most ? -1 : timeout->tv_sec * EVENT_SECOND + timeout->tv_nsec;
	return true;
}

int64_t event_poll(struct thread *thread, struct syscall *call)
{
	const uint32_t nr = (uint32_t)call->args[1];
	struct pollfd fds[FEW];
	uint64_t events[FEW];
	uint16_t wanted[FEW];
	struct event_list list = {.fds = fds, .events = events, .wanted = wanted, .nr = nr};
	int64_t result;

	if (nr > MOST)
		return EVENT_CALL_OTHER;
	if (nr <= FEW)
		return poll_program(thread, call, &list);
	if (!event_list_make(&list, nr))
		return -ENOMEM;
	result = poll_program(thread, call, &list);
	event_list_free(&list, nr);
	return result;
}
