// SPDX-License-Identifier: MIT
/*
 * Events that the kernel counts: software events, tracepoints, probes and those of other PMUs of
 * the machine. A descriptor of such an event is the kernel's, and nothing of ours is between it and
 * the program. What was asked for is remembered, since a group cannot have events of both, nor a
 * ring: if one of ours joins a group of software events, or a ring is to be had for one of it, the
 * group becomes ours.
 */
#include <asm/errno.h>
#include <asm/mman.h>
#include <asm/poll.h>
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/perf_event.h>
#include <linux/stat.h>

#include "core/core.h"
#include "core/count.h"
#include "core/hold.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/event_kept.h"
#include "runtime/linux/event_passed_count.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/fork_locks.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/task.h"
#include "runtime/linux/tasks.h"
#include "runtime/lock.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

enum { PASSED = 1024 };

struct passed {
	int fd;		/* -1: unused */
	uint64_t since; /* event_fds_now() */
	int group_fd, pid, cpu;
	unsigned long flags;
	union event_attr attr;
	uint64_t target;      /* as of core_event; 0: everybody, or nobody of the run */
	uint64_t start, size; /* where it was mapped last; 0: nowhere */
	bool stays;	      /* the kernel's: one of ours could not take its place */
	bool has_more; /* of what only the kernel has: a filter, a program, another one's ring */
};

static struct passed *passed;
static unsigned int nr_passed;
struct lock event_passed_lock = {.kind = LOCK_EVENT_PASSED};

bool event_passed_any(void)
{
	return __atomic_load_n(&nr_passed, __ATOMIC_RELAXED);
}

/* With the lock held; fd -1 for one that is unused. */
static struct passed *find(int fd)
{
	for (unsigned int i = 0; i < nr_passed; i++)
		if (passed[i].fd == fd)
			return &passed[i];
	return NULL;
}

static bool is_copy(int fd, int64_t of)
{
	enum { KCMP_FILE = 0 };
	const int64_t self = task_self()->pid;

	return !sys(__NR_kcmp, self, self, KCMP_FILE, fd, of);
}

/* Events of the kernel's are files of no type. */
static bool may_be_event(int fd)
{
	struct stat file;

	return !sys(__NR_fstat, fd, &file) && !(file.st_mode & S_IFMT);
}

static bool look_up(int fd, struct passed *is)
{
	const struct passed *found;

	if (!event_passed_any() || fd < 0)
		return false;
	lock_take(&event_passed_lock);
	found = find(fd);
	if (found)
		*is = *found;
	lock_give(&event_passed_lock);
	return found;
}

static bool is_passed(int fd)
{
	struct passed is;

	return look_up(fd, &is);
}

/* The number by which the event is known that @fd is another number for; or @fd. */
static int known_number(int fd)
{
	int known = fd;

	if (!event_passed_any() || fd < 0)
		return fd;
	if (is_passed(fd) || !may_be_event(fd))
		return fd;
	lock_take(&event_passed_lock);
	for (unsigned int i = 0; i < nr_passed && known == fd; i++)
		if (passed[i].fd >= 0 && is_copy(passed[i].fd, fd))
			known = passed[i].fd;
	lock_give(&event_passed_lock);
	return known;
}

/* Room for one more: without it nothing is passed that could come to lead a group. */
static bool make_room(void)
{
	bool room;

	lock_take(&event_passed_lock);
	if (!passed)
		passed = memory_allocate(PASSED * sizeof(*passed), 0);
	room = passed && (nr_passed < PASSED || find(-1));
	lock_give(&event_passed_lock);
	return room;
}

static void remember(const struct passed *event)
{
	struct passed *place;

	lock_take(&event_passed_lock);
	place = find(-1);
	if (!place && nr_passed < PASSED)
		place = &passed[nr_passed++];
	if (place) {
		*place = *event;
		place->since = event_fds_now();
	}
	lock_give(&event_passed_lock);
}

static bool is_member(const struct passed *is, int leader)
{
	return is->fd >= 0 && is->group_fd == leader;
}

/* Of the group that @fd is in; with the lock. */
static int leader_of(int fd)
{
	const struct passed *found = find(fd);

	return !found || found->group_fd < 0 ? fd : found->group_fd;
}

static bool is_within(int fd, uint32_t first, uint32_t last)
{
	return fd >= 0 && (uint32_t)fd >= first && (uint32_t)fd <= last;
}

