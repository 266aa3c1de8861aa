// SPDX-License-Identifier: MIT
/* Ends of processes: what they had is ended for them. */
#include "monitor/watches.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/views.h"
#include "monitor/monitor.h"
#include "monitor/ready.h"

enum { LOOK_EACH_NS = 100000000 };

struct watch {
	int fd;		  /* a pidfd, or a timer; -1: none */
	bool timed;	  /* which of them */
	uint64_t process; /* by core_task; 0: no events are attached to it */
	uint64_t left;	  /* a process that has ended, a page of which it has; 0: none */
	pid_t number;	  /* as we see it */
	uint32_t owner;	  /* of mappings of rings; 0: none */
};

static struct watch *watches;
static size_t nr_watches;
static int epoll_of_all = -1;

size_t watches_nr(void)
{
	return nr_watches;
}

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

/* Whether the end of one that has mapped as @owner is waited for: of @number, or, 0, of any. */
static bool is_watched_as(uint32_t owner, pid_t number)
{
	for (size_t i = 0; i < nr_watches; i++)
		if (watches[i].fd >= 0 && watches[i].owner == owner &&
		    (!number || watches[i].number == number))
			return true;
	return false;
}

static void ended(uint64_t process, uint32_t owner)
{
	if (process)
		end_tasks(process);
	/* Another process may have the same memory. */
	if (owner && !is_watched_as(owner, 0))
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

/* Kernels before 5.3, and filters of seccomp(2) from before that, have no pidfd_open(2): a timer
 * says when to look. */
static int open_timer(void)
{
	const struct itimerspec often = {{0, LOOK_EACH_NS}, {0, LOOK_EACH_NS}};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0)
		timerfd_settime(fd, 0, &often, NULL);
	return fd;
}

/* Of watch->number. With -1 errno says whether there is no such process. */
static void open_watch(struct watch *watch)
{
	watch->fd = (int)syscall(__NR_pidfd_open, watch->number, 0);
	watch->timed = watch->fd < 0 && (errno == ENOSYS || errno == EPERM);
	if (watch->timed)
		watch->fd = open_timer();
}

/* Who tries whether a page is free has it for a moment, and may be killed before it has ended
 * what was left there by @process. */
static void wait_for_holder(uint32_t page, uint64_t process)
{
	struct watch watch = {.left = process, .number = arena_process(page)};

	if (watch.number <= 0) {
		core_task_lost(core_task(page), process);
		return;
	}
	for (size_t i = 0; i < nr_watches; i++)
		if (watches[i].fd >= 0 && watches[i].left == process &&
		    watches[i].number == watch.number)
			return;
	open_watch(&watch);
	/* It has left its table of descriptors, and the locks, to others: of those nobody knows
	 * the numbers. */
	if (watch.fd < 0 && errno == ESRCH) {
		watch.timed = true;
		watch.fd = open_timer();
	}
	if (watch.fd >= 0)
		add_watch(&watch);
}

static void watch(struct watch *of)
{
	if (of->fd < 0)
		open_watch(of);
	if (of->fd >= 0)
		add_watch(of);
	else if (errno == ESRCH)
		ended(of->process, of->owner);
}

/* Another thread of the sender may have put something else there; to keep that could keep an event
 * open for good. */
static bool is_process(int fd)
{
	return !syscall(__NR_pidfd_send_signal, fd, 0, NULL, 0) || errno != EBADF;
}

static bool is_of(uint32_t page, uint64_t process)
{
	return core_task(page)->live && core_task(page)->process == process;
}

/* A page that the process has: that which was told of may be another one's by now. 0: none. */
static uint32_t page_of(const struct control_message *message)
{
	const uint32_t used = arena_used();

	if (message->page && message->page <= used && is_of(message->page, message->process))
		return message->page;
	for (uint32_t page = 1; page <= used; page++)
		if (is_of(page, message->process))
			return page;
	return 0;
}

/* As we see it: its own number is that in its own name space, and here it may be another
 * process's. 0: it has ended. */
static pid_t number_of(const struct control_message *message)
{
	const uint32_t page = page_of(message);

	if (!page)
		return 0;
	return host_agrees(core_task(page)) ? message->pid : arena_process(page);
}

/* Locks go when a process ends, be it that nobody has waited for it. */
static bool has_left(uint64_t process)
{
	const uint32_t used = arena_used();

	for (uint32_t page = 1; page <= used; page++)
		if (core_task(page)->live && core_task(page)->process == process &&
		    arena_held(page))
			return false;
	return true;
}

/*
 * Of a process whose number is not to be had, its pages have to say: that of a child is nobody's
 * until the child has come to lock it.
 */
static void watch_pages(uint64_t process)
{
	const struct watch watch = {.fd = open_timer(), .timed = true, .process = process};

	if (watch.fd >= 0)
		add_watch(&watch);
}

void watch_task(const struct control_message *message, int fd, pid_t sender)
{
	pid_t number;

	if (fd >= 0 && !is_process(fd)) {
		close(fd);
		fd = -1;
	}
	if (!message->process || is_watched(message->process)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	number = message->own ? sender : number_of(message);
	if (fd >= 0 || number > 0)
		watch(&(struct watch){.fd = fd, .process = message->process, .number = number});
	else if (has_left(message->process))
		ended(message->process, 0);
	else
		watch_pages(message->process);
}

static void watched_ended(struct watch *watch)
{
	const int fd = watch->fd;

	watch->fd = -1;
	if (watch->left) {
		end_tasks(watch->left);
	} else {
		unreaped_begin(watch->timed ? -1 : fd, watch->number, watch->process);
		ended(watch->process, watch->owner);
		unreaped_end();
	}
	close(fd);
}

void watch_owner(pid_t process, uint32_t owner)
{
	if (is_watched_as(owner, process))
		return;
	watch(&(struct watch){.fd = -1, .number = process, .owner = owner});
}

/* Of what a timer watches. */
static bool has_ended(const struct watch *watch)
{
	return (watch->process && has_left(watch->process)) ||
	       (watch->number > 0 && kill(watch->number, 0) < 0 && errno == ESRCH);
}

void watch_ready(uint32_t index)
{
	struct watch *watch = &watches[index];
	uint64_t times;

	if (!ready_is_there(watch->fd, POLLIN) ||
	    (watch->timed && read(watch->fd, &times, sizeof(times)) < 0))
		return;
	if (!watch->timed || watch->left || has_ended(watch))
		watched_ended(watch);
}

void watches_look(void)
{
	const size_t nr = nr_watches;

	for (size_t i = 0; i < nr; i++)
		if (watches[i].fd >= 0 && watches[i].timed && !watches[i].left &&
		    has_ended(&watches[i]))
			watched_ended(&watches[i]);
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
