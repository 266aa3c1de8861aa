// SPDX-License-Identifier: MIT
/*
 * epoll(7) of events. The kernel watches the pipes, and says which is readable by the word that the
 * program gave; what is remembered here leads from that word to the event. A wait that was woken
 * for nothing goes on.
 */
#include <asm/errno.h>
#include <asm/poll.h>
#include <linux/eventpoll.h>
#include <linux/time_types.h>

#include "core/core.h"
#include "core/host.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_poll.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/task.h"
#include "runtime/lock.h"
#include "runtime/sys.h"

enum { WATCHED = 4096 };

struct watched {
	uint32_t table; /* of descriptors, in which these are */
	int epoll, fd;
	uint64_t event; /* its name; 0: unused */
	uint32_t wanted;
	uint64_t data;
	uint64_t noted; /* event_fds_now() */
};

static struct watched *watched;
static unsigned int nr_watched;
struct lock event_epoll_lock;

static bool is_open(const struct watched *item)
{
	return item->event && core_named(item->event)->generation == item->event >> 32;
}

static bool is_in(const struct watched *item, int epoll)
{
	return is_open(item) && item->epoll == epoll && item->table == task_self()->table;
}

/* With the lock held: an unused one, or NULL. */
static struct watched *unused_place(void)
{
	for (unsigned int i = 0; i < nr_watched; i++)
		if (!is_open(&watched[i]))
			return &watched[i];
	return nr_watched < WATCHED ? &watched[nr_watched++] : NULL;
}

/* With the lock held: that of @fd in @epoll, or an unused one, or NULL. */
static struct watched *place_for(int epoll, int fd)
{
	if (!watched)
		watched = memory_allocate(WATCHED * sizeof(*watched), 0);
	if (!watched)
		return NULL;
	for (unsigned int i = 0; i < nr_watched; i++)
		if (is_in(&watched[i], epoll) && watched[i].fd == fd)
			return &watched[i];
	return unused_place();
}

static void remember(int epoll, int fd, uint64_t event, const struct epoll_event *what)
{
	struct watched *place;

	lock_take(&event_epoll_lock);
	place = place_for(epoll, fd);
	if (place)
		*place = (struct watched){
			.table = task_self()->table,
			.noted = event_fds_now(),
			.epoll = epoll,
			.fd = fd,
			.event = what ? event : 0,
			.wanted = what ? what->events : 0,
			.data = what ? what->data : 0,
		};
	lock_give(&event_epoll_lock);
}

void event_epoll_closed(uint64_t first, uint64_t last, uint64_t before)
{
	/* A vfork child's numbers are a copy of its parent's. */
	if (!nr_watched || task_self()->vfork)
		return;
	lock_take(&event_epoll_lock);
	for (unsigned int i = 0; i < nr_watched; i++) {
		struct watched *item = &watched[i];

		if (item->table == task_self()->table && (uint64_t)item->epoll >= first &&
		    (uint64_t)item->epoll <= last && item->noted < before)
			item->event = 0;
	}
	lock_give(&event_epoll_lock);
}

void event_epoll_part(uint32_t from, uint32_t to)
{
	struct watched *place;

	lock_take(&event_epoll_lock);
	for (unsigned int i = 0, nr = nr_watched; i < nr; i++) {
		place = is_open(&watched[i]) && watched[i].table == from ? unused_place() : NULL;
		if (place) {
			*place = watched[i];
			place->table = to;
		}
	}
	lock_give(&event_epoll_lock);
}

