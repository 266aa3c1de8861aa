// SPDX-License-Identifier: MIT
/*
 * The tree's events, as far as they need somebody who outlives the processes that use them.
 *
 *	spares	 the write ends of pipes that no event has yet: their read ends are on the socket,
 *		 for who opens one, or with somebody who is about to say for which event
 *	pipes	 by event: the write end of the pipe that is its descriptor. A byte in it wakes who
 *		 polls; an error on it says that the last descriptor is gone.
 *
 * Of processes with events watches.c tells when they have ended; what the kernel has for events of ours
 * is feeds.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "abi/arena.h"
#include "abi/control.h"
#include "core/core.h"
#include "core/host.h"
#include "monitor/feeds.h"
#include "monitor/monitor.h"
#include "monitor/numbers.h"
#include "monitor/ready.h"
#include "monitor/watches.h"

/* At a time, so that signals get their turn. */
enum { MESSAGES = 256 };

/* What may be on its way to processes: about a dozen and a half pipes, since a socket takes more as
 * long as a quarter of it is full at most. */
enum { PIPES_ROOM = 24 << 10 };

/* Not every kernel counts more than the bytes of what is on a socket (gVisor). */
enum { PIPES_AT_ONCE = 16 };

struct spare {
	int fd; /* -1: none */
	uint64_t inode;
};

struct pipe {
	int fd; /* -1: none */
	uint32_t generation;
};

static struct {
	int epoll, socket, timer;
	bool ticking;
	struct spare *spares;
	struct pipe *pipes;
	size_t nr_spares, nr_pipes;
} events = {.epoll = -1, .socket = -1, .timer = -1};

/* ---- pipes to come ---- */

static struct spare *free_spare(void)
{
	struct spare *grown;

