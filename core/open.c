// SPDX-License-Identifier: MIT
/* perf_event_open(2), once the attr has been checked and group and task have been found. */
#include <asm/perf_regs.h>
#include <errno.h>
#include <string.h>

#include "core/arena.h"
#include "core/attach.h"
#include "core/aux.h"
#include "core/core.h"
#include "core/count.h"
#include "core/encoding.h"
#include "core/hold.h"
#include "core/host.h"
#include "core/output.h"
#include "core/read_format.h"
#include "core/repair.h"
#include "core/schedule.h"
#include "core/still.h"
#include "core/sum.h"

/* ---- what no event can be ---- */

static bool samples_reads(const struct perf_event_attr *attr)
{
	return attr->sample_period && attr->sample_type & PERF_SAMPLE_READ;
}

static bool samples_reads_of_copies(const struct perf_event_attr *attr)
{
	return attr->inherit && attr->sample_type & PERF_SAMPLE_READ;
}

/* What the kernel writes knows nothing of ours; nor does it tell how much of its count is whose. */
static bool reads_others(const struct perf_event_attr *attr)
{
	return samples_reads(attr) && (attr->inherit || attr->read_format & PERF_FORMAT_GROUP);
}

static bool has_no_branches(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE || attr->type == PERF_TYPE_BREAKPOINT ||
	       attr->type == PERF_TYPE_TRACEPOINT || core_encoding_is_probe(attr);
}

/* Whether or not the samples shall have them. */
static bool names_vector_registers(const struct perf_event_attr *attr)
{
	return (attr->sample_regs_user | attr->sample_regs_intr) >> PERF_REG_X86_XMM0;
}

/* What an event wants of an AUX area of its own. Nothing else than branches goes there: no samples
 * (aux_output), by no unit. */
static int check_own_aux(const struct core_event *event)
{
	const uint32_t action = core_aux_action(event);

	if (event->attr.aux_output)
		return -EOPNOTSUPP;
	if (action & CORE_AUX_PAUSE && action & CORE_AUX_RESUME)
		return -EINVAL;
	if (action & CORE_AUX_START_PAUSED && !core_aux_fills(&event->attr))
		return -EOPNOTSUPP;
	return 0;
}

/* And of that of the event that leads its group: a part of it in each sample, or that it pauses. */
static bool uses_aux(const struct core_event *event)
{
	return core_aux_action(event) & (CORE_AUX_PAUSE | CORE_AUX_RESUME) ||
	       event->attr.aux_sample_size;
}

/* ---- one at a time ---- */

/*
 * There is one unit that traces for each task: nobody shares it, nor do events of tasks with those
 * of every task.
 */
static bool is_in_the_way(const struct core_event *other, const struct core_target *target)
{
	if (other->state == CORE_FREE || other->parent || other->kind != CORE_TRACE)
		return false;
	if (other->everybody != !target->task)
		return true;
	if (other->state == CORE_EXITED || (target->task && other->task != core_page(target->task)))
		return false;
	return other->cpu == target->cpu || other->cpu < 0 || target->cpu < 0;
}

static bool is_free(const struct core_event *event, const struct core_target *target)
{
	if (event->kind != CORE_TRACE)
		return true;
	for (uint32_t i = 1; i <= core_tree()->made; i++)
		if (is_in_the_way(core_event(i), target))
			return false;
	return true;
}

/* A probe has one counter in the program, whoever has opened it. */
static bool has_other_counter(const struct core_event *event)
{
	if (event->kind != CORE_PROBE)
		return false;
	for (uint32_t i = 1; i <= core_tree()->made; i++) {
		const struct core_event *other = core_event(i);

		if (other->state != CORE_FREE && !other->parent && other->kind == CORE_PROBE &&
		    core_is_same_file(&other->file, &event->file) &&
		    other->attr.probe_offset == event->attr.probe_offset &&
		    core_probe_counter(other) != core_probe_counter(event))
			return true;
	}
	return false;
}

/*
 * Some clocks the kernel cannot read wherever a counter or a breakpoint may interrupt it. We could,
 * but nobody expects to get them.
 */
