// SPDX-License-Identifier: MIT
/* Ends of processes: what they had is ended for them. */
#include "monitor/watches.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/views.h"
#include "monitor/monitor.h"
#include "monitor/ready.h"

struct watch {
	int fd;		  /* -1: none */
	uint64_t process; /* by core_task; 0: no events are attached to it */
	uint64_t left;	  /* a process that has ended, a page of which it has; 0: none */
	pid_t holder;	  /* its number then, as we see it */
	uint32_t owner;	  /* of mappings of rings; 0: none */
};

static struct watch *watches;
static size_t nr_watches;
static int epoll_of_all = -1;

static void wait_for_holder(uint32_t page, uint64_t process);

/*
 * Its process has ended; who waits for a page of a process that lives holds a lock on it. A child
 * that it was about to have when it was killed may never have come to say its number.
 */
static void end_tasks(uint64_t process)
{
	const uint32_t used = arena_used();

	for (uint32_t page = 1; page <= used; page++) {
		struct core_task *task = core_task(page);
		bool its = task->process == process;

		if (!its && !(task->live && arena_abandoned(page)))
			continue;
		if (task->live)
			core_task_lost(task, its ? process : 0);
		if (its && task->live)
			wait_for_holder(page, process);
		arena_free(page);
	}
}

static struct watch *free_watch(void)
{
	struct watch *grown;

	for (size_t i = 0; i < nr_watches; i++)
		if (watches[i].fd < 0)
			return &watches[i];
	grown = realloc(watches, (nr_watches + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	watches = grown;
	return &grown[nr_watches++];
}

static void ended(uint64_t process, uint32_t owner)
{
	if (process)
		end_tasks(process);
	if (owner)
		core_views_end(owner);
}

static bool is_watched(uint64_t process)
{
	for (size_t i = 0; i < nr_watches; i++)
		if (watches[i].fd >= 0 && watches[i].process == process)
			return true;
	return false;
}

static void add_watch(const struct watch *of)
{
	struct epoll_event ready = {.events = EPOLLIN};
	struct watch *watch = free_watch();

	if (!watch) {
		close(of->fd);
		return;
	}
	*watch = *of;
	ready.data.u64 = READY(READY_WATCH, (uint64_t)(watch - watches));
	if (epoll_ctl(epoll_of_all, EPOLL_CTL_ADD, watch->fd, &ready) < 0) {
		close(watch->fd);
		watch->fd = -1;
	}
}

/* Who tries whether a page is free has it for a moment, and may be killed before it has ended what was
 * left there by @process. */
static void wait_for_holder(uint32_t page, uint64_t process)
{
	struct watch watch = {.left = process, .holder = arena_process(page)};

	if (watch.holder <= 0) {
		core_task_lost(core_task(page), process);
		return;
	}
	for (size_t i = 0; i < nr_watches; i++)
		if (watches[i].fd >= 0 && watches[i].left == process &&
		    watches[i].holder == watch.holder)
			return;
	watch.fd = (int)syscall(__NR_pidfd_open, watch.holder, 0);
	if (watch.fd >= 0)
		add_watch(&watch);
}

/* The process that @fd, a pidfd, is of; -1 with errno: there is none. */
static void watch(int fd, uint64_t process, uint32_t owner)
{
	if (fd >= 0)
		add_watch(&(struct watch){.fd = fd, .process = process, .owner = owner});
	else if (errno == ESRCH)
		ended(process, owner);
}

/* Another thread of the sender may have put something else there; to keep that could keep an event
 * open for good. */
static bool is_process(int fd)
{
	return !syscall(__NR_pidfd_send_signal, fd, 0, NULL, 0) || errno != EBADF;
}

/* As we see it: its own number is that in its own name space. */
static pid_t number_of(const struct control_message *message)
{
	const uint32_t page = message->page;
	const pid_t holder = page && page <= arena_used() && !host_agrees(core_task(page))
				     ? arena_process(page)
				     : 0;

	return holder > 0 ? holder : message->pid;
}

void watch_task(const struct control_message *message, int fd, pid_t sender)
{
	if (fd >= 0 && !is_process(fd)) {
		close(fd);
		fd = -1;
	}
	if (!message->process || is_watched(message->process)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd < 0)
		fd = (int)syscall(__NR_pidfd_open, message->own ? sender : number_of(message), 0);
	watch(fd, message->process, 0);
}

static void watched_ended(struct watch *watch)
{
	const int fd = watch->fd;

	watch->fd = -1;
	if (watch->left) {
		end_tasks(watch->left);
	} else {
		unreaped_begin(fd, watch->process);
		ended(watch->process, watch->owner);
		unreaped_end();
	}
	close(fd);
}

void watch_owner(pid_t process, uint32_t owner)
{
	watch((int)syscall(__NR_pidfd_open, process, 0), 0, owner);
}

void watch_ready(uint32_t index)
{
	if (ready_is_there(watches[index].fd, POLLIN))
		watched_ended(&watches[index]);
}

void watches_open(int epoll)
{
	epoll_of_all = epoll;
}

void watches_close(void)
{
	for (size_t i = 0; i < nr_watches; i++)
		if (watches[i].fd >= 0)
			close(watches[i].fd);
	free(watches);
	watches = NULL;
	nr_watches = 0;
	epoll_of_all = -1;
}
