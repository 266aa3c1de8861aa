// SPDX-License-Identifier: MIT
#include "runtime/linux/control.h"

#include <asm/errno.h>
#include <asm/poll.h>
#include <linux/futex.h>
#include <linux/socket.h>
#include <linux/time.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/arena.h"
#include "abi/control.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/uio.h"
#include "runtime/string.h"
#include "runtime/sys.h"

/* Of sendmsg(2), as the kernel has them; its headers leave them to the libc. */
struct header {
	void *name;
	uint32_t name_length;
	const struct vector *vectors;
	size_t nr_vectors;
	void *control;
	size_t control_length;
	uint32_t flags;
};

struct rights {
	size_t length;
	int level, type;
	int fd;
};

enum { LEVEL_SOCKET = 1, RIGHTS = 1, DONTWAIT = 0x40, NOSIGNAL = 0x4000, CLOSE_ON_EXEC = 1 << 30 };

/* A monitor that is stopped, or busy, has its queue full: it is given this long. */
enum { MOMENT_NS = 500000, MOMENTS = 2000, FEW_MOMENTS = 10 };

/* Who wakes others may hold locks. */
static int patience(const struct control_message *message)
{
	const bool few = message->what == CONTROL_WAKE || message->what == CONTROL_HELD_UP;

	return few ? FEW_MOMENTS : MOMENTS;
}

bool control_send(const struct control_message *message, int fd)
{
	const struct {
		int64_t seconds, nanoseconds;
	} moment = {0, MOMENT_NS};
	const struct vector bytes = {message, sizeof(*message)};
	struct rights rights = {
		.length = offsetof(struct rights, fd) + sizeof(fd),
		.level = LEVEL_SOCKET,
		.type = RIGHTS,
		.fd = fd,
	};
	const struct header header = {
		.vectors = &bytes,
		.nr_vectors = 1,
		.control = fd < 0 ? NULL : &rights,
		.control_length = fd < 0 ? 0 : sizeof(rights),
	};

	if (descriptors.monitor < 0)
		return false;
	for (int i = patience(message); i > 0; i--) {
		int64_t sent = sys(__NR_sendmsg, descriptors.monitor, &header, DONTWAIT | NOSIGNAL);

		if (sent != -EAGAIN)
			return sent > 0;
		sys(__NR_nanosleep, &moment, NULL);
	}
	return false;
}

/* -EAGAIN: none is there yet. */
static int64_t receive_pipe(bool cloexec, uint64_t *inode)
{
	struct control_pipe pipe;
	struct rights rights = {0};
	const struct vector bytes = {&pipe, sizeof(pipe)};
	struct header header = {
		.vectors = &bytes,
		.nr_vectors = 1,
		.control = &rights,
		.control_length = sizeof(rights),
	};
	const int64_t n = sys(__NR_recvmsg, descriptors.monitor, &header,
			      cloexec ? DONTWAIT | CLOSE_ON_EXEC : DONTWAIT);

	if (n == -EAGAIN)
		return n;
	if (n != sizeof(pipe))
		return -ENODEV;
	*inode = pipe.inode;
	/* Without a number that is free for it, it is closed. */
	return header.control_length ? rights.fd : -EMFILE;
}

int64_t control_pipe(bool cloexec, uint64_t *inode)
{
	enum { LOOK_MS = 100, LOOKS = 10 };
	struct pollfd look = {.fd = descriptors.monitor, .events = POLLIN};
	bool asked = false;

	for (unsigned int looks = 0; looks < LOOKS; looks += !asked) {
		const int64_t fd = receive_pipe(cloexec, inode);

		if (fd != -EAGAIN)
			return fd;
		if (!asked && !control_send(&(struct control_message){.what = CONTROL_PIPES}, -1))
			return -ENODEV;
		/* Others may have taken what came. */
		asked = sys(__NR_poll, &look, 1, LOOK_MS) != 0;
	}
	/* The monitor has no more descriptors, unless it is stopped. */
	return -EMFILE;
}

bool control_wake(const struct control_message *message)
{
	uint32_t *wakes = &arena_header()->wakes;

	__atomic_add_fetch(wakes, 1, __ATOMIC_SEQ_CST);
	if (control_send(message, -1))
		return true;
	__atomic_sub_fetch(wakes, 1, __ATOMIC_SEQ_CST);
	return false;
}

/* The header, if this process is the command. */
static struct arena_header *header_of_command(void)
{
	struct arena_header *header = arena_header();

	return header && __atomic_load_n(&header->command, __ATOMIC_ACQUIRE) == sys(__NR_getpid)
		       ? header
		       : NULL;
}

bool control_handled(int signal, int32_t sender)
{
	struct arena_header *header = header_of_command();
	struct {
		uint64_t seconds, nanoseconds;
	} time;
	uint64_t *handled, now, before;
	int64_t monitor;
	bool again;

	if (!header || sys(__NR_clock_gettime, CLOCK_MONOTONIC, &time))
		return false;
	handled = &header->handled[signal % ARENA_HANDLED];
	now = arena_handled(signal, sender, time.seconds * 1000 + time.nanoseconds / 1000000);
	before = __atomic_load_n(handled, __ATOMIC_ACQUIRE);
	monitor = sys(__NR_getppid);
	/* Either may come first. */
	again = arena_handled_just(before, now) &&
		(sender == monitor) != (arena_handled_of(before) == monitor);
	if (!again || sender != monitor)
		__atomic_store_n(handled, now, __ATOMIC_RELEASE);
	return again;
}

void control_settle_wakes(void)
{
	const struct arena_header *header = arena_header();

	if (header && __atomic_load_n(&header->wakes, __ATOMIC_SEQ_CST) !=
			      __atomic_load_n(&header->woken, __ATOMIC_SEQ_CST))
		control_settle();
}

static bool monitor_is_gone(void)
{
	struct pollfd look = {.fd = descriptors.monitor};

	return sys(__NR_poll, &look, 1, 0) == 1;
}

/* @turns: of a tenth of a second each. */
static bool settle(unsigned int turns)
{
	enum { LIMIT_NS = 100000000 };
	const struct {
		int64_t seconds, nanoseconds;
	} limit = {0, LIMIT_NS};
	struct arena_header *header = arena_header();
	struct control_message message = {.what = CONTROL_SETTLE};
	uint32_t answered;

	if (!header)
		return false;
	message.ticket = __atomic_add_fetch(&header->asked, 1, __ATOMIC_SEQ_CST);
	if (!control_send(&message, -1))
		return false;
	while (turns) {
		answered = __atomic_load_n(&header->answered, __ATOMIC_ACQUIRE);
		if ((int32_t)(answered - message.ticket) >= 0)
			return true;
		if (sys(__NR_futex, &header->answered, FUTEX_WAIT, answered, &limit) != -ETIMEDOUT)
			continue;
		if (monitor_is_gone())
			return false;
		turns--;
	}
	return false;
}

void control_settle(void)
{
	settle(1);
}

bool control_finish(void)
{
	enum { TURNS = 50 };

	return settle(TURNS);
}