void event_passed_closed(uint32_t first, uint32_t last, uint64_t before)
{
	if (!event_passed_any())
		return;
	event_joined_closed(first, last, before);
	lock_take(&event_passed_lock);
	for (unsigned int i = 0; i < nr_passed; i++) {
		if (passed[i].since >= before)
			continue;
		if (is_within(passed[i].fd, first, last))
			passed[i].fd = -1;
		/* Members without a leader are by themselves. */
		if (is_within(passed[i].group_fd, first, last))
			passed[i].group_fd = -1;
	}
	lock_give(&event_passed_lock);
}

/* ---- which ---- */

/* Asks for records: of the program, in which the kernel would show how it is run here, or of the
 * kernel, in which ours is fed. */
static bool tells(const struct perf_event_attr *attr)
{
	return attr->mmap || attr->mmap2 || attr->mmap_data || attr->comm || attr->task ||
	       attr->context_switch || attr->namespaces || attr->cgroup || attr->ksymbol ||
	       attr->bpf_event || attr->text_poke;
}

static bool is_software(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE;
}

/*
 * Ours count them as well, and what it costs to leave them to the kernel is nothing. But samples
 * would have addresses in translated code, and the whole system is the tree.
 */
static bool passes_software(const struct event_request *request)
{
	const struct perf_event_attr *attr = &request->attr.attr;

	return attr->config != PERF_COUNT_SW_DUMMY && attr->config != PERF_COUNT_SW_BPF_OUTPUT &&
	       !attr->sample_period && !tells(attr) && request->pid != -1 &&
	       !(request->flags & PERF_FLAG_PID_CGROUP);
}

bool event_is_own_unit(uint32_t type)
{
	const struct core_settings *of = core_settings();

	return type >= PERF_TYPE_MAX && (type == of->cpu_type || type == of->trace_type ||
					 type == of->probe_type || type == of->op_type);
}

static bool passes(const struct event_request *request)
{
	const uint32_t type = request->attr.attr.type;

	if (!core_settings()->host)
		return false;
	if (is_software(&request->attr.attr))
		return passes_software(request);
	if (type == PERF_TYPE_TRACEPOINT)
		return true;
	/* The kernel's number for uprobes leads nowhere, as what has it is not executed; to ask for it
	 * takes longer than all the rest. */
	return type >= PERF_TYPE_MAX && !event_is_own_unit(type) &&
	       type != proc_device_type("uprobe");
}

/* With others, in a group that is ours. */
static bool may_be_ours(const struct perf_event_attr *attr)
{
	return is_software(attr) || event_is_kept(attr);
}

/* What the kernel would not have by itself either it says first. */
static int64_t refuse_in_group(struct thread *thread, const struct syscall *call)
{
	struct syscall alone = *call;
	int64_t fd;

	alone.args[3] = UINT64_MAX;
	alone.args[4] &= ~(uint64_t)(PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT);
	fd = syscall_pass(thread, &alone);
	if (fd < 0)
		return fd;
	sys(__NR_close, fd);
	return -EINVAL;
}

int64_t event_pass(struct thread *thread, struct syscall *call, const struct event_request *request)
{
	const bool software = is_software(&request->attr.attr);
	int64_t fd;

	if (!passes(request))
		return EVENT_CALL_OTHER;
	if (request->group_fd >= 0 && event_of_fd((uint32_t)request->group_fd))
		return may_be_ours(&request->attr.attr) ? EVENT_CALL_OTHER
							: refuse_in_group(thread, call);
	if (!make_room())
		return EVENT_CALL_OTHER;
	fd = syscall_pass(thread, call);
	/* What the kernel does not let be counted, or knows nothing of, we count. */
	if (fd < 0 && fd != SYSCALL_NOT_MADE && software)
		return EVENT_CALL_OTHER;
	if (fd >= 0) {
		thread->events.passed = true;
		remember(&(struct passed){
			.fd = (int)fd,
			.group_fd = request->flags & PERF_FLAG_FD_NO_GROUP ? -1 : request->group_fd,
			.pid = request->pid ?: thread->tid,
			.target = core_task(request->pid ? tasks_find(request->pid) : thread->page)
					  ->id,
			.cpu = request->cpu,
			.flags = request->flags,
			.attr = request->attr,
		});
	}
	return fd;
}

/* ---- on and off ---- */

/* Whether it is, for when it becomes ours. */
static void note_state(struct passed *is, bool on)
{
	is->attr.attr.disabled = !on;
}

