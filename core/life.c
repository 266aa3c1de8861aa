// SPDX-License-Identifier: MIT
/* How events follow tasks: from fork to exec to exit, and from processor to processor. */
#include <linux/sched.h>
#include <stddef.h>
#include <string.h>

#include "core/arena.h"
#include "core/attach.h"
#include "core/aux.h"
#include "core/core.h"
#include "core/count.h"
#include "core/counter.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/newest.h"
#include "core/output.h"
#include "core/repair.h"
#include "core/schedule.h"
#include "core/still.h"
#include "core/time.h"

/* ---- who lives ---- */

void core_link_live(struct core_task *task)
{
	struct core_tree *tree = core_tree();
	uint32_t page = core_page(task);

	task->previous_live = 0;
	task->next_live = tree->live;
	if (tree->live)
		core_task(tree->live)->previous_live = page;
	tree->live = page;
	if (page > tree->pages)
		tree->pages = page;
	task->live = 1;
}

static void unlink_live(struct core_task *task)
{
	if (task->next_live)
		core_task(task->next_live)->previous_live = task->previous_live;
	if (task->previous_live)
		core_task(task->previous_live)->next_live = task->next_live;
	else
		core_tree()->live = task->next_live;
	task->live = 0;
}

bool core_speaks_for_process(uint32_t page)
{
	for (uint32_t before = 1; before < page; before++)
		if (core_task(before)->live &&
		    core_task(before)->process == core_task(page)->process)
			return false;
	return true;
}

/* Whether there are any, and can be looked at from here. */
static bool has_events(void)
{
	return core_nr_events() && core_host_whole();
}

/* ---- begin ---- */

static bool is_inherited(const struct core_event *event, uint64_t flags)
{
	const struct perf_event_attr *attr = &event->attr;

	if (!attr->inherit || event->everybody)
		return false;
	if (attr->inherit_thread && !(flags & CLONE_THREAD))
		return false;
	/* It could not be handled. */
	return !(attr->sigtrap && flags & CLONE_CLEAR_SIGHAND);
}

static void copy_group(struct core_task *task, struct core_event *leader)
{
	struct core_event *copy = core_copy_event(task, leader, leader, NULL);

	if (!copy)
		return;
	core_for_each_in_group(event, core_event_or_null(leader->next_member))
		core_copy_event(task, event, event, copy);
	copy->regrouped = leader->regrouped;
}

/*
 * Groups of @from's list that @task is to have. A list is not longer than what can be copied: what
 * there is no room for is not measured.
 */
static void copy_groups(struct core_task *task, struct core_task *from, uint64_t flags)
{
	core_for_each_event(event, from) {
		if (event->leader != core_index(event))
			continue;
		if (from->everybody || is_inherited(event, flags))
			copy_group(task, event);
	}
}

void core_task_clear(struct core_task *task)
{
	char *rest = (char *)&task->lock + sizeof(task->lock);

	memset(task, 0, offsetof(struct core_task, lock));
	memset(rest, 0, (size_t)((char *)(task + 1) - rest));
}

