// SPDX-License-Identifier: MIT
/*
 * Events that change sides: one that the kernel counts becomes ours, since a group or a ring is to
 * have events of both (event_passed.c), or one of ours the kernel's. It keeps its number, its id,
 * what it has counted and whether it is on.
 */
#include <asm/errno.h>
#include <asm/poll.h>
#include <linux/fcntl.h>
#include <linux/perf_event.h>

#include "core/core.h"
#include "core/count.h"
#include "core/hold.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/event_kept.h"
#include "runtime/linux/event_passed_count.h"
#include "runtime/linux/event_passed_list.h"
#include "runtime/linux/event_request.h"
#include "runtime/lock.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

/* To the program it is the same event. */
static void go_on(const struct passed *from, uint64_t event)
{
	struct core_count count = {0};
	uint64_t id;

	if (sys(__NR_ioctl, from->fd, PERF_EVENT_IOC_ID, &id))
		return;
	event_passed_count(from->fd, &from->attr.attr, from->pid, from->cpu, &count);
	core_continue(event, id, &count);
	if (from->creator)
		core_opened_for(event, from->creator, from->created_by);
}

/* Other numbers of this process for the same event, as far as anybody is likely to have them. */
enum { COPIES_BELOW = 1024, COPIES_AT_ONCE = 256 };

/* The descriptor @of, @event's, in the place of what is there, closed by exec if that was. Other
 * threads that read meanwhile read the one or the other. */