static void switched(int fd, bool group, bool on)
{
	int leader;

	lock_take(&event_passed_lock);
	leader = leader_of(fd);
	for (unsigned int i = 0; i < nr_passed; i++)
		if (passed[i].fd == fd ||
		    (group && (passed[i].fd == leader || is_member(&passed[i], leader))))
			note_state(&passed[i], on);
	lock_give(&event_passed_lock);
}

void event_passed_switched(bool on)
{
	lock_take(&event_passed_lock);
	for (unsigned int i = 0; i < nr_passed; i++)
		note_state(&passed[i], on);
	lock_give(&event_passed_lock);
}

/* ---- back ---- */

/* To the program it is the same event. */
static void go_on(const struct passed *from, uint64_t event)
{
	struct core_count count = {0};
	uint64_t id;

	if (sys(__NR_ioctl, from->fd, PERF_EVENT_IOC_ID, &id))
		return;
	event_passed_count(from->fd, &from->attr.attr, from->pid, from->cpu, &count);
	core_continue(event, id, &count);
}

/* Other numbers of this process for the same event, as far as anybody is likely to have them. */
enum { COPIES_BELOW = 1024, COPIES_AT_ONCE = 256 };

/* The descriptor @of, @event's, in the place of what is there, closed by exec if that was. Other threads
 * that read meanwhile read the one or the other. */
static void put(int64_t of, uint64_t event, int64_t fd)
{
	const int64_t cloexec = sys(__NR_fcntl, fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

	event_fd_becomes((uint64_t)fd, event);
	sys(__NR_dup3, of, fd, cloexec);
}

/* Likewise where it has other numbers. */
static void put_copies(int64_t of, uint64_t event, int fd)
{
	struct pollfd open[COPIES_AT_ONCE];

	for (int first = 0; first < COPIES_BELOW; first += COPIES_AT_ONCE) {
		for (int i = 0; i < COPIES_AT_ONCE; i++)
			open[i] = (struct pollfd){.fd = first + i};
		sys(__NR_poll, open, COPIES_AT_ONCE, 0);
		for (int i = 0; i < COPIES_AT_ONCE; i++)
			if (!(open[i].revents & POLLNVAL) && first + i != fd &&
			    is_copy(fd, first + i))
				put(of, event, first + i);
	}
}

/* The kernel's event at @from->fd becomes one of ours, if that can still be: its task may have
 * ended. */
static bool take_back(struct thread *thread, const struct passed *from)
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
	put_copies(fd, event, from->fd);
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
	found = find(leader);
	if (found && found->stays)
		found = NULL;
	for (unsigned int i = 0; i < nr_passed && !found; i++)
		if (is_member(&passed[i], leader) && !passed[i].stays)
			found = &passed[i];
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
	if (is_software(&is->attr.attr))
		return true;
	return event_is_kept(&is->attr.attr) && !is->stays && !is->has_more && !is->size;
}

static bool all_can_be_ours(int leader)
{
	bool can = true;

	lock_take(&event_passed_lock);
	for (unsigned int i = 0; i < nr_passed; i++)
		if (passed[i].fd >= 0 && (passed[i].fd == leader || is_member(&passed[i], leader)))
			can &= can_be_ours(&passed[i]) && !event_joined_is(passed[i].fd);
	lock_give(&event_passed_lock);
	return can;
}

int64_t event_take_back(struct thread *thread, int fd)
{
	struct passed next = {.fd = -1};

	fd = known_number(fd);
	if (!is_passed(fd))
		return 0;
	if (!all_can_be_ours(fd))
		return -EINVAL;
	while (next_of_group(fd, &next))
		if (!take_back(thread, &next)) {
			next.stays = true;
			remember(&next);
		}
	if (!look_up(fd, &next))
		return 0;
	return is_software(&next.attr.attr) ? -ENODEV : -EINVAL;
}

/* The leader of the group that @fd is in; -1: some of it only the kernel can count. */
static int leader_of_ours(int fd)
{
	int leader;

	lock_take(&event_passed_lock);
	leader = leader_of(fd);
	for (unsigned int i = 0; i < nr_passed; i++)
		if ((passed[i].fd == leader || is_member(&passed[i], leader)) &&
		    !is_software(&passed[i].attr.attr))
			leader = -1;
	lock_give(&event_passed_lock);
	return leader;
}

/* Whether @fd is ours now. */
static bool take_back_group(struct thread *thread, int fd)
{
	const int leader = leader_of_ours(fd);

	if (leader < 0)
		return false;
	event_take_back(thread, leader);
	return event_of_fd((uint64_t)fd);
}