static bool has_clock(const struct perf_event_attr *attr)
{
	enum { REALTIME = 0, MONOTONIC = 1, MONOTONIC_RAW = 4, BOOTTIME = 7, TAI = 11 };

	switch (attr->use_clockid ? attr->clockid : MONOTONIC) {
	case MONOTONIC:
	case MONOTONIC_RAW:
		return true;
	case REALTIME:
	case BOOTTIME:
	case TAI:
		return attr->type == PERF_TYPE_SOFTWARE;
	default:
		return false;
	}
}

/* Processors that have call stacks have them instead of other branches. */
static bool mixes_call_stack(const struct perf_event_attr *attr)
{
	const uint64_t others = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_ANY_CALL |
				PERF_SAMPLE_BRANCH_ANY_RETURN | PERF_SAMPLE_BRANCH_IND_CALL |
				PERF_SAMPLE_BRANCH_ABORT_TX | PERF_SAMPLE_BRANCH_IN_TX |
				PERF_SAMPLE_BRANCH_NO_TX | PERF_SAMPLE_BRANCH_COND |
				PERF_SAMPLE_BRANCH_IND_JUMP | PERF_SAMPLE_BRANCH_CALL;

	return attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK &&
	       attr->branch_sample_type & others;
}

/* Returns the kind. */
static int check_event(const struct core_event *event, const struct core_target *target,
		       const struct core_rights *rights)
{
	const struct perf_event_attr *attr = &event->attr;
	int kind, err;

	if (target->cpu < -1 || target->cpu >= (int)core_settings()->cpus)
		return -EINVAL;
	if (!target->task && (target->cpu == -1 || attr->sigtrap))
		return -EINVAL;
	if (samples_reads_of_copies(attr) && !(attr->sample_type & PERF_SAMPLE_TID))
		return -EINVAL;
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK && has_no_branches(attr))
		return -EOPNOTSUPP;
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK && mixes_call_stack(attr))
		return -EINVAL;
	kind = event->is_kept ? CORE_ZERO : core_encoding(attr);
	if (kind < 0)
		return kind;
	if (event->is_kept && (reads_others(attr) || attr->sigtrap || uses_aux(event)))
		return -EINVAL;
	if (names_vector_registers(attr) ||
	    (core_is_sum((unsigned int)kind) && attr->sample_period))
		return -EOPNOTSUPP;
	if (attr->type == PERF_TYPE_BREAKPOINT && kind == CORE_ZERO && !rights->perfmon)
		return -EPERM;
	err = check_own_aux(event);
	if (err)
		return err;
	if (!target->task && target->error)
		return target->error;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN &&
	    attr->sample_max_stack > core_settings()->max_stack)
		return -EOVERFLOW;
	if (!has_clock(attr))
		return -EINVAL;
	if (target->task && !rights->attach && !rights->perfmon)
		return -EACCES;
	if (!target->task && core_settings()->paranoid > 0 && !rights->perfmon)
		return -EACCES;
	return kind;
}

/* ---- groups ---- */

static bool same_target(const struct core_event *leader, const struct core_target *target)
{
	if (leader->state == CORE_EXITED || leader->cpu != target->cpu ||
	    leader->cgroup != target->cgroup || leader->everybody != !target->task)
		return false;
	return !target->task || leader->task == core_page(target->task);
}

static uint32_t hardware_events(struct core_event *leader)
{
	uint32_t n = 0;

	core_for_each_in_group(event, leader)
		n += event->hardware;
	return n;
}

/* Of ours; what the kernel samples it reads itself. */
static bool any_samples_reads(const struct core_event *event, struct core_event *leader)
{
	bool any = !event->is_kept && samples_reads(&event->attr);

	core_for_each_in_group(member, leader)
		any |= !member->is_kept && samples_reads(&member->attr);
	return any;
}

/*
 * Together with what the kernel counts, which goes on while a group waits for counters; and what it
 * has counted of one task it does not tell, where there are others.
 */
