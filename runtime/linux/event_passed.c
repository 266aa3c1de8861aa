// SPDX-License-Identifier: MIT
/*
 * Events that the kernel counts: software events, tracepoints, probes and those of other PMUs of
 * the machine. A descriptor of such an event is the kernel's, and nothing of ours is between it and
 * the program. What was asked for is remembered (event_passed_list.h), since a group cannot have
 * events of both, nor a ring: if one of ours joins a group of software events, or a ring is to be
 * had for one of it, the group becomes ours (event_back.c).
 */
#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/perf_event.h>

#include "core/core.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/event_kept.h"
#include "runtime/linux/event_passed_list.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/tasks.h"
#include "runtime/lock.h"
#include "runtime/sys.h"
#include "runtime/thread.h"

/* ---- which ---- */

/* Asks for records: of the program, in which the kernel would show how it is run here, or of the
 * kernel, in which ours is fed. */
static bool tells(const struct perf_event_attr *attr)
{
	return attr->mmap || attr->mmap2 || attr->mmap_data || attr->comm || attr->task ||
	       attr->context_switch || attr->namespaces || attr->cgroup || attr->ksymbol ||
	       attr->bpf_event || attr->text_poke;
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
	if (passed_is_software(&request->attr.attr))
		return passes_software(request);
	if (type == PERF_TYPE_TRACEPOINT)
		return true;
	/* The kernel's number for uprobes leads nowhere, as what has it is not executed; to ask
	 * for it takes longer than all the rest. */
	return type >= PERF_TYPE_MAX && !event_is_own_unit(type) &&
	       type != proc_device_type("uprobe");
}

/* With others, in a group that is ours. */
static bool may_be_ours(const struct perf_event_attr *attr)
{
	return passed_is_software(attr) || event_is_kept(attr);
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
	const bool software = passed_is_software(&request->attr.attr);
	int64_t fd;

	if (!passes(request))
		return EVENT_CALL_OTHER;
	if (request->group_fd >= 0 && event_of_fd((uint32_t)request->group_fd))
		return may_be_ours(&request->attr.attr) ? EVENT_CALL_OTHER
							: refuse_in_group(thread, call);
	if (!passed_room())
		return EVENT_CALL_OTHER;
	fd = syscall_pass(thread, call);
	/* What the kernel does not let be counted, or knows nothing of, we count. */
	if (fd < 0 && fd != SYSCALL_NOT_MADE && software)
		return EVENT_CALL_OTHER;
	if (fd >= 0) {
		thread->events.passed = true;
		passed_add(&(struct passed){
			.fd = (int)fd,
			.group_fd = request->flags & PERF_FLAG_FD_NO_GROUP ? -1 : request->group_fd,
			.pid = request->pid ?: thread->tid,
			.target = core_task(request->pid ? tasks_find(request->pid) : thread->page)
					  ->id,
			.creator = thread->page,
			.created_by = core_task(thread->page)->id,
			.cpu = request->cpu,
			.flags = request->flags,
			.attr = request->attr,
		});
	}
	return fd;
}

/* ---- on and off ---- */

static void switched(int fd, bool group, bool on)
{
	int leader;

	lock_take(&event_passed_lock);
	leader = passed_leader(fd);
	passed_for_each(is)
		if (is->fd == fd || (group && passed_in_group(is, leader)))
			passed_note_state(is, on);
	lock_give(&event_passed_lock);
}

void event_passed_switched(const struct thread *thread, bool on)
{
	const uint64_t caller = core_task(thread->page)->id;

	lock_take(&event_passed_lock);
	passed_for_each(is)
		if (is->created_by == caller)
			passed_note_state(is, on);
	lock_give(&event_passed_lock);
}

/* ---- its ring ---- */

int64_t event_passed_mmap(struct thread *thread, struct syscall *call)
{
	struct passed *found;
	int64_t result;
	int fd;

	if (call->args[3] & MAP_ANONYMOUS)
		return EVENT_CALL_OTHER;
	fd = passed_number((int)call->args[4]);
	if (!passed_is(fd))
		return EVENT_CALL_OTHER;
	if (event_take_back_group(thread, fd))
		return event_mmap(thread, call, event_of_fd((uint64_t)fd));
	result = sys_mmap(thread, call);
	if (sys_failed(result) || call->args[5])
		return result;
	lock_take(&event_passed_lock);
	found = passed_find(fd);
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

	fd = passed_number(fd);
	if (!passed_look_up(fd, &to))
		return -EBADF;
	if (!may_share(&to, core_named(event)))
		return -EINVAL;
	return event_joined_by(thread, fd, &to.attr.attr, to.start, to.size, own, event);
}

static void note_more(int fd)
{
	struct passed *found;

	lock_take(&event_passed_lock);
	found = passed_find(fd);
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
	fd = passed_number((int)call->args[0]);
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
	if ((uint32_t)call->args[1] != PERF_EVENT_IOC_SET_OUTPUT || !passed_look_up(fd, &from))
		return EVENT_CALL_OTHER;
	event = event_of_fd(call->args[2]);
	if (!event) {
		/* What is leaving ours is not to be seen with the ring that it has meanwhile. */
		if (event_joined_is(fd))
			event_joined_closed((uint32_t)fd, (uint32_t)fd, event_fds_now());
		return EVENT_CALL_OTHER;
	}
	if (event_take_back_group(thread, fd))
		return core_set_output(event_of_fd((uint64_t)fd), event);
	return may_share(&from, core_named(event)) ? event_joined_to(fd, &from.attr.attr, event)
						   : -EINVAL;
}
