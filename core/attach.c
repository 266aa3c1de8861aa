// SPDX-License-Identifier: MIT
#include "core/attach.h"

#include <string.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/output.h"
#include "core/schedule.h"

/* ---- lists by index ---- */

/*
 * The word that leads to @index in a list that begins with @word, of events that go on at a member.
 */
#define find_link(word, index, member)                                                             \
	({                                                                                         \
		uint32_t *link = (word);                                                           \
		while (*link && *link != (index))                                                  \
			link = &core_event(*link)->member;                                         \
		link;                                                                              \
	})

/* The word behind the last event of @task, or of those that it opened. To go there from the first
 * one would make each event take the longer to open the more there are. */
static uint32_t *end_of_events(struct core_task *task)
{
	struct core_event *last = core_event_or_null(task->last);
	const bool is = last && last->task == core_page(task) && last->state != CORE_FREE &&
			last->state != CORE_EXITED && !last->next;

	return is ? &last->next : find_link(&task->events, 0, next);
}

static uint32_t *end_of_created(struct core_task *creator)
{
	struct core_event *last = core_event_or_null(creator->last_created);
	const bool is = last && last->creator == core_page(creator) && last->state != CORE_FREE &&
			!last->next_created;

	return is ? &last->next_created : find_link(&creator->created, 0, next_created);
}

static void unlink_from(uint32_t *link, uint32_t next)
{
	if (*link)
		*link = next;
}

/*
 * Where a thread runs it looks up itself, and only while some event depends on it: the first such
 * event brings it to look.
 */
static void bind(struct core_task *task)
{
	if (task->bound)
		return;
	task->bound = true;
	task->kick = true;
	core_task_change(task);
}

/* What can be concluded from the events of the list; while some are left it may be too much. */
void core_note_event(struct core_task *task, const struct core_event *event)
{
	task->software |= core_kind_bit(event->kind) & CORE_KINDS_SOFTWARE;
	task->switches |= event->attr.context_switch;
	/* Alone, mmap2 asks for nothing. */
	task->mappings |= event->attr.mmap | event->attr.mmap_data;
	task->exclusive |= event->attr.exclusive;
	if (event->cpu >= 0)
		bind(task);
	task->grouped |= event->cgroup != 0;
}

void core_attach_event(struct core_task *task, struct core_event *event, struct core_event *leader,
		       enum core_state state)
{
	uint32_t index = core_index(event), *end = end_of_events(task);

	__atomic_store_n(&event->task, core_page(task), __ATOMIC_RELAXED);
	event->target = task->id;
	event->leader = leader ? core_index(leader) : index;
	event->next = 0;
	core_set_state(event, state); /* it is there */
	*end = index;
	task->last = index;
	if (leader) {
		*find_link(&leader->next_member, 0, next_member) = index;
		leader->members++;
		leader->regrouped++;
	}
	core_note_event(task, event);
	core_look(task); /* perhaps at kinds that nobody had asked for before */
	event->stamp = task->now;
}

void core_detach_event(struct core_task *task, struct core_event *event)
{
	uint32_t index = core_index(event);

	if (task->turn == index)
		task->turn = event->next;
	unlink_from(find_link(&task->events, index, next), event->next);
	if (!task->events) {
		task->software = 0;
		task->exclusive = false;
		task->bound = false;
		task->switches = false;
		task->mappings = false;
		task->reads_kept = false;
		task->grouped = false;
	}
}

static void disband(const struct core_task *task, struct core_event *leader)
{
	uint32_t next = leader->next_member;

	leader->next_member = 0;
	leader->members = 0;
	while (next) {
		struct core_event *member = core_event(next);

		/* Its times went with the leader's until now. */
		if (task)
			core_count_times(task, member);
		next = member->next_member;
		member->next_member = 0;
		member->leader = core_index(member);
	}
}

void core_leave_group(const struct core_task *task, struct core_event *event)
{
	uint32_t index = core_index(event);
	struct core_event *leader = core_leader(event);

	if (leader == event) {
		disband(task, event);
		return;
	}
	unlink_from(find_link(&leader->next_member, index, next_member), event->next_member);
	leader->members--;
	leader->regrouped++;
	event->next_member = 0;
	event->leader = index;
}

/* ---- copies ---- */