static bool can_keep(const struct core_event *event, const struct core_target *target,
		     struct core_event *leader)
{
	if (!leader->keeps && !event->is_kept)
		return true;
	if (leader->attr.exclusive ||
	    (core_settings()->counters && (hardware_events(leader) || event->hardware)))
		return false;
	return !((event->attr.inherit || !target->task) && any_samples_reads(event, leader));
}

static bool all_can_be_read(struct core_event *leader, const struct core_event *newcomer)
{
	uint32_t members = leader->members + 1;

	core_for_each_in_group(event, leader)
		if (core_read_bytes(event->attr.read_format, members) >= CORE_READ_MAX)
			return false;
	return core_read_bytes(newcomer->attr.read_format, members) < CORE_READ_MAX;
}

static int check_group(const struct core_event *event, const struct core_target *target,
		       struct core_event *leader)
{
	uint32_t counters = core_settings()->counters;

	if (!leader)
		return 0;
	if (leader->leader != core_index(leader) || !core_same_clock(&leader->attr, &event->attr) ||
	    !same_target(leader, target) || event->attr.exclusive || event->attr.pinned)
		return -EINVAL;
	if (!can_keep(event, target, leader))
		return -EINVAL;
	if (counters && hardware_events(leader) + event->hardware > counters)
		return -EINVAL;
	return all_can_be_read(leader, event) ? 0 : -E2BIG;
}

/* ---- putting it there ---- */

/* With the lock of its task. */
static void note_kept(struct core_task *task, struct core_event *event, struct core_event *leader)
{
	event->keeps = event->is_kept;
	if (!leader)
		return;
	leader->keeps |= event->keeps;
	if (leader->keeps && any_samples_reads(event, leader))
		task->reads_kept = true;
}

static void install(struct core_task *task, struct core_event *event, struct core_event *leader)
{
	core_task_lock(task);
	core_still(task);
	core_attach_event(task, event, leader, event->attr.disabled ? CORE_OFF : CORE_INACTIVE);
	note_kept(task, event, leader);
	core_schedule_more(task, leader ? leader : event);
	core_task_unlock(task);
}

/* An event for everybody has a copy in each task. */
static void install_copies(struct core_event *event, struct core_event *leader)
{
	for (uint32_t page = core_tree()->live; page; page = core_task(page)->next_live) {
		struct core_task *task = core_task(page);
		struct core_event *copy_of_leader = NULL;

		if (task->apart)
			continue;
		core_task_lock(task);
		core_still(task);
		if (leader)
			copy_of_leader = core_find_copy(task, leader);
		if (!leader || copy_of_leader)
			core_copy_event(task, event, event, copy_of_leader);
		core_schedule(task);
		core_task_unlock(task);
	}
}

/* @group: the leader's name; 0: the event is to be by itself. @output: of whose ring it is to have;
 * 0: nobody's. What is refused leaves no trace in a group, as copies of that would show. */
static int create(struct core_event *like, const struct core_target *target, uint64_t group,
		  uint64_t output, uint64_t *name)
{
	struct core_event *leader = group ? core_named(group) : NULL, *event;
	struct core_task *caller = core_host_task();
	int err;

	if (target->error)
		return target->error;
	/* Another thread has ended their process: nobody would close what gets no descriptor. */
	if (caller && !caller->live)
		return -ESRCH;
	/* Somebody else may have its page by now. */
	if (target->task &&
	    (!target->task->live || (target->tid && target->task->tid != target->tid)))
		return -ESRCH;
	if (leader && !core_is_named(leader, group))
		return -EBADF;
	err = check_group(like, target, leader);
	if (err)
		return err;
	like->cpu = target->cpu;
	like->target = target->task ? target->task->id : 0;
	if (output && !core_may_write_to(like, core_named(output)))
		return -EINVAL;
	if (uses_aux(like) && (!leader || !core_aux_fills(&leader->attr)))
		return -EINVAL;
	if (!is_free(like, target))
		return -EBUSY;
	if (has_other_counter(like))
		return -EINVAL;
	event = core_event_make();
	if (!event)
		return -ENOMEM;
	memcpy(event->attr_bytes, like->attr_bytes, sizeof(event->attr_bytes));
	event->kind = like->kind;
	event->hardware = like->hardware;
	event->is_kept = like->is_kept;
	event->paused = core_aux_action(like) & CORE_AUX_START_PAUSED;
	event->everybody = !target->task;
	event->cpu = like->cpu;
	event->cgroup = target->cgroup;
	event->file = like->file;
	event->record = like->record;
	core_sampling_init(event);
	if (caller) {
		core_set_opening(caller, event);
		core_own_event(caller, event);
	}
	install(target->task ? target->task : core_everybody(), event, leader);
	if (event->everybody)
		install_copies(event, leader);
	*name = core_name(core_index(event), event->generation);
	return 0;
}

