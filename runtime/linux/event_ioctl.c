// SPDX-License-Identifier: MIT
#include <asm/errno.h>
#include <asm/ioctls.h>
#include <linux/fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/perf_event.h>

#include "abi/control.h"
#include "abi/source.h"
#include "core/core.h"
#include "core/hold.h"
#include "core/sum.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_attr.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_kept.h"
#include "runtime/linux/event_request.h"
#include "runtime/linux/memory.h"
#include "runtime/sys.h"

static bool is_kept(uint64_t event)
{
	return core_named(event)->is_kept;
}

static int64_t set_period(uint64_t event, uint64_t at)
{
	uint64_t period;
	int64_t error;

	if (copy_in(&period, at, sizeof(period)))
		return -EFAULT;
	error = core_set_period(event, period);
	if (error || !is_kept(event))
		return error;
	return event_kept_ioctl(event, PERF_EVENT_IOC_PERIOD, period, -1);
}

/* Where the number comes from (abi/source.h). */
static int64_t get_source(uint64_t event, uint64_t argument)
{
	struct core_hold hold;
	unsigned int kind;
	uint64_t kinds;
	uint32_t source;

	if (is_kept(event))
		return -ENOTTY;
	if (!core_hold(&hold, event))
		return -EBADF;
	kind = hold.event->kind;
	core_hold_end(&hold);
	kinds = core_is_sum(kind) ? core_sum_kinds(kind) : core_kind_bit(kind);
	source = kinds & CORE_KINDS_MODEL ? ABI_SOURCE_MODEL : ABI_SOURCE_EXACT;
	return copy_out(argument, &source, sizeof(source)) ? -EFAULT : 0;
}

static int64_t get_id(uint64_t event, uint64_t to)
{
	const uint64_t id = core_event_id(event);

	return id ? copy_out(to, &id, sizeof(id)) : -EBADF;
}

/* A descriptor, or -1 as a long: for none. */
static int64_t set_output(struct thread *thread, uint64_t own, uint64_t event, uint64_t fd)
{
	uint64_t output;

	if (fd == UINT64_MAX)
		return core_set_output(event, 0);
	output = event_of_fd(fd);
	return output ? core_set_output(event, output)
		      : event_passed_output(thread, (int)fd, (int)own, event);
}

static int64_t modify(uint64_t event, uint64_t at)
{
	struct core_rights rights;
	union event_attr attr;
	int64_t error;

	event_rights(&rights);
	error = event_attr_in(&attr, at, &rights);
	return error ? error : core_modify(event, &attr.attr);
}

/* It is longer than a message. */
static int64_t send_filter(uint64_t event, const char *filter, size_t length)
{
	int32_t ends[2];
	int64_t result = sys(__NR_pipe2, ends, O_CLOEXEC | O_NONBLOCK);

	if (result)
		return result;
	sys(__NR_write, ends[1], filter, length);
	sys(__NR_close, ends[1]);
	result = event_kept_ioctl(event, PERF_EVENT_IOC_SET_FILTER, 0, ends[0]);
	sys(__NR_close, ends[0]);
	return result;
}

/* Tracepoints have filters, and PMUs that trace. */
static int64_t set_filter(uint64_t event, uint64_t at)
{
	char filter[PAGE];
	int64_t length = copy_string_in(filter, at, sizeof(filter));

	if (length < 0)
		return length == -ENAMETOOLONG ? -EINVAL : length;
	return is_kept(event) ? send_filter(event, filter, (size_t)length) : -EINVAL;
}

static int64_t set_bpf(struct thread *thread, uint64_t own, uint64_t event, uint64_t program)
{
	if (sys(__NR_fcntl, program, F_GETFD) < 0)
		return -EBADF;
	if (is_kept(event))
		return event_kept_ioctl(event, PERF_EVENT_IOC_SET_BPF, 0, (int)program);
	return event_hand_over(thread, (int)own, event, program);
}

static int64_t set_async(uint64_t event, uint64_t fd, uint64_t at)
{
	struct core_hold hold;
	int on;

	if (copy_in(&on, at, sizeof(on)))
		return -EFAULT;
	if (!core_hold(&hold, event))
		return -EBADF;
	hold.event->owner.fd = (int32_t)fd;
	hold.event->owner.async = on;
	core_hold_end(&hold);
	return 0;
}

