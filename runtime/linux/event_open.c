// SPDX-License-Identifier: MIT
/* perf_event_open(2), and the other calls that name no event. */
#include <asm/errno.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <linux/sched.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/encoding.h"
#include "core/sum.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_attr.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_feed.h"
#include "runtime/linux/event_kept.h"
#include "runtime/linux/event_probe.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/proc.h"
#include "runtime/linux/tasks.h"
#include "runtime/linux/threads.h"
#include "runtime/linux/traced_probes.h"
#include "runtime/say.h"
#include "runtime/sys.h"

#define FLAGS                                                                                      \
	(PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT | PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC)

static int64_t find_group(struct event_request *request, struct thread *thread)
{
	int64_t error;

	if (request->group_fd == -1)
		return 0;
	request->group = event_of_fd((uint32_t)request->group_fd);
	if (!request->group) {
		/* Not before: of an event of the kernel's that had the number a moment ago may
		 * be known still. */
		error = event_take_back(thread, request->group_fd);
		if (error)
			return error;
		request->group = event_of_fd((uint32_t)request->group_fd);
	}
	return request->group ? core_group_check(request->group) : -EBADF;
}

/* Who could trace the task, may read this link: EACCES. It has it until it is reaped: ENOENT. */
static int64_t read_link_of(int pid)
{
	char path[32], link[32];

	format(path, sizeof(path), "/proc/%d/ns/pid", (int64_t)pid);
	return sys(__NR_readlink, path, link, sizeof(link));
}

/* A zombie, and whoever is not of this run, is found, but cannot be measured. Until that is said,
 * the caller stands for it. */
static int64_t find_absent(struct event_request *request, struct thread *thread)
{
	const int64_t link = request->pid > 0 ? read_link_of(request->pid) : -ENOENT;

	if (link < 0 && link != -EACCES)
		return -ESRCH;
	request->target.task = core_task(thread->page);
	request->target.error = -ESRCH;
	request->rights.attach = link != -EACCES;
	return 0;
}

static int64_t find_task(struct event_request *request, struct thread *thread)
{
	uint32_t page;

	if (request->pid == -1)
		return 0;
	if (!request->pid || request->pid == thread->tid) {
		request->target.task = core_task(thread->page);
		return 0;
	}
	page = tasks_find(request->pid);
	if (!page)
		return find_absent(request, thread);
	request->target.task = core_task(page);
	request->target.tid = request->target.task->tid;
	request->rights.attach = read_link_of(request->pid) != -EACCES;
	return 0;
}

static int64_t find_target(struct event_request *request, struct thread *thread)
{
	int64_t cgroup;

	request->target.cpu = request->cpu;
	if (!(request->flags & PERF_FLAG_PID_CGROUP))
		return find_task(request, thread);
	cgroup = proc_cgroup_of(request->pid);
	if (cgroup < 0)
		request->target.error = (int)cgroup;
	else
		request->target.cgroup = (uint64_t)cgroup;
	return 0;
}

/*
 * The monitor is to see the end of who opens an event, which may come at any time, and of whom it
 * measures. Those of the whole tree are told when all that begin meanwhile have it.
 */
static void watch(struct thread *thread, const struct event_request *request)
{
	tasks_watch(thread->page);
	if (request->target.task)
		tasks_watch(core_page(request->target.task));
}

/* What code has to count for that; of the trace whatever the model does. */
static uint64_t kinds_of(unsigned int kind)
{
	if (kind == CORE_TRACE)
		return CORE_KIND_BIT(CORE_BRANCH_MISSES);
	return core_is_sum(kind) ? core_sum_kinds(kind) : CORE_KIND_BIT(kind);
}

/* And has to look for beside that. */
static uint64_t extras_of(const struct core_event *event)
{
	if (event->kind == CORE_PROBE || (event->kind == CORE_BREAKPOINT && core_is_stop(event)))
		return CORE_EXTRA_STOPS;
	return event->kind == CORE_BREAKPOINT ? CORE_EXTRA_BREAKPOINTS : 0;
}

/* Whether the thread can count what it has opened for itself; of others it cannot be told. */
static bool affords(struct thread *thread, const struct core_task *task, uint64_t event)
{
	const struct core_event *is = core_named(event);

	if (task != core_task(thread->page))
		return true;
	return tasks_affords(thread, kinds_of(is->kind), extras_of(is), is->attr.disabled);
}

/* How fast the clock runs takes longer to find out than many a program runs, so the first event has
 * it done. Without a monitor it stands still. */
