// SPDX-License-Identifier: MIT
/* select(2) where events are among the descriptors: poll(2) of what the sets have. */
#include "runtime/linux/event_list.h"

#include <asm/errno.h>
#include <linux/time_types.h>

#include "runtime/linux/copy.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc.h"
#include "runtime/sys.h"

/* Of descriptors that a set may have: sysctl fs.nr_open. */
enum { SETS = 3, MOST = 1 << 20, FEW_WORDS = 1024 / 64 };

/* The kernel's: what of poll(2) makes a descriptor readable, writable, exceptional. */
static const uint32_t wishes[SETS] = {
	POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR,
	POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR,
	POLLPRI,
};

/* Of @nr descriptors each, of @words words; those that were seen are made from those that are
 * wanted. */
struct sets {
	uint32_t nr, words;
	uint64_t *wanted[SETS], *seen[SETS];
};

static bool has(const uint64_t *set, uint32_t fd)
{
	return set[fd / 64] >> fd % 64 & 1;
}

static int64_t sets_in(const struct sets *sets, const struct syscall *call)
{
	for (unsigned int i = 0; i < SETS; i++)
		if (call->args[1 + i] &&
		    copy_in(sets->wanted[i], call->args[1 + i], sets->words * sizeof(uint64_t)))
			return -EFAULT;
	return 0;
}

static int64_t sets_out(const struct sets *sets, const struct syscall *call)
{
	for (unsigned int i = 0; i < SETS; i++)
		if (call->args[1 + i] &&
		    copy_out(call->args[1 + i], sets->seen[i], sets->words * sizeof(uint64_t)))
			return -EFAULT;
	return 0;
}

/* As poll(2) has them. */
static void list_of_sets(struct event_list *list, const struct sets *sets)
{
	list->nr = 0;
	for (uint32_t fd = 0; fd < sets->nr; fd++) {
		uint32_t wanted = 0;

		for (unsigned int i = 0; i < SETS; i++)
			if (has(sets->wanted[i], fd))
				wanted |= wishes[i];
		if (wanted)
			list->fds[list->nr++] = (struct pollfd){(int)fd, (short)wanted, 0};
	}
}

/* How many bits are set; -EBADF where a descriptor is none. */
static int64_t sets_of_list(const struct sets *sets, const struct event_list *list)
{
	int64_t nr = 0;

	for (uint32_t at = 0; at < list->nr; at++) {
		const uint32_t fd = (uint32_t)list->fds[at].fd;
		const uint32_t revents = (uint16_t)list->fds[at].revents;

		if (revents & POLLNVAL)
			return -EBADF;
		for (unsigned int i = 0; i < SETS; i++)
			if (has(sets->wanted[i], fd) && revents & wishes[i]) {
				sets->seen[i][fd / 64] |= 1UL << fd % 64;
				nr++;
			}
	}
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
			   const struct sets *sets)
{
	const bool pselect = (uint32_t)call->number == __NR_pselect6;
	struct event_deadline deadline;
	struct sixth sixth = {0};
	int64_t result, ns;

	list_of_sets(list, sets);
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
	if (result >= 0 && sets_out(sets, call))
		result = -EFAULT;
	return result;
}

/* How many there are, if one of them is an event; else 0. */
static uint32_t descriptors_in(const struct sets *sets)
{
	uint32_t nr = 0;
	bool any = false;

	for (uint32_t word = 0; word < sets->words; word++) {
		uint64_t bits =
			sets->wanted[0][word] | sets->wanted[1][word] | sets->wanted[2][word];

		for (; bits; bits &= bits - 1, nr++)
			any |= event_of_fd(64 * word + (uint32_t)__builtin_ctzl(bits)) != 0;
	}
	return any ? nr : 0;
}

static int64_t select_sets(struct thread *thread, struct syscall *call, const struct sets *sets)
{
	struct event_list list = {0};
	uint32_t nr;
	int64_t result;

	if (sets_in(sets, call))
		return EVENT_CALL_OTHER;
	nr = descriptors_in(sets);
	if (!nr)
		return EVENT_CALL_OTHER;
	if (!event_list_make(&list, nr))
		return -ENOMEM;
	result = select_list(thread, call, &list, sets);
	event_list_free(&list, nr);
	return result;
}

/* The kernel looks at no more than there is room for in the table of descriptors. */
static uint32_t limited(uint32_t nr)
{
	const int32_t room = nr > 64 * FEW_WORDS ? proc_descriptors() : 0;

	return room > 0 && nr > (uint32_t)room ? (uint32_t)room : nr;
}

int64_t event_select(struct thread *thread, struct syscall *call)
{
	const uint32_t nr = limited((uint32_t)call->args[0]), words = (nr + 63) / 64;
	const size_t size = 2 * SETS * words * sizeof(uint64_t);
	struct sets sets = {.nr = nr, .words = words};
	uint64_t few[2 * SETS * FEW_WORDS] = {0}, *memory = few;
	int64_t result;

	if (!nr || nr > MOST)
		return EVENT_CALL_OTHER;
	if (words > FEW_WORDS)
		memory = memory_allocate(size, 0);
	if (!memory)
		return -ENOMEM;
	for (unsigned int i = 0; i < SETS; i++) {
		sets.wanted[i] = memory + 2 * i * words;
		sets.seen[i] = sets.wanted[i] + words;
	}
	result = select_sets(thread, call, &sets);
	if (memory != few)
		memory_free(memory, size);
	return result;
}
