// SPDX-License-Identifier: MIT
/* ioctl(2) and prctl(2): what is done to one event, to its group, and to the copies of each. */
#include <errno.h>
#include <string.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/encoding.h"
#include "core/hold.h"
#include "core/host.h"
#include "core/output.h"
#include "core/repair.h"
#include "core/schedule.h"
#include "core/still.h"

/* ---- what is done, with the lock of the event's task ---- */

/* To an event, and to a whole group at once: its members are looked at together, since regions of
 * programs begin and end with that. */
struct action {
	void (*event)(const struct core_task *task, struct core_event *event);
	void (*group)(const struct core_task *task, struct core_event *leader);
	/* States stay as they are: there is nothing to schedule, and it may be done when the task
	 * has ended, too: then @task is NULL. */
	bool counts_alone;
};

static bool is_off(const struct core_event *event)
{
	return event->state == CORE_OFF || event->state == CORE_ERROR;
}

static void enable(const struct core_task *task, struct core_event *event)
{
	event->missed = false;
	if (is_off(event))
		core_count_state(task, event, CORE_INACTIVE);
}

static void enable_group(const struct core_task *task, struct core_event *leader)
{
	const bool off = is_off(leader);

	/* No time has passed for who is off, and none for anybody whose leader is. */
	core_for_each_in_group(event, leader) {
		event->missed = false;
		if (off || is_off(event))
			event->stamp = task->now;
		if (is_off(event))
			core_set_state(event, CORE_INACTIVE);
	}
}

void core_switch_off(const struct core_task *task, struct core_event *event)
{
	if (!core_enabled(event) && event->state != CORE_ERROR)
		return;
	core_schedule_off(task, event, CORE_OFF);
	core_count_state(task, event, CORE_OFF);
}

static void switch_off_group(const struct core_task *task, struct core_event *leader)
{
	if (leader->state == CORE_ACTIVE) {
		/* So does each of them that is enabled. */
		core_count_group_out(task, leader, CORE_OFF);
		return;
	}
	/* As it was until now, before any of it changes: the times of all go with the leader. */
	core_for_each_in_group(event, leader)
		core_count_times(task, event);
	core_for_each_in_group(event, leader)
		if (core_enabled(event) || event->state == CORE_ERROR)
			core_set_state(event, CORE_OFF);
}

static void reset_group(const struct core_task *task, struct core_event *leader)
{
	core_for_each_in_group(event, leader)
		core_count_reset(task, event);
}

static const struct action enabling = {enable, enable_group};
static const struct action disabling = {core_switch_off, switch_off_group};
static const struct action resetting = {core_count_reset, reset_group, .counts_alone = true};

/* ---- to whom ---- */

static void act_on(struct core_task *task, struct core_event *event, bool group,
		   const struct action *what)
{
	struct core_event *leader = core_leader(event);

	if (!task && !what->counts_alone)
		return;
	if (group)
		what->group(task, leader);
	else
		what->event(task, event);
	if (task && !what->counts_alone)
		core_schedule_group(task, leader);
}

/* With the tree's lock. */
static void act_here(struct core_event *event, const struct action *what)
{
	struct core_task *task = core_event_lock(event);

	core_still(task);
	act_on(task, event, false, what);
	if (task)
		core_task_unlock(task);
}

static void act_on_copies(struct core_event *event, const struct action *what)
{
	core_for_each_copy(copy, event)
		act_here(copy, what);
}

/* With the tree's lock: it keeps lists of copies and groups as they are. */
static void act_elsewhere(struct core_event *event, bool group, const struct action *what)
{
	if (group) {
		core_for_each_in_group(member, core_leader(event))
			act_on_copies(member, what);
	} else {
		act_on_copies(event, what);
	}
	if (event->everybody)
		core_schedule_all();
}

/* A member is on when it and its leader are. */
static void act_on_kept(uint64_t name, bool group, const struct action *what)
{
	if (what->counts_alone)
		core_host_kept(name, group, CORE_KEPT_RESET);
	else
		core_host_kept(name, true, CORE_KEPT_SWITCH);
}

static int act(uint64_t name, bool group, const struct action *what)
{
	struct core_hold hold;
	bool keeps;

	if (!core_hold(&hold, name))
		return -EBADF;
	keeps = core_leader(hold.event)->keeps;
	core_still(hold.task);
	act_on(hold.task, hold.event, group, what);
	core_hold_leave_task(&hold);
	if (hold.tree && core_may_have_copies(hold.event))
		act_elsewhere(hold.event, group, what);
	core_hold_end(&hold);
	if (keeps)
		act_on_kept(name, group, what);
	return 0;
}

int core_enable(uint64_t event, bool group)
{
	return act(event, group, &enabling);
}

int core_disable(uint64_t event, bool group)
{
	return act(event, group, &disabling);
}

int core_reset(uint64_t event, bool group)
{
	return act(event, group, &resetting);
}

/* @task may be NULL: it has ended. */
static void leave(struct core_task *task)
{
	if (!task)
		return;
	core_schedule(task);
	core_task_unlock(task);
}

/* Most programs measure themselves: then it is one task, which is looked at once. */
static void act_on_created(const struct core_task *creator, const struct action *what)
{
	struct core_task *locked = NULL;

	for (uint32_t index = creator->created; index; index = core_event(index)->next_created) {
		struct core_event *event = core_event(index);

		if (!locked || event->task != core_page(locked)) {
			leave(locked);
			locked = core_event_lock(event);
			core_still(locked);
		}
		if (locked)
			what->event(locked, event);
	}
	leave(locked);
}

