// SPDX-License-Identifier: MIT
/* select(2) where events are among the descriptors: poll(2) of what the sets have. */
#include "runtime/linux/event_list.h"

#include <asm/errno.h>
#include <linux/time_types.h>

#include "runtime/linux/copy.h"
#include "runtime/string.h"
#include "runtime/sys.h"

enum { SETS = 3, SET_BITS = 1024 };

/* The kernel's: what of poll(2) makes a descriptor readable, writable, exceptional. */
static const uint32_t wishes[SETS] = {
	POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR,
	POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR,
	POLLPRI,
};

struct sets {
	uint64_t bits[SETS][SET_BITS / 64];
};

static bool has(const uint64_t *set, uint32_t fd)
{
	return set[fd / 64] >> fd % 64 & 1;
}

static int64_t sets_in(struct sets *sets, const struct syscall *call, uint32_t nr)
{
	memset(sets, 0, sizeof(*sets));
	for (unsigned int i = 0; i < SETS; i++)
		if (call->args[1 + i] &&
		    copy_in(sets->bits[i], call->args[1 + i], (nr + 63) / 64 * 8))
			return -EFAULT;
	return 0;
}

static int64_t sets_out(const struct sets *sets, const struct syscall *call, uint32_t nr)
{
	for (unsigned int i = 0; i < SETS; i++)
		if (call->args[1 + i] &&
		    copy_out(call->args[1 + i], sets->bits[i], (nr + 63) / 64 * 8))
			return -EFAULT;
	return 0;
}

/* As poll(2) has them. */
static void list_of_sets(struct event_list *list, const struct sets *sets, uint32_t nr)
{
	list->nr = 0;
	for (uint32_t fd = 0; fd < nr; fd++) {
		uint32_t wanted = 0;

		for (unsigned int i = 0; i < SETS; i++)
			if (has(sets->bits[i], fd))
				wanted |= wishes[i];
		if (wanted)
			list->fds[list->nr++] = (struct pollfd){(int)fd, (short)wanted, 0};
	}
}

/* How many bits are set; -EBADF where a descriptor is none. */
static int64_t sets_of_list(struct sets *sets, const struct event_list *list)
{
	struct sets seen = {0};
	int64_t nr = 0;

	for (uint32_t at = 0; at < list->nr; at++) {
		const uint32_t fd = (uint32_t)list->fds[at].fd;
		const uint32_t revents = (uint16_t)list->fds[at].revents;

		if (revents & POLLNVAL)
			return -EBADF;
		for (unsigned int i = 0; i < SETS; i++)
			if (has(sets->bits[i], fd) && revents & wishes[i]) {
				seen.bits[i][fd / 64] |= 1UL << fd % 64;
				nr++;
			}
	}
	*sets = seen;
	return nr;
}

/* The sixth argument of pselect6 points at the mask's address and size. */
struct sixth {
	uint64_t mask, size;
};

static bool select_timeout(const struct syscall *call, bool pselect, int64_t *ns)
{
	struct __kernel_timespec timeout;

	*ns = -1;
	if (!call->args[4])
		return true;
	if (copy_in(&timeout, call->args[4], sizeof(timeout)))
		return false;
	if (!pselect)
		timeout.tv_nsec *= 1000; /* struct timeval */
	return event_timeout(&timeout, ns);
}

static void select_remaining(const struct syscall *call, bool pselect,
			     const struct event_deadline *deadline)
{
	const int64_t ns = event_remaining(deadline);
	const struct __kernel_timespec left = {
		ns / EVENT_SECOND, pselect ? ns % EVENT_SECOND : ns % EVENT_SECOND / 1000};

	if (call->args[4] && ns >= 0)
		copy_out(call->args[4], &left, sizeof(left));
}

static int64_t select_list(struct thread *thread, struct syscall *call, struct event_list *list,
			   struct sets *sets, uint32_t nr)
{
	const bool pselect = (uint32_t)call->number == __NR_pselect6;
	struct event_deadline deadline;
	struct sixth sixth = {0};
	int64_t result, ns;

	list_of_sets(list, sets, nr);
	event_list_look_up(list);
	if (!list->nr_events || !select_timeout(call, pselect, &ns))
		return EVENT_CALL_OTHER;
	if (pselect && call->args[5] && copy_in(&sixth, call->args[5], sizeof(sixth)))
		return -EFAULT;
	deadline = event_deadline(ns);
	result = event_list_poll(thread, list, &deadline, sixth.mask, sixth.size);
	if (result != SYSCALL_NOT_MADE)
		select_remaining(call, pselect, &deadline);
	if (result < 0)
		return result;
	result = sets_of_list(sets, list);
	if (result >= 0 && sets_out(sets, call, nr))
		result = -EFAULT;
	return result;
}

int64_t event_select(struct thread *thread, struct syscall *call)
{
	const uint32_t nr = (uint32_t)call->args[0];
	struct event_list list = {0};
	struct sets sets;
	int64_t result;

	if (nr > SET_BITS || sets_in(&sets, call, nr))
		return EVENT_CALL_OTHER;
	if (!event_list_make(&list, SET_BITS))
		return -ENOMEM;
	result = select_list(thread, call, &list, &sets, nr);
	event_list_free(&list, SET_BITS);
	return result;
}
