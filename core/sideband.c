// SPDX-License-Identifier: MIT
/*
 * Records of what happens to tasks. Each goes to all events of the task that asked for its kind and
 * are enabled, on their processor and in their cgroup, the newest first, as the kernel does it:
 *
 *	| header | body: a few words | string, padded with zeros | trailer of core/record.h |
 */
#include "core/sideband.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/newest.h"
#include "core/numbers.h"
#include "core/output.h"
#include "core/record.h"

#define WORD sizeof(uint64_t)

struct record {
	uint32_t type;
	uint16_t misc;
	const void *body;
	size_t size;			/* of the body, a multiple of 8 */
	const char *string;		/* NULL: none */
	const struct core_task *teller; /* NULL: the caller */
	uint64_t time;			/* by core_time(); 0: now */
};

/* With its end, in whole words. */
static size_t padded(const char *string)
{
	return string ? (strlen(string) + WORD) & ~(WORD - 1) : 0;
}

static void put_string(struct core_output *out, const char *string)
{
	static const char zeros[WORD];
	size_t length;

	if (!string)
		return;
	length = strlen(string);
	core_output_put(out, string, length);
	core_output_put(out, zeros, padded(string) - length);
}

static void tell(struct core_event *event, const struct record *record)
{
	size_t size = core_record_size(event, record->size + padded(record->string));
	struct core_identity identity;
	struct core_output out;

	core_identify(&identity, event);
	if (record->time && !event->attr.use_clockid)
		identity.time = record->time;
	if (record->teller) {
		const struct core_numbers numbers = core_numbers(event, record->teller);

		identity.pid = (uint32_t)numbers.pid;
		identity.tid = (uint32_t)numbers.tid;
	}
	if (size > UINT16_MAX || !core_output_begin(&out, event, size))
		return;
	core_put_header(&out, record->type, record->misc, size);
	core_output_put(&out, record->body, record->size);
	put_string(&out, record->string);
	core_put_identity(&out, event, &identity);
	core_output_end(&out, false);
}

/* Whether @event, which is one of @task's, is told of what happens now. */
static bool listens(const struct core_event *event, const struct core_task *task)
{
	return core_opened_const(event)->ring &&
	       (event->state == CORE_ACTIVE || event->state == CORE_INACTIVE) &&
	       (event->cpu < 0 || event->cpu == task->cpu) &&
	       (!event->cgroup || core_host_in_cgroup(task, event->cgroup));
}

/* ---- of one event ---- */

void core_tell_throttle(struct core_event *event, uint32_t type)
{
	const uint64_t body[] = {core_event_clock(event), core_opened_const(event)->id, event->id};
	const struct record record = {.type = type, .body = body, .size = sizeof(body)};

	tell(event, &record);
}

void core_tell_lost_samples(struct core_event *event, uint64_t lost)
{
	const struct record record = {
		.type = PERF_RECORD_LOST_SAMPLES,
		.body = &lost,
		.size = sizeof(lost),
	};

	tell(event, &record);
}

void core_tell_itrace_start(struct core_event *event, const struct core_task *task)
{
	const struct core_numbers body = core_numbers(event, task);
	const struct record record = {
		.type = PERF_RECORD_ITRACE_START,
		.body = &body,
		.size = sizeof(body),
		.teller = task,
	};

	tell(event, &record);
}

void core_tell_aux(struct core_event *event, const struct core_task *task, uint64_t offset,
		   uint64_t size, uint64_t flags)
{
	const uint64_t body[] = {offset, size, flags};
	const struct record record = {
		.type = PERF_RECORD_AUX,
		.body = body,
		.size = sizeof(body),
		.teller = task,
	};

	tell(event, &record);
}