int core_prctl(struct core_task *task, bool on)
{
	const struct action *what = on ? &enabling : &disabling;
	bool everybody = false, keeps = false;

	core_tree_lock();
	act_on_created(task, what);
	for (uint32_t index = task->created; index; index = core_event(index)->next_created) {
		act_on_copies(core_event(index), what);
		everybody |= core_event(index)->everybody;
		keeps |= core_event(index)->keeps;
	}
	if (everybody)
		core_schedule_all();
	core_tree_unlock();
	if (keeps)
		core_host_kept(0, true, CORE_KEPT_SWITCH);
	return 0;
}

/* ---- sampling ---- */

/* @task may be NULL: it has ended. */
static int refresh(struct core_task *task, struct core_event *event, int overflows)
{
	if (event->attr.inherit || !event->attr.sample_period)
		return -EINVAL;
	/* The kernel stops it in the middle of its work: members of ours would go on for a
	 * moment. */
	if (event->is_kept && event->members)
		return -EINVAL;
	if (!task)
		return 0;
	event->limit = (int32_t)((uint32_t)event->limit + (uint32_t)overflows);
	event->refreshed += (uint32_t)overflows;
	enable(task, event);
	core_schedule(task);
	return 0;
}

int core_refresh(uint64_t name, int overflows)
{
	struct core_hold hold;
	bool keeps;
	int error;

	/* Its overflows until now are not of those that there are to be from now on. */
	if (core_named(name)->is_kept)
		core_host_kept(name, false, CORE_KEPT_READ);
	if (!core_hold(&hold, name))
		return -EBADF;
	core_still(hold.task);
	error = refresh(hold.task, hold.event, overflows);
	keeps = hold.event->keeps;
	core_hold_end(&hold);
	if (!error && keeps)
		core_host_kept(name, true, CORE_KEPT_SWITCH);
	return error;
}

static int set_period(struct core_task *task, struct core_event *event, uint64_t period)
{
	if (!event->attr.sample_period || !period)
		return -EINVAL;
	if (event->attr.freq ? period > core_settings()->max_sample_rate : period >> 63)
		return -EINVAL;
	if (!task)
		return 0;
	event->attr.sample_period = period; /* or frequency: one word */
	core_sampling_restart(task, event);
	core_schedule(task);
	return 0;
}

int core_set_period(uint64_t name, uint64_t period)
{
	struct core_hold hold;
	int error;

	if (!core_hold(&hold, name))
		return -EBADF;
	core_still(hold.task);
	error = set_period(hold.task, hold.event, period);
	core_hold_end(&hold);
	return error;
}

/* ---- breakpoints ---- */

/* Only where it is, whether it is on, and what its signals say may change. */
static bool is_another_place(const struct core_event *event, const struct perf_event_attr *attr)
{
	struct core_event moved = {0};

	memcpy(moved.attr_bytes, event->attr_bytes, CORE_ATTR_SIZE);
	moved.attr.bp_addr = attr->bp_addr;
	moved.attr.bp_type = attr->bp_type;
	moved.attr.bp_len = attr->bp_len;
	moved.attr.disabled = attr->disabled;
	moved.attr.sig_data = attr->sig_data;
	return !memcmp(moved.attr_bytes, attr, CORE_ATTR_SIZE);
}

static void move(struct core_event *event, const struct perf_event_attr *attr, int kind)
{
	struct core_task *task = core_event_lock(event);

	core_still(task);
	if (task)
		core_switch_off(task, event);
	memcpy(event->attr_bytes, attr, CORE_ATTR_SIZE);
	event->kind = (uint8_t)kind;
	if (!task)
		return;
	if (!attr->disabled)
		enable(task, event);
	core_schedule(task);
	core_task_unlock(task);
}

/* With the tree's lock. */
static void act_on_everybody(struct core_event *event, const struct action *what)
{
	act_here(event, what);
	act_elsewhere(event, false, what);
}

/* What a refused change does: not to copies, but that events for everybody are nothing else. */
static void restart(struct core_event *event)
{
	void (*const act_so)(struct core_event * event, const struct action *what) =
		event->everybody ? act_on_everybody : act_here;

	act_so(event, &disabling);
	if (!event->attr.disabled)
		act_so(event, &enabling);
}

/* With the tree's lock. */
static int modify(struct core_event *event, const struct perf_event_attr *attr)
{
	int kind;

	if (attr->type != event->attr.type)
		return -EINVAL;
	if (attr->type != PERF_TYPE_BREAKPOINT) /* to the kernel, clocks have become of another */
		return core_kind_bit(event->kind) & CORE_KINDS_CLOCKS ? -EINVAL : -EOPNOTSUPP;
	kind = core_encoding(attr);
	if (kind < 0 || !is_another_place(event, attr)) {
		restart(event);
		return kind < 0 ? kind : -EINVAL;
	}
	move(event, attr, kind);
	core_for_each_copy(copy, event)
		move(copy, attr, kind);
	return 0;
}

int core_modify(uint64_t name, const struct perf_event_attr *attr)
{
	struct core_event *event = core_named(name);
	bool keeps = false;
	int error = -EBADF;

	core_tree_lock();
	if (core_is_named(event, name)) {
		error = modify(event, attr);
		keeps = core_leader(event)->keeps;
	}
	core_tree_unlock();
	if (keeps)
		core_host_kept(name, true, CORE_KEPT_SWITCH);
	return error;
}