/* ---- over to the kernel ---- */

/* Software events that are not fed (event_feed.h). */
static bool is_plain_software(const struct perf_event_attr *attr)
{
	return is_software(attr) && !attr->ksymbol && !attr->bpf_event && !attr->text_poke &&
	       attr->config != PERF_COUNT_SW_BPF_OUTPUT;
}

/* What the kernel has to be asked for to have @event: one by itself, whose records nobody looks at. */
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
		note_state(to, core_enabled(is));
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

	if (!core_settings()->host || !make_room() || !ask_for(&to, event))
		return -EINVAL;
	kernels = sys(__NR_perf_event_open, &to.attr, to.pid, to.cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (kernels < 0)
		return -EINVAL;
	error = sys(__NR_ioctl, kernels, PERF_EVENT_IOC_SET_BPF, program);
	if (!error) {
		sys(__NR_dup3, kernels, fd, cloexec);
		event_fds_forget((uint64_t)fd, (uint64_t)fd);
		thread->events.passed = true;
		remember(&to);
	}
	sys(__NR_close, kernels);
	return error;
}

/* ---- its ring ---- */

int64_t event_passed_mmap(struct thread *thread, struct syscall *call)
{
	struct passed *found;
	int64_t result;
	int fd;

	if (call->args[3] & MAP_ANONYMOUS)
		return EVENT_CALL_OTHER;
	fd = known_number((int)call->args[4]);
	if (!is_passed(fd))
		return EVENT_CALL_OTHER;
	if (take_back_group(thread, fd))
		return event_mmap(thread, call, event_of_fd((uint64_t)fd));
	result = sys_mmap(thread, call);
	if (sys_failed(result) || call->args[5])
		return result;
	lock_take(&event_passed_lock);
	found = find(fd);
	if (found) {
		found->start = (uint64_t)result;
		found->size = PAGE_UP(call->args[1]);
	}
	lock_give(&event_passed_lock);
	return result;
}

/* As the kernel compares those of one ring. */
static bool may_share(const struct passed *with, const struct core_event *event)
{
	const struct perf_event_attr *a = &with->attr.attr, *b = &event->attr;

	if (with->cpu != event->cpu || (with->cpu < 0 && with->target != event->target))
		return false;
	return core_same_clock(a, b) && !a->write_backward && !b->write_backward;
}

int64_t event_passed_output(struct thread *thread, int fd, int own, uint64_t event)
{
	struct passed to;

	fd = known_number(fd);
	if (!look_up(fd, &to))
		return -EBADF;
	if (!may_share(&to, core_named(event)))
		return -EINVAL;
	return event_joined_by(thread, fd, &to.attr.attr, to.start, to.size, own, event);
}

static void note_more(int fd)
{
	struct passed *found;

	lock_take(&event_passed_lock);
	found = find(fd);
	if (found)
		found->has_more = true;
	lock_give(&event_passed_lock);
}

int64_t event_passed_ioctl(struct thread *thread, struct syscall *call)
{
	struct passed from;
	uint64_t event;
	int fd;

	if (_IOC_TYPE((uint32_t)call->args[1]) != '$')
		return EVENT_CALL_OTHER;
	fd = known_number((int)call->args[0]);
	switch ((uint32_t)call->args[1]) {
	case PERF_EVENT_IOC_SET_FILTER:
	case PERF_EVENT_IOC_SET_BPF:
	case PERF_EVENT_IOC_SET_OUTPUT:
		note_more(fd);
		break;
	case PERF_EVENT_IOC_ENABLE:
	case PERF_EVENT_IOC_DISABLE:
		switched(fd, call->args[2] & PERF_IOC_FLAG_GROUP,
			 (uint32_t)call->args[1] == PERF_EVENT_IOC_ENABLE);
		break;
	}
	if ((uint32_t)call->args[1] != PERF_EVENT_IOC_SET_OUTPUT || !look_up(fd, &from))
		return EVENT_CALL_OTHER;
	event = event_of_fd(call->args[2]);
	if (!event) {
		/* What is leaving ours is not to be seen with the ring that it has meanwhile. */
		if (event_joined_is(fd))
			event_joined_closed((uint32_t)fd, (uint32_t)fd, event_fds_now());
		return EVENT_CALL_OTHER;
	}
	if (take_back_group(thread, fd))
		return core_set_output(event_of_fd((uint64_t)fd), event);
	return may_share(&from, core_named(event)) ? event_joined_to(fd, &from.attr.attr, event)
						   : -EINVAL;
}