static void need_clock(void)
{
	const struct control_message message = {.what = CONTROL_CLOCK};
	const uint32_t *mult = &core_settings()->tsc_mult;
	const struct {
		int64_t seconds, nanoseconds;
	} limit = {1, 0};

	if (__atomic_load_n(mult, __ATOMIC_ACQUIRE) || !control_send(&message, -1))
		return;
	while (!__atomic_load_n(mult, __ATOMIC_ACQUIRE))
		if (sys(__NR_futex, mult, FUTEX_WAIT, 0, &limit) == -ETIMEDOUT)
			return;
}

/* Who traces the caller, and who traces that one, cannot be measured by it. */
static void leave_tracers(const struct thread *thread)
{
	for (int32_t tid = proc_tracer_of(thread->tid); tid; tid = proc_tracer_of(tid)) {
		const uint32_t page = tasks_find(tid);

		if (page)
			core_task_apart(core_task(page)->process);
	}
}

/* The descriptor of @event, and who counts for it. */
static int64_t make(const struct event_request *request, uint64_t event)
{
	const bool cloexec = request->flags & PERF_FLAG_FD_CLOEXEC;
	int64_t fd, kernels, error;

	if (!request->target.kept)
		return event_fd_make(event, cloexec);
	kernels = event_kept_open(request, event);
	if (kernels < 0)
		return kernels;
	fd = event_fd_make(event, cloexec);
	error = fd < 0 ? fd : event_keep(kernels, event);
	if (error && fd >= 0) {
		sys(__NR_close, fd);
		event_fds_forget((uint64_t)fd, (uint64_t)fd);
	}
	sys(__NR_close, kernels);
	return error ? error : fd;
}

static int64_t find_probe(struct event_request *request)
{
	const struct perf_event_attr *attr = &request->attr.attr;

	if (request->target.record)
		return event_probe_check(attr, &request->target.file);
	return event_probe_find(attr, &request->target.file);
}

int64_t event_open(struct thread *thread, struct event_request *request)
{
	need_clock();
	int64_t fd, error = find_group(request, thread);
	uint64_t event;

	if (!error)
		error = find_target(request, thread);
	if (!error && core_encoding_is_probe(&request->attr.attr))
		error = find_probe(request);
	if (error)
		return error;
	request->target.kept = event_is_kept(&request->attr.attr);
	if (!request->target.task) {
		tasks_sweep();
		leave_tracers(thread);
	}
	watch(thread, request);
	error = core_open(&request->attr.attr, &request->target, request->group, request->flags,
			  &request->rights, &event);
	if (error)
		return error;
	fd = -ENOMEM;
	if (affords(thread, request->target.task, event))
		fd = make(request, event);
	if (fd >= 0)
		event_feed(event);
	if (fd >= 0 && !request->target.task)
		tasks_watch_all();
	core_opened_by(core_task(thread->page), fd >= 0);
	return fd;
}

/* The kernel takes a descriptor before it looks at what is to be measured, and of whom: @error is
 * what it says if there is one. */
static int64_t refuse(int64_t error)
{
	const int64_t fd = sys(__NR_eventfd2, 0, 0);

	if (fd == -EMFILE)
		return fd;
	if (fd >= 0)
		sys(__NR_close, fd);
	return error;
}

/* Without an arena there are no events but the kernel's. What it has not, we would have: it is
 * memory that is missing, and no processor that counts. */
static int64_t open_kernels(struct thread *thread, struct syscall *call)
{
	const int64_t result = syscall_pass(thread, call);

	switch (result) {
	case -ENOENT:
	case -ENODEV:
	case -ENOSYS:
	case -EOPNOTSUPP:
		return -ENOMEM;
	default:
		return result;
	}
}

int64_t sys_perf_event_open(struct thread *thread, struct syscall *call)
{
	struct event_request request = {
		.pid = (int)call->args[1],
		.cpu = (int)call->args[2],
		.group_fd = (int)call->args[3],
		.flags = call->args[4],
	};
	int64_t error, fd;

	if (request.flags & ~FLAGS)
		return -EINVAL;
	if (!thread->page || !arena_events())
		return open_kernels(thread, call);
	event_rights(&request.rights);
	error = event_attr_in(&request.attr, call->args[0], &request.rights);
	if (!error)
		error = core_open_check(&request.attr.attr, request.pid, request.cpu, request.flags,
					&request.rights);
	if (!error)
		error = traced_probe(&request);
	if (error)
		return error;
	fd = event_pass(thread, call, &request);
	if (fd != EVENT_CALL_OTHER)
		return fd;
	fd = event_open(thread, &request);
	return fd < 0 ? refuse(fd) : fd;
}

/* unshare, setns */
int64_t sys_namespaces(struct thread *thread, struct syscall *call)
{
	int64_t result = syscall_pass(thread, call);

	if (!result && (uint32_t)call->number == __NR_unshare && call->args[0] & CLONE_FILES)
		threads_unshared(thread);
	if (!result)
		core_namespaces(&thread->events);
	return result;
}