static void put(int64_t of, uint64_t event, int64_t fd)
{
	const int64_t cloexec = sys(__NR_fcntl, fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

	event_fd_becomes((uint64_t)fd, event);
	sys(__NR_dup3, of, fd, cloexec);
}

/* Likewise where it has other numbers, but for @held. */
static void put_copies(int64_t of, uint64_t event, int fd, int64_t held)
{
	struct pollfd open[COPIES_AT_ONCE];

	for (int first = 0; first < COPIES_BELOW; first += COPIES_AT_ONCE) {
		for (int i = 0; i < COPIES_AT_ONCE; i++)
			open[i] = (struct pollfd){.fd = first + i};
		sys(__NR_poll, open, COPIES_AT_ONCE, 0);
		for (int i = 0; i < COPIES_AT_ONCE; i++)
			if (!(open[i].revents & POLLNVAL) && first + i != fd && first + i != held &&
			    passed_is_copy(fd, first + i))
				put(of, event, first + i);
	}
}

/* The kernel's event at @from->fd becomes one of ours, if that can still be: its task may have
 * ended. */
static bool take_back(struct thread *thread, const struct passed *from, int64_t held)
{
	struct event_request request = {
		.attr = from->attr,
		.pid = from->pid,
		.cpu = from->cpu,
		.group_fd = from->group_fd,
		.flags = from->flags,
	};
	struct event_modes modes;
	uint64_t event;
	int64_t fd;

	event_rights(&request.rights);
	fd = event_open(thread, &request);
	if (fd < 0)
		return false;
	event = event_of_fd((uint64_t)fd);
	go_on(from, event);
	event_modes(from->fd, &modes);
	put_copies(fd, event, from->fd, held);
	put(fd, event, from->fd);
	sys(__NR_close, fd);
	event_fds_forget((uint64_t)fd, (uint64_t)fd);
	event_set_modes(from->fd, event, &modes);
	return true;
}

/* The next of the group, the leader first; taken out of the list. */
static bool next_of_group(int leader, struct passed *next)
{
	struct passed *found;

	lock_take(&event_passed_lock);
	found = passed_find(leader);
	if (found && found->stays)
		found = NULL;
	passed_for_each(is)
		if (!found && is->group_fd == leader && !is->stays)
			found = is;
	if (found) {
		*next = *found;
		found->fd = -1;
	}
	lock_give(&event_passed_lock);
	return found;
}

/* What has become of a tracepoint that it cannot take along keeps it where it is. */
static bool can_be_ours(const struct passed *is)
{
	if (passed_is_software(&is->attr.attr))
		return true;
	return event_is_kept(&is->attr.attr) && !is->stays && !is->has_more && !is->size;
}

static bool all_can_be_ours(int leader)
{
	bool can = true;

	lock_take(&event_passed_lock);
	passed_for_each(is)
		if (passed_in_group(is, leader))
			can &= can_be_ours(is) && !event_joined_is(is->fd);
	lock_give(&event_passed_lock);
	return can;
}

/* To the kernel, members whose leader is closed are by themselves: they would count from then on,
 * also where it was off. This keeps it open; without a number to spare it is not kept. */
static int64_t hold_leader(int fd)
{
	bool members = false;

	lock_take(&event_passed_lock);
	passed_for_each(is)
		members |= is->group_fd == fd;
	lock_give(&event_passed_lock);
	return members ? sys(__NR_fcntl, fd, F_DUPFD_CLOEXEC, 0) : -1;
}

int64_t event_take_back(struct thread *thread, int fd)
{
	struct passed next = {.fd = -1};
	int64_t held;

	fd = passed_number(fd);
	if (!passed_is(fd))
		return 0;
	if (!all_can_be_ours(fd))
		return -EINVAL;
	held = hold_leader(fd);
	while (next_of_group(fd, &next))
		if (!take_back(thread, &next, held)) {
			next.stays = true;
			passed_add(&next);
		}
	if (held >= 0)
		sys(__NR_close, held);
	if (!passed_look_up(fd, &next))
		return 0;
	return passed_is_software(&next.attr.attr) ? -ENODEV : -EINVAL;
}

/* The leader of the group that @fd is in; -1: some of it only the kernel can count. */
static int leader_of_ours(int fd)
{
	int of, leader;

	lock_take(&event_passed_lock);
	of = leader = passed_leader(fd);
	passed_for_each(is)
		if (passed_in_group(is, of) && !passed_is_software(&is->attr.attr))
			leader = -1;
	lock_give(&event_passed_lock);
	return leader;
}

bool event_take_back_group(struct thread *thread, int fd)
{
	const int leader = leader_of_ours(fd);

	if (leader < 0)
		return false;
	event_take_back(thread, leader);
	return event_of_fd((uint64_t)fd);
}

/* ---- and over to the kernel ---- */

/* Software events that are not fed (event_feed.h). */
static bool is_plain_software(const struct perf_event_attr *attr)
{
	return passed_is_software(attr) && !attr->ksymbol && !attr->bpf_event && !attr->text_poke &&
	       attr->config != PERF_COUNT_SW_BPF_OUTPUT;
}

/* What the kernel has to be asked for to have @event: one by itself, whose records nobody looks
 * at. */
static bool ask_for(struct passed *to, uint64_t event)
{
	const struct core_event *is;
	struct core_hold hold;
	bool can;

	if (!core_hold(&hold, event))
		return false;
	is = hold.event;
	can = is_plain_software(&is->attr) && (is->everybody || hold.task) && !is->cgroup &&
	      !is->ring && is->leader == (uint32_t)event && !is->members;
	if (can) {
		memcpy(to->attr.bytes, is->attr_bytes, sizeof(to->attr.bytes));
		passed_note_state(to, core_enabled(is));
		to->cpu = is->cpu;
		to->target = is->target;
		to->pid = is->everybody ? -1 : hold.task->tid;
	}
	core_hold_end(&hold);
	return can;
}

int64_t event_hand_over(struct thread *thread, int fd, uint64_t event, uint64_t program)
{
	struct passed to = {.fd = fd, .group_fd = -1, .stays = true};
	const int64_t cloexec = sys(__NR_fcntl, fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
	int64_t kernels, error;

	if (!core_settings()->host || !passed_room() || !ask_for(&to, event))
		return -EINVAL;
	kernels = sys(__NR_perf_event_open, &to.attr, to.pid, to.cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (kernels < 0)
		return -EINVAL;
	error = sys(__NR_ioctl, kernels, PERF_EVENT_IOC_SET_BPF, program);
	if (!error) {
		sys(__NR_dup3, kernels, fd, cloexec);
		event_fds_forget((uint64_t)fd, (uint64_t)fd);
		thread->events.passed = true;
		passed_add(&to);
	}
	sys(__NR_close, kernels);
	return error;
}