/* CLONE_NEWTIME is a part of the signal's number to clone(2), but of one that there is not. */
#define NAMESPACES                                                                                 \
	(CLONE_NEWTIME | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |             \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

bool core_task_begin(struct core_task *task, struct core_task *parent, uint64_t flags)
{
	core_counters_init(task);
	task->cpu = -1;
	task->parent = parent ? core_page(parent) : 0;
	task->parent_id = parent ? parent->id : 0;
	task->first = parent && flags & CLONE_THREAD ? parent->first : core_page(task);
	task->moved = flags & NAMESPACES || (parent && parent->moved);
	core_tree_lock();
	if (parent && !parent->live) {
		core_tree_unlock();
		return false;
	}
	task->id = ++core_tree()->last_task;
	task->process = parent && flags & CLONE_THREAD ? parent->process : task->id;
	if (parent)
		task->name_space = parent->name_space;
	core_link_live(task);
	task->apart = parent && parent->apart && flags & CLONE_THREAD;
	if (has_events()) {
		core_task_lock(task);
		if (parent)
			copy_groups(task, parent, flags);
		if (!task->apart)
			copy_groups(task, core_everybody(), flags);
		core_schedule(task);
		core_task_unlock(task);
	}
	core_tree_unlock();
	return true;
}

void core_task_apart(uint64_t process)
{
	core_tree_lock();
	for (uint32_t page = core_tree()->live; page; page = core_task(page)->next_live)
		if (core_task(page)->process == process)
			core_task(page)->apart = true;
	core_tree_unlock();
}

/* To the events of its parent, if that still is. With the tree locked. */
static void tell_of_birth(struct core_task *task, bool begun)
{
	struct core_task *parent = core_task(task->parent);

	if (!has_events() || !task->parent)
		return;
	if (parent->live && parent->id == task->parent_id) {
		core_task_lock(parent);
		if (!task->told)
			core_tell_fork(parent, task);
		if (!task->told_where && (begun || !task->moved))
			core_tell_begun(parent, task);
		core_task_unlock(parent);
	}
	task->told = true;
	task->told_where |= begun || !task->moved;
}

/* The child itself knows better: in a name space of its own it has another number. */
static void set_number(int32_t *number, int32_t pid)
{
	int32_t unknown = 0;

	__atomic_compare_exchange_n(number, &unknown, pid, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

/* Whether its children have the number that it knows them by to whoever watches the run.
 * Elsewhere they tell themselves that they are there, once they know theirs. */
static bool is_of_first(const struct core_task *parent)
{
	return !core_settings()->name_space || parent->name_space == core_settings()->name_space;
}

uint64_t core_task_forked(struct core_task *task, uint64_t id, int32_t pid)
{
	uint64_t process = 0;

	core_tree_lock();
	if (task->live && task->id == id) {
		set_number(&task->pid, pid);
		set_number(&task->tid, pid);
		if (is_of_first(core_task(task->parent))) {
			set_number(&task->first_pid, pid);
			set_number(&task->first_tid, pid);
			tell_of_birth(task, false);
		}
		process = task->events ? task->process : 0;
	}
	core_tree_unlock();
	return process;
}

/* Whether it has not been ended; it is there by now, as who would end it sees with the lock. */
static bool arrive(struct core_task *task)
{
	bool live;

	core_tree_lock();
	live = task->live;
	if (live)
		tell_of_birth(task, true);
	core_tree_unlock();
	return live;
}

bool core_task_begun(struct core_task *task)
{
	if (has_events() && task->parent && !arrive(task))
		return false;
	/* Not before: who binds it looks at where it is, with the lock that this is done without.
	 */
	if (has_events() && task->bound)
		core_task_cpu(task, core_host_cpu());
	/* Nor this: it would be time of no processor. */
	core_clock_start(task);
	if (has_events() && task->switches)
		core_tell_first_run(task);
	return true;
}

/* ---- end ---- */

/* A copy leaves its group, and tells of what it has counted if that was asked for. */
static void retire_copy(const struct core_task *task, struct core_event *copy)
{
	core_count_times(task, copy);
	core_leave_group(task, copy);
	if (copy->attr.inherit_stat)
		core_tell_read(copy);
}

/* A copy is gone with its task: what it has counted is its event's. */
static void end_copy(struct core_event *copy)
{
	struct core_event *event = core_opened(copy);

	core_fold_copy(copy);
	if (event->state == CORE_EXITED && !event->children)
		core_poll_wake(event);
}

/* An event that was opened stays as it is, in its group, until it is closed. */
static void end_opened(struct core_event *event)
{
	event->task = 0;
	if (!event->children)
		core_poll_wake(event);
}

/* What does not measure @task any more, all of it or what was asked for: what stays of a group
 * waits. */
static bool ends(const struct core_event *event, bool exec)
{
	return !exec || (event->attr.remove_on_exec && !event->everybody);
}

static void end_events(struct core_task *task, bool exec)
{
	uint32_t next;

	core_for_each_newest(event, task) {
		if (!ends(event, exec))
			continue;
		core_schedule_off(task, event, CORE_OFF);
		if (event->parent) {
			retire_copy(task, event);
			continue;
		}
		if (exec)
			core_leave_group(task, event);
		core_count_state(task, event, CORE_EXITED);
	}
	for (uint32_t index = task->events; index; index = next) {
		struct core_event *event = core_event(index);

		next = event->next;
		if (!ends(event, exec))
			continue;
		core_detach_event(task, event);
		if (event->parent)
			end_copy(event);
		else
			end_opened(event);
	}
}

/* What it measures, or has opened, may be where nothing is mapped. */
static bool can_be_ended(const struct core_task *task)
{
	return !(task->events || task->created || task->opening || task->tracing) ||
	       core_host_whole();
}

static void end_task(struct core_task *task)
{
	struct core_event *opening = core_opening(task);

	if (opening)
		core_close_event(opening);
	task->opening = 0;
	core_task_lock(task);
	core_trace_end(task);
	if (task->events)
		core_tell_exit(task);
	end_events(task, false);
	core_disown_events(task);
	core_schedule(task);
	core_clock_stop(task);
	unlink_live(task);
	core_task_unlock(task);
}

void core_task_exit(struct core_task *task)
{
	core_tree_lock();
	if (task->live && can_be_ended(task))
		end_task(task);
	core_tree_unlock();
}

void core_task_lost(struct core_task *task, uint64_t process)
{
	core_tree_lock();
	if (task->live && (!process || task->process == process) && !core_host_alive(task) &&
	    can_be_ended(task))
		end_task(task);
	core_tree_unlock();
}

/* ---- exec and names ---- */

static void name(struct core_task *task, const char *comm)
{
	size_t length = 0;

	while (length < sizeof(task->comm) - 1 && comm[length])
		length++;
	memset(task->comm, 0, sizeof(task->comm));
	memcpy(task->comm, comm, length);
}

/*
 * The kernel's events that count for ours see the exec themselves. True: one has to be switched on
 * all the same, as it could not be told in advance.
 */
static bool misses_exec(const struct core_task *task)
{
	bool misses = false;

	core_for_each_event(event, task) {
		if (!event->is_kept || event->parent || !core_enabled(event) ||
		    !core_enabled(core_leader(event)))
			continue;
		misses |= !event->kept_on && !event->kept_on_exec;
		event->kept_on = true;
	}
	return misses;
}

static void on_exec(struct core_task *task)
{
	core_for_each_event(event, task) {
		if (event->everybody || !event->attr.enable_on_exec)
			continue;
		event->attr.enable_on_exec = 0;
		if (event->state == CORE_OFF)
			core_count_state(task, event, CORE_INACTIVE);
	}
	end_events(task, true);
	core_schedule(task);
}

void core_task_exec(struct core_task *task, const char *comm)
{
	bool misses;

	if (!has_events()) {
		name(task, comm);
		return;
	}
	core_tree_lock();
	core_task_lock(task);
	on_exec(task);
	misses = misses_exec(task);
	name(task, comm);
	core_tell_comm(task, task, true);
	core_task_unlock(task);
	core_tree_unlock();
	if (misses)
		core_host_kept(0, true, CORE_KEPT_SWITCH);
}

void core_task_replaced(struct core_task *task, bool is)
{
	core_task_lock(task);
	task->replaced += is ? 1 : -1u;
	/* What it has not been told meanwhile. */
	task->kick |= !is;
	core_task_unlock(task);
}

void core_task_comm(struct core_task *task, struct core_task *named, const char *comm)
{
	core_lock(&task->lock);
	name(named, comm);
	if (task->events)
		core_tell_comm(task, named, false);
	core_unlock(&task->lock);
}

/* ---- where it runs ---- */

static void reschedule(struct core_task *task)
{
	core_task_lock(task);
	core_schedule(task);
	core_task_unlock(task);
}

/*
 * It counts where it leads to, so what stops to count for where it came from is not to see it,
 * unless somebody has looked since. Where the kernel tells of moves, this is one of those.
 */
static void move(struct core_task *task)
{
	const uint64_t known = core_counter_read(task, CORE_CPU_MIGRATIONS);
	bool is_new;

	core_task_lock(task);
	core_counter_raise(task, CORE_CPU_MIGRATIONS, ++task->moves);
	is_new = core_counter_read(task, CORE_CPU_MIGRATIONS) != known;
	task->counter[CORE_CPU_MIGRATIONS] -= is_new;
	core_schedule(task);
	task->counter[CORE_CPU_MIGRATIONS] += is_new;
	core_task_unlock(task);
}

void core_task_cpu(struct core_task *task, int cpu)
{
	const bool moved = task->cpu >= 0;

	if (cpu == task->cpu)
		return;
	task->cpu = cpu;
	if (moved)
		move(task);
	else if (task->bound)
		reschedule(task);
}

void core_task_regroup(struct core_task *task)
{
	if (task->grouped)
		reschedule(task);
}

/* ---- in the runtime, before the code goes on ---- */

static uint64_t due_kinds(const struct core_task *task)
{
	uint64_t due = 0;

	core_for_each_kind(kind, task->counting_down)
		if (task->counter[kind] >= 0)
			due |= CORE_KIND_BIT(kind);
	return due;
}

void core_task_update(struct core_task *task)
{
	uint64_t due;

	if (!core_task_changed(task) && !task->counting_down)
		return;
	/* Whoever wants more from now on says so again. */
	core_task_followed(task);
	core_still_wait(task);
	if (task->turn_due)
		core_take_turn(task);
	if (task->tracing || __atomic_load_n(&task->extras, __ATOMIC_RELAXED) & CORE_EXTRA_TRACE)
		core_trace_follow(task);
	if (!__atomic_load_n(&task->sampled, __ATOMIC_RELAXED) && !task->counting_down)
		return;
	core_task_lock(task);
	core_counters_program(task);
	due = due_kinds(task);
	core_task_unlock(task);
	core_for_each_kind(kind, due)
		core_overflow(task, kind);
}
