// SPDX-License-Identifier: MIT
#include "runtime/linux/event_feed.h"

#include <asm/errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>

#include "abi/control.h"
#include "core/core.h"
#include "runtime/linux/control.h"
#include "runtime/linux/copy.h"
#include "runtime/linux/event_calls.h"
#include "runtime/linux/event_fds.h"
#include "runtime/linux/event_joined.h"
#include "runtime/sys.h"

/* Of the rings: code changes seldom, and programs may write at each call. */
enum { PAGES_OF_CODE = 8, PAGES_OF_OUTPUT = 64 };

/* ---- the kernel's event ---- */

/* For the same task and processor, and enabled: whether it is heard is up to ours. */
static int64_t open_beside(const struct core_event *event, struct perf_event_attr *attr)
{
	const int64_t pid = event->task ? core_task(event->task)->tid : -1;

	attr->type = PERF_TYPE_SOFTWARE;
	attr->size = sizeof(*attr);
	attr->inherit = event->attr.inherit && event->cpu >= 0; /* or it could have no ring */
	attr->sample_id_all = event->attr.sample_id_all;
	attr->use_clockid = event->attr.use_clockid;
	attr->clockid = event->attr.clockid;
	attr->exclude_kernel = event->attr.exclude_kernel;
	attr->exclude_hv = event->attr.exclude_hv;
	attr->watermark = 1;
	attr->wakeup_watermark = 1;
	return sys(__NR_perf_event_open, attr, pid, event->cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool feed(int fd, const struct perf_event_attr *attr, uint64_t event, unsigned int pages)
{
	struct control_message message = {
		.what = CONTROL_FED,
		.event = (uint32_t)event,
		.generation = (uint32_t)(event >> 32),
	};

	return event_joined_feed(fd, attr, event, pages, &message) && control_send(&message, fd);
}

void event_feed(uint64_t event)
{
	const uint64_t trailing = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	const struct perf_event_attr *of = &core_named(event)->attr;
	struct perf_event_attr attr = {
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = of->sample_type & trailing,
		.ksymbol = of->ksymbol,
		.bpf_event = of->bpf_event,
		.text_poke = of->text_poke,
	};
	int64_t fd;

	if (!core_settings()->host || of->type != PERF_TYPE_SOFTWARE ||
	    !(of->ksymbol || of->bpf_event || of->text_poke))
		return;
	fd = open_beside(core_named(event), &attr);
	if (fd < 0)
		return;
	feed((int)fd, &attr, event, PAGES_OF_CODE);
	sys(__NR_close, fd);
}

/* ---- BPF programs ---- */

static bool is_for_output(uint64_t event)
{
	const struct perf_event_attr *attr = &core_named(event)->attr;

	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_BPF_OUTPUT;
}

static bool is_map_of_events(uint32_t map)
{
	struct bpf_map_info info = {0};
	union bpf_attr attr = {
		.info = {.bpf_fd = map, .info_len = sizeof(info), .info = (uint64_t)&info}};

	return !sys(__NR_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr.info)) &&
	       info.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
}

/* As that is sampled. */
static int64_t open_output(const struct core_event *event, struct perf_event_attr *attr)
{
	const struct perf_event_attr *of = &event->attr;

	*attr = (struct perf_event_attr){
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = of->sample_period,
		.sample_type = of->sample_type,
		.read_format = of->read_format,
		.sample_regs_user = of->sample_regs_user,
		.sample_regs_intr = of->sample_regs_intr,
		.sample_stack_user = of->sample_stack_user,
		.sample_max_stack = of->sample_max_stack,
		.exclude_callchain_kernel = of->exclude_callchain_kernel,
		.exclude_callchain_user = of->exclude_callchain_user,
	};
	return open_beside(event, attr);
}

int64_t event_bpf(struct thread *thread, struct syscall *call)
{
	union bpf_attr attr = {0};
	const size_t size = offsetof(union bpf_attr, flags) + sizeof(attr.flags);
	struct perf_event_attr of;
	uint32_t fd;
	uint64_t event;
	int64_t result, beside;

	if ((int)call->args[0] != BPF_MAP_UPDATE_ELEM || call->args[2] < size ||
	    copy_in(&attr, call->args[1], size) || copy_in(&fd, attr.value, sizeof(fd)))
		return EVENT_CALL_OTHER;
	event = event_of_fd(fd);
	if (!event || !core_settings()->host || !is_for_output(event) ||
	    !is_map_of_events(attr.map_fd))
		return EVENT_CALL_OTHER;
	beside = open_output(core_named(event), &of);
	if (beside < 0)
		return beside;
	fd = (uint32_t)beside;
	attr.value = (uint64_t)&fd;
	struct syscall changed = {
		.number = __NR_bpf,
		.args = {BPF_MAP_UPDATE_ELEM, (uint64_t)&attr, size},
	};
	result = syscall_pass(thread, &changed);
	if (!result && !feed((int)beside, &of, event, PAGES_OF_OUTPUT))
		result = -ENOMEM;
	sys(__NR_close, beside);
	return result;
}