int core_group_check(uint64_t group)
{
	return core_named(group)->state == CORE_EXITED ? -ENODEV : 0;
}

int core_open(const struct perf_event_attr *attr, const struct core_target *target, uint64_t group,
	      unsigned long flags, const struct core_rights *rights, uint64_t *name)
{
	const uint64_t leader = flags & PERF_FLAG_FD_NO_GROUP ? 0 : group;
	const uint64_t output = flags & PERF_FLAG_FD_OUTPUT ? group : 0;
	struct core_target where = *target;
	struct core_event event = {0};
	int kind, err;

	if (group && core_group_check(group))
		return -ENODEV;
	memcpy(event.attr_bytes, attr, CORE_ATTR_SIZE);
	if (where.task) {
		where.task = core_task(core_page(where.task));
		if (leader && core_named(leader)->attr.inherit != event.attr.inherit)
			return -EINVAL;
	}
	if (!(event.attr.sample_type & PERF_SAMPLE_BRANCH_STACK))
		event.attr.branch_sample_type = 0;
	event.is_kept = target->kept;
	kind = check_event(&event, &where, rights);
	if (kind < 0)
		return kind;
	event.kind = (uint8_t)kind;
	event.file = target->file;
	event.record = target->record;
	event.hardware = core_encoding_is_hardware(&event.attr);

	core_tree_lock();
	err = create(&event, &where, leader, output, name);
	core_tree_unlock();
	if (err || !output)
		return err;
	err = core_set_output(*name, output);
	if (err)
		core_close(*name);
	return err;
}

void core_opened_by(struct core_task *task, bool kept)
{
	struct core_event *event;

	if (kept) {
		task->opening = 0;
		return;
	}
	core_tree_lock();
	event = core_opening(task);
	if (event)
		core_close_event(event);
	task->opening = 0;
	core_tree_unlock();
}

void core_close(uint64_t name)
{
	struct core_event *event = core_named(name);

	core_tree_lock();
	if (core_is_named(event, name))
		core_close_event(event);
	core_tree_unlock();
}

void core_set_pipe(uint64_t name, uint64_t inode)
{
	struct core_hold hold;

	if (!core_hold(&hold, name))
		return;
	__atomic_store_n(&hold.event->inode, inode, __ATOMIC_RELEASE);
	core_hold_end(&hold);
}

void core_continue(uint64_t name, uint64_t id, const struct core_count *count)
{
	struct core_hold hold;

	if (!core_hold(&hold, name))
		return;
	hold.event->id = id;
	core_count_add(&hold.event->count, count);
	hold.event->before = *count;
	core_hold_end(&hold);
}

void core_opened_for(uint64_t name, uint32_t creator, uint64_t id)
{
	struct core_event *event = core_named(name);

	core_tree_lock();
	if (core_is_named(event, name)) {
		core_disown_event(event);
		if (core_task(creator)->live && core_task(creator)->id == id)
			core_own_event(core_task(creator), event);
	}
	core_tree_unlock();
}

uint64_t core_event_id(uint64_t name)
{
	struct core_hold hold;
	uint64_t id;

	if (!core_hold(&hold, name))
		return 0;
	id = hold.event->id;
	core_hold_end(&hold);
	return id;
}