void core_tell_read(struct core_event *event)
{
	const struct core_task *task = core_task(event->task);
	const struct core_numbers numbers = core_numbers(event, task);
	size_t size = core_record_size(event, WORD + core_read_size(event));
	struct core_identity identity;
	struct core_output out;

	core_identify(&identity, event);
	if (!core_output_begin(&out, event, size))
		return;
	core_put_header(&out, PERF_RECORD_READ, 0, size);
	core_put_two_u32(&out, (uint32_t)numbers.pid, (uint32_t)numbers.tid);
	core_put_read(&out, event);
	core_put_identity(&out, event, &identity);
	core_output_end(&out, false);
}

/* ---- tasks ---- */

static bool wants_tasks(const struct perf_event_attr *attr)
{
	return attr->task || attr->comm || attr->mmap || attr->mmap2 || attr->mmap_data;
}

struct task_body {
	int32_t pid, ppid, tid, ptid;
	uint64_t time;
};

/* @task begins or ends: told to the events of @to. */
static void tell_task(struct core_task *to, uint32_t type, const struct core_task *task)
{
	struct core_numbers numbers, parent;
	struct task_body body;
	const struct record record = {
		.type = type,
		.body = &body,
		.size = sizeof(body),
		.teller = to, /* a child comes to life in its parent */
	};

	core_for_each_newest(event, to) {
		if (!wants_tasks(&event->attr) || !listens(event, to))
			continue;
		numbers = core_numbers(event, task);
		parent = type == PERF_RECORD_FORK ? core_numbers(event, to)
						  : core_parent_numbers(event, task);
		body = (struct task_body){
			.pid = numbers.pid,
			.ppid = parent.pid,
			.tid = numbers.tid,
			.ptid = parent.tid,
			.time = core_event_clock(event),
		};
		tell(event, &record);
	}
}

/* @task's name spaces, which are those of the caller: told to the events of @to. */
static void tell_namespaces(struct core_task *to, const struct core_task *task)
{
	struct {
		struct core_numbers numbers;
		uint64_t nr;
		struct perf_ns_link_info links[NR_NAMESPACES];
	} body = {.nr = NR_NAMESPACES};
	const struct record record = {
		.type = PERF_RECORD_NAMESPACES,
		.body = &body,
		.size = sizeof(body),
		.teller = to,
	};
	bool known = false;

	core_for_each_newest(event, to) {
		if (!event->attr.namespaces || !listens(event, to))
			continue;
		if (!known)
			core_host_namespaces(body.links);
		known = true;
		body.numbers = core_numbers(event, task);
		tell(event, &record);
	}
}

void core_tell_fork(struct core_task *parent, const struct core_task *child)
{
	tell_task(parent, PERF_RECORD_FORK, child);
}

void core_tell_begun(struct core_task *parent, const struct core_task *child)
{
	tell_namespaces(parent, child);
}

void core_tell_exit(struct core_task *task)
{
	tell_task(task, PERF_RECORD_EXIT, task);
}

void core_namespaces(struct core_task *task)
{
	task->moved = true;
	if (!task->events || !core_host_whole())
		return;
	core_lock(&task->lock);
	tell_namespaces(task, task);
	core_unlock(&task->lock);
}

void core_tell_comm(struct core_task *task, const struct core_task *named, bool exec)
{
	struct core_numbers body;
	const struct record record = {
		.type = PERF_RECORD_COMM,
		.misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
		.body = &body,
		.size = sizeof(body),
		.string = named->comm,
	};

	core_for_each_newest(event, task) {
		if (!event->attr.comm || !listens(event, task))
			continue;
		body = core_numbers(event, named);
		tell(event, &record);
	}
}

/* ---- mappings ---- */

struct mmap_body {
	struct core_numbers numbers;
	uint64_t start, length, offset;
};

union mmap2_file {
	struct {
		uint32_t major, minor;
		uint64_t inode, inode_generation;
	};
	struct {
		uint8_t build_id_size, reserved[3];
		uint8_t build_id[20];
	};
};

struct mmap2_body {
	struct mmap_body mmap;
	union mmap2_file file;
	uint32_t prot, flags;
};

