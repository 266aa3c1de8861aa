// SPDX-License-Identifier: MIT
/*
 * Descriptors that calls find in memory. Those of the runtime are answered as numbers are that
 * nobody has open: POLLNVAL by poll(2), EBADF by select(2) and by sending them.
 */
#include <asm/errno.h>
#include <asm/poll.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/signal.h"
#include "runtime/linux/syscalls.h"

/* More the kernel does not take: descriptors at once (sysctl fs.nr_open), and messages. */
enum { CHUNK = 64, POLLED_MAX = 1 << 20, MESSAGES_MAX = 1024 };

/* ---- poll ---- */

static bool polls_ours(uint64_t list, uint64_t nr)
{
	struct pollfd chunk[CHUNK];

	for (uint64_t at = 0; at < nr; at += CHUNK) {
		uint64_t some = nr - at < CHUNK ? nr - at : CHUNK;

		if (copy_in(chunk, list + at * sizeof(*chunk), some * sizeof(*chunk)))
			return false; /* the kernel says what is wrong */
		for (uint64_t i = 0; i < some; i++)
			if (descriptors_have((uint32_t)chunk[i].fd))
				return true;
	}
	return false;
}

static int64_t wait_for_events(struct thread *thread, struct syscall *call)
{
	return (uint32_t)call->number == __NR_ppoll ? sys_ppoll(thread, call)
						    : syscall_pass(thread, call);
}

/* The same with a copy of the list; what the kernel says there goes to the program's. */
static int64_t poll_copy(struct thread *thread, struct syscall *call, uint64_t nr)
{
	uint64_t theirs = call->args[0], size = nr * sizeof(struct pollfd);
	struct pollfd *list = memory_allocate(size, 0);
	int64_t result;

	if (!list)
		return -ENOMEM;
	if (copy_in(list, theirs, size)) {
		memory_free(list, size);
		return -EFAULT;
	}
	for (uint64_t i = 0; i < nr; i++)
		if (descriptors_have((uint32_t)list[i].fd))
			list[i].fd = NEVER_OPEN;
	call->args[0] = (uint64_t)list;
	result = wait_for_events(thread, call);
	for (uint64_t i = 0; i < nr && result >= 0; i++)
		if (copy_out(theirs + i * sizeof(*list) + offsetof(struct pollfd, revents),
			     &list[i].revents, sizeof(list[i].revents)))
			result = -EFAULT;
	memory_free(list, size);
	return result;
}

int64_t sys_poll(struct thread *thread, struct syscall *call)
{
	uint64_t nr = (uint32_t)call->args[1];

	if (nr > POLLED_MAX || !polls_ours(call->args[0], nr))
		return wait_for_events(thread, call);
	return poll_copy(thread, call, nr);
}

/* ---- select ---- */

static bool has_bit(uint64_t set, int number)
{
	uint64_t word;

	return set && !copy_in(&word, set + (uint64_t)number / 64 * 8, sizeof(word)) &&
	       word >> number % 64 & 1;
}

static bool selects(const struct syscall *call, int number)
{
	if (number < 0 || number >= (int)call->args[0])
		return false;
	return has_bit(call->args[1], number) || has_bit(call->args[2], number) ||
	       has_bit(call->args[3], number);
}

int64_t sys_select(struct thread *thread, struct syscall *call)
{
	if (selects(call, descriptors.arena) || selects(call, descriptors.monitor) ||
	    selects(call, descriptors.runtime) || selects(call, descriptors.program))
		return -EBADF;
	return (uint32_t)call->number == __NR_pselect6 ? sys_pselect6(thread, call)
						       : syscall_pass(thread, call);
}

/* ---- sending descriptors ---- */

enum { SOL_SOCKET = 1, SCM_RIGHTS = 1 };

/* struct msghdr and struct cmsghdr as the kernel has them. */
struct message {
	uint64_t name;
	uint32_t name_size, pad;
	uint64_t vectors, nr_vectors;
	uint64_t control, control_size;
	uint32_t flags, pad2;
};

struct control {
	uint64_t size; /* with this head */
	int32_t level, type;
};

static bool sends_ours(uint64_t at, uint64_t end)
{
	int fd;

	for (; at + sizeof(fd) <= end; at += sizeof(fd))
		if (!copy_in(&fd, at, sizeof(fd)) && descriptors_have((uint32_t)fd))
			return true;
	return false;
}

static bool message_sends_ours(uint64_t message_at)
{
	struct message message;
	struct control control;

	if (copy_in(&message, message_at, sizeof(message)) || message.control_size > INT32_MAX)
		return false;
	uint64_t at = message.control, end = at + message.control_size;

	while (at + sizeof(control) <= end) {
		if (copy_in(&control, at, sizeof(control)) || control.size < sizeof(control) ||
		    control.size > end - at)
			return false;
		if (control.level == SOL_SOCKET && control.type == SCM_RIGHTS &&
		    sends_ours(at + sizeof(control), at + control.size))
			return true;
		at += (control.size + 7) & -8UL;
	}
	return false;
}

int64_t sys_sendmsg(struct thread *thread, struct syscall *call)
{
	return message_sends_ours(call->args[1]) ? -EBADF : syscall_pass(thread, call);
}

/* Those before the first that cannot be sent are sent. */
int64_t sys_sendmmsg(struct thread *thread, struct syscall *call)
{
	enum { STRIDE = sizeof(struct message) + 8 };
	uint64_t nr = (uint32_t)call->args[2], good = 0;

	while (good < nr && good < MESSAGES_MAX &&
	       !message_sends_ours(call->args[1] + good * STRIDE))
		good++;
	if (!good && nr)
		return -EBADF;
	call->args[2] = good;
	return syscall_pass(thread, call);
}