	for (size_t i = 0; i < events.nr_spares; i++)
		if (events.spares[i].fd < 0)
			return &events.spares[i];
	grown = realloc(events.spares, (events.nr_spares + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	events.spares = grown;
	grown[events.nr_spares].fd = -1;
	return &grown[events.nr_spares++];
}

static struct spare *find_spare(uint64_t inode)
{
	for (size_t i = 0; i < events.nr_spares; i++)
		if (events.spares[i].fd >= 0 && events.spares[i].inode == inode)
			return &events.spares[i];
	return NULL;
}

static bool send_pipe(const struct control_pipe *pipe, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec bytes = {(void *)pipe, sizeof(*pipe)};
	const struct msghdr header = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *part = CMSG_FIRSTHDR(&header);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	return sendmsg(events.socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* Who takes it from the socket and ends before it has an event has closed it. */
static bool offer(int reader, int writer)
{
	struct spare *spare = free_spare();
	struct epoll_event ready = {0};
	struct control_pipe pipe;
	struct stat file;

	if (!spare || fstat(reader, &file) < 0)
		return false;
	pipe.inode = file.st_ino;
	ready.data.u64 = READY(READY_SPARE, (uint64_t)(spare - events.spares));
	if (epoll_ctl(events.epoll, EPOLL_CTL_ADD, writer, &ready) < 0 || !send_pipe(&pipe, reader))
		return false;
	*spare = (struct spare){writer, pipe.inode};
	return true;
}

static bool add_spare(void)
{
	int ends[2];
	bool offered;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	offered = offer(ends[0], ends[1]);
	close(ends[0]);
	if (!offered)
		close(ends[1]);
	return offered;
}

static void add_spares(unsigned int most)
{
	while (most-- && ready_is_there(events.socket, POLLOUT) && add_spare())
		;
}

/* ---- pipes ---- */

static bool room_for_pipe(size_t event)
{
	size_t nr = events.nr_pipes ? events.nr_pipes : 64;
	struct pipe *grown;

	while (nr <= event)
		nr *= 2;
	if (nr == events.nr_pipes)
		return true;
	grown = realloc(events.pipes, nr * sizeof(*grown));
	if (!grown)
		return false;
	for (size_t i = events.nr_pipes; i < nr; i++)
		grown[i] = (struct pipe){.fd = -1};
	events.pipes = grown;
	events.nr_pipes = nr;
	return true;
}

bool events_is(uint32_t event, uint32_t generation)
{
	return event && event < ARENA_EVENTS_SIZE / sizeof(struct core_event) &&
	       core_event(event)->generation == generation && core_event(event)->state != CORE_FREE;
}

static void close_pipe(struct pipe *pipe)
{
	close(pipe->fd);
	pipe->fd = -1;
}

static void close_event(uint32_t event)
{
	struct pipe *pipe = &events.pipes[event];

	close_pipe(pipe);
	core_close(core_name(event, pipe->generation));
	feeds_closed(event, pipe->generation);
	/* It may have ended with who was about to open it, and the slot be another's. */
	feeds_without_leader(event);
}

/* The write end of the pipe that somebody has got for an event; -1: nobody can read it any more. */
static int take_spare(uint64_t inode)
{
	struct spare *spare = find_spare(inode);
	const int fd = spare ? spare->fd : -1;

	if (spare)
		spare->fd = -1;
	return fd;
}

/* Nobody can ever wait for an event without its pipe: it is closed at once. */
static void opened(const struct control_message *message)
{
	struct epoll_event ready = {.data.u64 = READY(READY_PIPE, message->event)};
	const int fd = take_spare(message->inode);

	if (!events_is(message->event, message->generation)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd < 0 || !room_for_pipe(message->event)) {
		if (fd >= 0)
			close(fd);
		core_close(core_name(message->event, message->generation));
		return;
	}
	/* The slot's last event may have ended with who was about to open it, and have feeds. */
	if (events.pipes[message->event].fd >= 0)
		close_event(message->event);
	events.pipes[message->event] = (struct pipe){fd, message->generation};
	if (epoll_ctl(events.epoll, EPOLL_CTL_MOD, fd, &ready) < 0)
		close_event(message->event);
}

static struct pipe *find_pipe(uint32_t event, uint32_t generation)
{
	struct pipe *pipe = event < events.nr_pipes ? &events.pipes[event] : NULL;

	return pipe && pipe->fd >= 0 && pipe->generation == generation ? pipe : NULL;
}

/* Signals are blocked; the one that a pipe without a reader raises would come when they are not. */
static void forget_signal(void)
{
	sigset_t signal;

	sigemptyset(&signal);
	sigaddset(&signal, SIGPIPE);
	sigtimedwait(&signal, NULL, &(struct timespec){0, 0});
}

void events_wake(uint32_t event, uint32_t generation)
{
	const struct pipe *pipe = find_pipe(event, generation);

	/* A pipe that is full is readable. */
	if (pipe && write(pipe->fd, "", 1) < 0 && errno == EPIPE)
		forget_signal();
}

/* ---- turns ---- */

static void tick(bool on)
{
	const uint64_t second = 1000000000, ns = on ? core_settings()->rotation : 0;
	const struct timespec interval = {(time_t)(ns / second), (long)(ns % second)};

	if (on == events.ticking)
		return;
	events.ticking = on;
	timerfd_settime(events.timer, 0, &(struct itimerspec){interval, interval}, NULL);
}

void events_crowded(void)
{
	tick(true);
}

static void turn(void)
{
	uint64_t ticks;

	if (read(events.timer, &ticks, sizeof(ticks)) < 0)
		return;
	if (core_crowded())
		core_rotate();
	else
		tick(false);
}

/* ---- what has happened until now ---- */

static void spare_ready(uint32_t index)
{
	struct spare *spare = &events.spares[index];

	if (!ready_is_there(spare->fd, POLLERR))
		return;
	close(spare->fd);
	spare->fd = -1;
	add_spares(1);
}

static void pipe_ready(uint32_t event)
{
	if (ready_is_there(events.pipes[event].fd, POLLERR))
		close_event(event);
}

/* Of pipes, feeds and watches: what the processes do not say. False of others. */
static bool take_note(uint64_t what)
{
	const uint32_t index = (uint32_t)what;

	switch (what >> 32) {
	case READY_SPARE:
		spare_ready(index);
		return true;
	case READY_PIPE:
		pipe_ready(index);
		return true;
	case READY_FEED:
		feed_ready(index);
		return true;
	case READY_WATCH:
		watch_ready(index);
		return true;
	default:
		return false;
	}
}

enum { AT_ONCE = 64 };

/* What is there of those, ahead of its turn; false when more may be. */
static bool look(void)
{
	struct epoll_event ready[AT_ONCE];
	int nr = epoll_wait(events.epoll, ready, AT_ONCE, 0);

	for (int i = 0; i < nr; i++)
		take_note(ready[i].data.u64);
	return nr < AT_ONCE;
}

/* epoll goes around: all that was ready when this began has been seen to once there were as many
 * as there are descriptors. What feeds bring meanwhile, which may be without end, is for later. */
void events_settle(void)
{
	enum { OTHERS = 3 }; /* the socket, signals, and the timer of turns */
	const size_t all = OTHERS + events.nr_spares + events.nr_pipes + feeds_nr() + watches_nr();

	for (size_t seen = 0; seen < all && !look(); seen += AT_ONCE)
		;
	watches_look();
}

/* What has been given out as well has its messages on their way perhaps. */
static void settle(uint32_t ticket)
{
	events_settle();
	arena_answer(ticket);
}

/* ---- the socket ---- */

static void take(const struct control_message *message, int fd, pid_t sender)
{
	switch (message->what) {
	case CONTROL_OPEN:
		opened(message);
		add_spares(1);
		break;
	case CONTROL_PIPES:
		add_spares(PIPES_AT_ONCE);
		break;
	case CONTROL_FED:
	case CONTROL_KEEP:
		if (fd < 0 || !find_pipe(message->event, message->generation))
			break;
		feed_add(message, fd);
		return;
	case CONTROL_KEPT:
		feeds_kept(core_name(message->event, message->generation), message->group,
			   (enum core_kept)message->act);
		break;
	case CONTROL_KEPT_IOCTL:
		feed_ioctl(message, fd);
		break;
	case CONTROL_WAKE:
		events_wake(message->event, message->generation);
		arena_woken();
		break;
	case CONTROL_SETTLE:
		settle(message->ticket);
		break;
	case CONTROL_WATCH:
		watch_task(message, fd, sender);
		return;
	case CONTROL_MAPPED:
		watch_owner(sender, message->owner);
		break;
	case CONTROL_CLOCK:
		clock_settle();
		syscall(__NR_futex, &core_settings()->tsc_mult, FUTEX_WAKE, INT32_MAX, NULL, NULL,
			0);
		break;
	case CONTROL_CROWDED:
		events_crowded();
		break;
	case CONTROL_HELD_UP:
		halted_help(message->owner);
		break;
	case CONTROL_NUMBERS:
		numbers_tell(message->page, message->process, sender, message->pid);
		break;
	}
	if (fd >= 0)
		close(fd);
}

/* The last process of the run has given its end away, as those that go on natively do: what there
 * is to read then, an end, would wake us forever. */
static void forget_senders(void)
{
	if (ready_is_there(events.socket, POLLHUP))
		epoll_ctl(events.epoll, EPOLL_CTL_DEL, events.socket, NULL);
}

/* False when there is nothing more for now. */
static bool receive(void)
{
	struct control_message message;
	union {
		char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec bytes = {&message, sizeof(message)};
	struct msghdr header = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct ucred sender = {0};
	int fd = -1;
	ssize_t n = recvmsg(events.socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n <= 0) {
		if (!n)
			forget_senders();
		return false;
	}
	for (struct cmsghdr *part = CMSG_FIRSTHDR(&header); part;
	     part = CMSG_NXTHDR(&header, part)) {
		if (part->cmsg_level != SOL_SOCKET)
			continue;
		if (part->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(part), sizeof(fd));
		else if (part->cmsg_type == SCM_CREDENTIALS)
			memcpy(&sender, CMSG_DATA(part), sizeof(sender));
	}
	if (n == sizeof(message))
		take(&message, fd, sender.pid);
	else if (fd >= 0)
		close(fd);
	return true;
}

static bool add(int fd, int kind)
{
	struct epoll_event ready = {.events = EPOLLIN, .data.u64 = READY(kind, 0)};

	return fd >= 0 && !epoll_ctl(events.epoll, EPOLL_CTL_ADD, fd, &ready);
}

int events_open(int epoll)
{
	int ends[2], on = 1, room = PIPES_ROOM;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	events.epoll = epoll;
	watches_open(epoll);
	feeds_open(epoll);
	events.socket = ends[0];
	events.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) < 0 ||
	    !add(ends[0], READY_SOCKET) || !add(events.timer, READY_TURN)) {
		close(ends[1]);
		events_close();
		return -1;
	}
	return ends[1];
}

void events_ready(uint64_t what)
{
	if (take_note(what))
		return;
	switch (what >> 32) {
	case READY_SOCKET:
		for (int i = 0; i < MESSAGES && receive(); i++)
			;
		break;
	case READY_TURN:
		turn();
		break;
	}
}

void events_close(void)
{
	if (events.socket >= 0)
		close(events.socket);
	if (events.timer >= 0)
		close(events.timer);
	for (size_t i = 0; i < events.nr_spares; i++)
		if (events.spares[i].fd >= 0)
			close(events.spares[i].fd);
	for (size_t i = 0; i < events.nr_pipes; i++)
		if (events.pipes[i].fd >= 0)
			close(events.pipes[i].fd);
	feeds_close();
	watches_close();
	free(events.spares);
	free(events.pipes);
	memset(&events, 0, sizeof(events));
	events.epoll = events.socket = events.timer = -1;
}