int64_t event_epoll_ctl(struct thread *thread, struct syscall *call)
{
	const int epoll = (int)call->args[0], command = (int)call->args[1];
	const int fd = (int)call->args[2];
	const uint64_t event = event_of_fd((uint32_t)fd);
	struct syscall changed = *call;
	struct epoll_event what;
	int64_t result;

	if (!event)
		return EVENT_CALL_OTHER;
	if (command == EPOLL_CTL_DEL) {
		result = syscall_pass(thread, call);
		if (!result)
			remember(epoll, fd, event, NULL);
		return result;
	}
	if (copy_in(&what, call->args[3], sizeof(what)))
		return -EFAULT;
	/* What is wanted is a matter of the core; the kernel is to say when to ask it. */
	struct epoll_event told = {.events = what.events | EPOLLIN, .data = what.data};

	changed.args[3] = (uint64_t)&told;
	result = syscall_pass(thread, &changed);
	if (result)
		return result;
	remember(epoll, fd, event, &what);
	if (core_poll_peek(event))
		core_host_wake(core_named(event), POLLIN);
	return 0;
}

/*
 * The next one in @epoll from number *@i on, which moves behind it; the program gave it @data,
 * where that is not NULL.
 */
static bool next_watched(int epoll, unsigned int *i, const uint64_t *data, struct watched *found)
{
	bool any = false;

	lock_take(&event_epoll_lock);
	for (; *i < nr_watched && !any; (*i)++)
		if (is_in(&watched[*i], epoll) && (!data || watched[*i].data == *data)) {
			*found = watched[*i];
			any = true;
		}
	lock_give(&event_epoll_lock);
	return any;
}

static bool find(int epoll, uint64_t data, struct watched *found)
{
	unsigned int i = 0;

	return next_watched(epoll, &i, &data, found);
}

static bool watches_any(int epoll)
{
	struct watched found;
	unsigned int i = 0;

	return next_watched(epoll, &i, NULL, &found);
}

/* Of @nr at @list, in the program's memory, those stay where there is something to see. */
static int64_t sift(int epoll, uint64_t list, int64_t nr)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < nr; i++) {
		struct epoll_event item;
		struct watched of;

		if (copy_in(&item, list + (uint64_t)i * sizeof(item), sizeof(item)))
			return -EFAULT;
		if (find(epoll, item.data, &of)) {
			/* When the monitor is gone, the pipe says so. */
			item.events = (item.events & EPOLLHUP) |
				      event_look((uint32_t)of.fd, of.event, of.wanted);
			if (!item.events)
				continue;
		}
		if (copy_out(list + (uint64_t)kept * sizeof(item), &item, sizeof(item)))
			return -EFAULT;
		kept++;
	}
	return kept;
}

/*
 * What there is to see of events now, whether or not the monitor has got round to tell the pipe;
 * @max at most. Those that the kernel has to note as seen come by the kernel alone.
 */
static int64_t collect(int epoll, uint64_t list, int64_t max)
{
	struct watched of;
	int64_t kept = 0;

	for (unsigned int i = 0; kept < max && next_watched(epoll, &i, NULL, &of);) {
		const uint32_t wanted = of.wanted | EPOLLERR | EPOLLHUP;
		struct epoll_event item = {.data = of.data};

		if (of.wanted & (EPOLLET | EPOLLONESHOT) ||
		    !((uint16_t)core_poll_peek(of.event) & wanted))
			continue;
		item.events = event_look((uint32_t)of.fd, of.event, of.wanted);
		if (!item.events)
			continue;
		if (copy_out(list + (uint64_t)kept * sizeof(item), &item, sizeof(item)))
			return -EFAULT;
		kept++;
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
	struct syscall changed = *call;
	struct __kernel_timespec timeout;
	struct event_deadline deadline;
	int64_t result, ns = -1;

	if (!watches_any((int)call->args[0]))
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
	result = collect((int)call->args[0], call->args[1], (int)call->args[2]);
	if (result)
		return result;
	deadline = event_deadline(ns);
	for (;;) {
		ns = event_remaining(&deadline);
		set_timeout(&changed, ns, &timeout);
		result = wait(thread, &changed);
		if (result <= 0)
			return result;
		result = sift((int)call->args[0], call->args[1], result);
		if (result || !ns)
			return result;
	}
}