_Static_assert(sizeof(struct mmap2_body) == 64, "as PERF_RECORD_MMAP2 has it");

static bool wants_mapping(const struct perf_event_attr *attr, const struct core_mapping *mapping)
{
	return mapping->prot & PROT_EXEC ? attr->mmap || attr->mmap2 : attr->mmap_data;
}

static void tell_mapping(struct core_event *event, const struct core_task *task,
			 const struct core_mapping *mapping)
{
	struct mmap2_body body = {
		.mmap = {core_numbers(event, task), mapping->start, mapping->length,
			 mapping->offset},
		.prot = mapping->prot,
		.flags = mapping->flags,
	};
	struct record record = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_USER,
		.body = &body,
		.size = sizeof(body.mmap),
		.string = mapping->path,
	};

	if (!(mapping->prot & PROT_EXEC))
		record.misc |= PERF_RECORD_MISC_MMAP_DATA;
	if (event->attr.mmap2) {
		record.type = PERF_RECORD_MMAP2;
		record.size = sizeof(body);
		body.file.major = mapping->major;
		body.file.minor = mapping->minor;
		body.file.inode = mapping->inode;
		body.file.inode_generation = mapping->inode_generation;
	}
	if (event->attr.mmap2 && event->attr.build_id && mapping->build_id_size) {
		record.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		memset(&body.file, 0, sizeof(body.file));
		body.file.build_id_size = mapping->build_id_size;
		memcpy(body.file.build_id, mapping->build_id, mapping->build_id_size);
	}
	tell(event, &record);
}

bool core_tells_file(struct core_task *task, const struct core_mapping *mapping)
{
	bool tells = false;

	if (!task->mappings)
		return false;
	core_lock(&task->lock);
	core_for_each_newest(event, task)
		tells |= event->attr.mmap2 && wants_mapping(&event->attr, mapping);
	core_unlock(&task->lock);
	return tells;
}

void core_mapped(struct core_task *task, const struct core_mapping *mapping)
{
	if (!task->mappings)
		return;
	core_lock(&task->lock);
	core_for_each_newest(event, task)
		if (wants_mapping(&event->attr, mapping) && listens(event, task))
			tell_mapping(event, task, mapping);
	core_unlock(&task->lock);
}

/* ---- switches and cgroups ---- */

static void tell_switch(struct core_event *event, uint16_t misc, uint64_t time)
{
	/* Whom the processor left, or went to, is not to be seen from here: 0, as if it had been
	 * idle. */
	static const uint64_t nobody;
	const struct record record = {
		.type = event->everybody ? PERF_RECORD_SWITCH_CPU_WIDE : PERF_RECORD_SWITCH,
		.misc = misc,
		.body = &nobody,
		.size = event->everybody ? sizeof(nobody) : 0,
		.time = time,
	};

	tell(event, &record);
}

void core_switched(struct core_task *task, uint64_t since, bool preempted)
{
	uint16_t out = PERF_RECORD_MISC_SWITCH_OUT;

	if (preempted)
		out |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	core_lock(&task->lock);
	core_for_each_newest(event, task) {
		if (!event->attr.context_switch || !listens(event, task))
			continue;
		tell_switch(event, out, since);
		tell_switch(event, 0, 0);
	}
	core_unlock(&task->lock);
}

void core_tell_first_run(struct core_task *task)
{
	core_lock(&task->lock);
	core_for_each_newest(event, task)
		if (event->attr.context_switch && listens(event, task))
			tell_switch(event, 0, 0);
	core_unlock(&task->lock);
}

void core_cgroup_made(struct core_task *task, uint64_t cgroup, const char *path)
{
	const struct record record = {
		.type = PERF_RECORD_CGROUP,
		.body = &cgroup,
		.size = sizeof(cgroup),
		.string = path,
	};

	core_lock(&task->lock);
	core_for_each_newest(event, task)
		if (event->attr.cgroup && listens(event, task))
			tell(event, &record);
	core_unlock(&task->lock);
}
