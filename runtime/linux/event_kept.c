// SPDX-License-Identifier: MIT
#include "runtime/linux/event_kept.h"

#include <asm/errno.h>
#include <linux/perf_event.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/host.h"
#include "runtime/linux/control.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/event_joined.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/proc.h"
#include "runtime/sys.h"

bool event_is_kept(const struct perf_event_attr *attr)
{
	if (!core_settings()->host)
		return false;
	return attr->type == PERF_TYPE_TRACEPOINT ||
	       (attr->type >= PERF_TYPE_MAX && !event_is_own_unit(attr->type) &&
		attr->type == proc_device_type("msr"));
}

static struct control_message about(uint64_t event, uint32_t what)
{
	return (struct control_message){
		.what = what,
		.event = (uint32_t)event,
		.generation = (uint32_t)(event >> 32),
	};
}

/* ---- opening ---- */

static bool is_on(const struct core_event *event)
{
	return event->state == CORE_INACTIVE || event->state == CORE_ACTIVE;
}

/* What is ours in it: what it tells beside samples, groups, and where it writes. */
static void leave_ours(struct perf_event_attr *attr)
{
	/* In samples alone; the monitor reads one count. */
	if (!(attr->sample_type & PERF_SAMPLE_READ) || !attr->sample_period)
		attr->read_format = 0;
	attr->pinned = attr->exclusive = 0;
	attr->mmap = attr->mmap2 = attr->mmap_data = attr->build_id = 0;
	attr->comm = attr->comm_exec = attr->task = attr->namespaces = attr->cgroup = 0;
	attr->context_switch = attr->ksymbol = attr->bpf_event = attr->text_poke = 0;
	attr->inherit_stat = 0;
	attr->write_backward = 0;
	attr->watermark = 1;
	attr->wakeup_watermark = 1;
}

/* By itself it is to count while it and its leader would. */
static void follow_leader(struct perf_event_attr *attr, const struct core_event *event,
			  const struct core_event *leader)
{
	const bool own = is_on(event), leaders = is_on(leader);
	const bool own_later = own || event->attr.enable_on_exec;
	const bool leaders_later = leaders || leader->attr.enable_on_exec;

	attr->disabled = !(own && leaders);
	attr->enable_on_exec = attr->disabled && own_later && leaders_later;
}

int64_t event_kept_open(const struct event_request *request, uint64_t event)
{
	const struct core_event *is = core_named(event);
	union event_attr of = request->attr;
	int64_t fd, raised;

	leave_ours(&of.attr);
	follow_leader(&of.attr, is, core_event(is->leader));
	core_kept_begins(event, !of.attr.disabled, of.attr.enable_on_exec);
	fd = sys(__NR_perf_event_open, &of, request->pid, request->cpu, -1,
		 (request->flags & PERF_FLAG_PID_CGROUP) | PERF_FLAG_FD_CLOEXEC);
	/* The number is for ours. */
	raised = fd < 0 ? fd : descriptors_raise((int)fd, true);
	return raised < 0 ? fd : raised;
}

int64_t event_keep(int64_t kernels, uint64_t event)
{
	enum { PAGES = 64 };
	struct control_message message = about(event, CONTROL_KEEP);
	const struct core_event *is = core_named(event);
	struct perf_event_attr attr = is->attr;

	leave_ours(&attr);
	/* One that is inherited and of no processor has no ring, nor would it natively. */
	if (attr.sample_period && !event_joined_feed((int)kernels, &attr, event, PAGES, &message) &&
	    !(attr.inherit && is->cpu < 0))
		return -ENOMEM;
	core_kept_answer(event, -EMFILE);
	if (!control_send(&message, (int)kernels))
		return -ENODEV;
	control_finish();
	return core_kept_answered(event);
}

/* ---- later ---- */

bool core_host_kept(uint64_t event, bool group, enum core_kept what)
{
	struct control_message message = about(event, CONTROL_KEPT);

	message.group = group;
	message.act = what;
	return control_send(&message, -1) && control_finish();
}

int64_t event_kept_ioctl(uint64_t event, uint32_t request, uint64_t argument, int fd)
{
	struct control_message message = about(event, CONTROL_KEPT_IOCTL);

	message.request = request;
	message.argument = argument;
	core_kept_answer(event, -ENODEV);
	if (!control_send(&message, fd))
		return -ENODEV;
	control_finish();
	return core_kept_answered(event);
}