void core_add_child(struct core_event *event, struct core_event *copy)
{
	copy->previous_child = 0;
	copy->next_child = event->children;
	if (event->children)
		core_event(event->children)->previous_child = core_index(copy);
	event->children = core_index(copy);
}

static void remove_child(struct core_event *event, struct core_event *copy)
{
	if (copy->next_child)
		core_event(copy->next_child)->previous_child = copy->previous_child;
	if (copy->previous_child)
		core_event(copy->previous_child)->next_child = copy->next_child;
	else
		event->children = copy->next_child;
}

struct core_event *core_copy_event(struct core_task *task, struct core_event *event,
				   const struct core_event *like, struct core_event *leader)
{
	struct core_event *copy;

	event = core_opened(event);
	copy = core_event_make();
	if (!copy)
		return NULL;

	memcpy(copy->attr_bytes, event->attr_bytes, sizeof(copy->attr_bytes));
	copy->kind = event->kind;
	copy->hardware = event->hardware;
	copy->everybody = event->everybody;
	copy->cpu = event->cpu;
	copy->cgroup = event->cgroup;
	copy->file = event->file;
	copy->record = event->record;
	copy->parent = core_index(event);
	copy->paused = like->paused;
	core_sampling_init(copy);
	core_attach_event(task, copy, leader, core_enabled(like) ? CORE_INACTIVE : CORE_OFF);
	core_add_child(event, copy);
	return copy;
}

void core_fold_copy(struct core_event *copy)
{
	struct core_event *event = core_opened(copy);
	struct core_count count = core_count_of_copy(copy);

	core_count_never_less(&count.enabled, &copy->told_enabled);
	core_count_never_less(&count.running, &copy->told_running);
	/* First, so that nothing is ever counted twice. */
	core_set_state(copy, CORE_FREE);
	core_count_add(&event->ended, &count);
	remove_child(event, copy);
	core_event_free(copy);
}

struct core_event *core_find_copy(const struct core_task *task, const struct core_event *event)
{
	core_for_each_event(copy, task)
		if (copy->parent == core_index(event))
			return copy;
	return NULL;
}

/* ---- who opened it ---- */

void core_set_opening(struct core_task *task, const struct core_event *event)
{
	task->opening_generation = event->generation;
	__atomic_store_n(&task->opening, core_index(event), __ATOMIC_RELEASE);
}

struct core_event *core_opening(const struct core_task *task)
{
	struct core_event *event = core_event_or_null(task->opening);

	if (!event || event->state == CORE_FREE || event->generation != task->opening_generation)
		return NULL;
	return event;
}

void core_own_event(struct core_task *creator, struct core_event *event)
{
	uint32_t *end = end_of_created(creator);

	event->creator = core_page(creator);
	event->name_space = creator->name_space;
	event->next_created = 0;
	*end = core_index(event);
	creator->last_created = core_index(event);
}

void core_disown_events(struct core_task *creator)
{
	while (creator->created) {
		struct core_event *event = core_event(creator->created);

		creator->created = event->next_created;
		event->next_created = 0;
		event->creator = 0;
	}
}

void core_disown_event(struct core_event *event)
{
	struct core_task *creator = core_task(event->creator);

	if (!event->creator)
		return;
	unlink_from(find_link(&creator->created, core_index(event), next_created),
		    event->next_created);
	event->creator = 0;
}

/* ---- the end ---- */

/* Off its task and out of its group. */
static void leave(struct core_event *event)
{
	struct core_task *task = core_event_lock(event);

	if (task) {
		if (event->state == CORE_ACTIVE)
			core_count_out(task, event, CORE_OFF);
		core_detach_event(task, event);
	}
	core_leave_group(task, event);
	core_set_state(event, CORE_EXITED);
	if (task) {
		core_schedule(task);
		core_task_unlock(task);
	}
}

void core_release_event(struct core_event *event)
{
	while (event->children) {
		struct core_event *copy = core_event(event->children);

		leave(copy);
		remove_child(event, copy);
		core_event_free(copy);
	}
	leave(event);
	core_disown_event(event);
	if (event->everybody)
		core_schedule_all();
	core_ring_leave(event);
	core_event_free(event);
}

void core_close_event(struct core_event *event)
{
	event->closed = true;
	if (!event->maps) /* core_unmap_ring() ends it otherwise */
		core_release_event(event);
}