static int64_t set_nonblocking(uint64_t event, uint64_t at)
{
	int on;

	return copy_in(&on, at, sizeof(on)) ? -EFAULT : event_set_nonblocking(event, on);
}

event_switch *event_ioctl_switch(uint32_t request)
{
	switch (request) {
	case PERF_EVENT_IOC_ENABLE:
		return core_enable;
	case PERF_EVENT_IOC_DISABLE:
		return core_disable;
	case PERF_EVENT_IOC_RESET:
		return core_reset;
	default:
		return NULL;
	}
}

/* Who keeps it writes how many there are, and numbers of @nr. */
static int64_t ask_for_programs(uint64_t event, uint32_t *answer, uint32_t nr)
{
	const size_t size = (1 + nr) * sizeof(*answer);
	int32_t ends[2];
	int64_t result = sys(__NR_pipe2, ends, O_CLOEXEC | O_NONBLOCK);

	if (result)
		return result;
	result = event_kept_ioctl(event, PERF_EVENT_IOC_QUERY_BPF, nr, ends[1]);
	/* There may be more than there is room for. */
	if ((!result || result == -ENOSPC) &&
	    sys(__NR_read, ends[0], answer, size) != (int64_t)size)
		result = -EINVAL;
	sys(__NR_close, ends[0]);
	sys(__NR_close, ends[1]);
	return result;
}

/* Of tracepoints alone, and who may not ask is told that first. */
static int64_t query_bpf(uint64_t event, uint64_t at)
{
	const uint64_t to = at + offsetof(struct perf_event_query_bpf, prog_cnt);
	uint32_t answer[1 + CONTROL_PROGRAMS], nr;
	struct core_rights rights;
	int64_t result;

	event_rights(&rights);
	if (!rights.perfmon)
		return -EPERM;
	if (!is_kept(event))
		return -EINVAL;
	if (copy_in(&nr, at, sizeof(nr)))
		return -EFAULT;
	if (nr > CONTROL_PROGRAMS)
		return -E2BIG;
	result = ask_for_programs(event, answer, nr);
	if ((!result || result == -ENOSPC) && copy_out(to, answer, (1 + nr) * sizeof(*answer)))
		return -EFAULT;
	return result;
}

int64_t event_ioctl(struct thread *thread, struct syscall *call, uint64_t event)
{
	const uint64_t argument = call->args[2];
	event_switch *const what = event_ioctl_switch((uint32_t)call->args[1]);

	if (what)
		return what(event, argument & PERF_IOC_FLAG_GROUP);
	switch ((uint32_t)call->args[1]) {
	case PERF_EVENT_IOC_REFRESH:
		return core_refresh(event, (int)argument);
	case PERF_EVENT_IOC_PERIOD:
		return set_period(event, argument);
	case PERF_EVENT_IOC_SET_OUTPUT:
		return set_output(thread, call->args[0], event, argument);
	case PERF_EVENT_IOC_SET_FILTER:
		return set_filter(event, argument);
	case PERF_EVENT_IOC_ID:
		return get_id(event, argument);
	case ABI_IOC_SOURCE:
		return get_source(event, argument);
	case PERF_EVENT_IOC_SET_BPF:
		return set_bpf(thread, call->args[0], event, argument);
	case PERF_EVENT_IOC_PAUSE_OUTPUT:
		return core_pause_output(event, argument);
	case PERF_EVENT_IOC_QUERY_BPF:
		return query_bpf(event, argument);
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES:
		return modify(event, argument);
	case FIOASYNC:
		return set_async(event, call->args[0], argument);
	case FIONBIO:
		return set_nonblocking(event, argument);
	/* To the kernel any file has a size of blocks, and nothing in common with another. */
	case FIGETBSZ:
	case FICLONE:
	case FICLONERANGE:
	case FIDEDUPERANGE:
	case FS_IOC_FIEMAP:
	case FIOCLEX:
	case FIONCLEX:
		return syscall_pass(thread, call);
	default:
		return -ENOTTY;
	}
}
