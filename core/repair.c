// SPDX-License-Identifier: MIT
#include "core/repair.h"

#include "core/arena.h"
#include "core/attach.h"
#include "core/core.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/ring.h"
#include "core/schedule.h"
#include "core/views.h"

#define for_each_index(index)                                                                      \
	for (uint32_t index = 1, made_ = core_tree()->made; index <= made_; index++)

#define for_each_page(page)                                                                        \
	for (uint32_t page = 1, pages_ = core_tree()->pages; page <= pages_; page++)

static bool is_free(const struct core_event *event)
{
	return event->state == CORE_FREE;
}

/* ---- tasks ---- */

static void link_tasks(void)
{
	core_tree()->live = 0;
	for_each_page(page)
		if (core_task(page)->live)
			core_link_live(core_task(page));
}

/* ---- what became of each event ---- */

/* It was being ended with its task, which is gone: a copy with it. */
static void end_with_task(struct core_event *event)
{
	event->task = 0;
	core_set_state(event, event->parent ? CORE_FREE : CORE_EXITED);
}

static bool leads(const struct core_event *event, const struct core_event *member)
{
	return !is_free(event) && event->leader == core_index(event) &&
	       (event->task == member->task || event->state == CORE_EXITED ||
		member->state == CORE_EXITED);
}

static void judge(struct core_event *event)
{
	const bool of_task = event->state != CORE_EXITED && (!event->everybody || event->parent);

	if (event->parent && is_free(core_event(event->parent)))
		core_set_state(event, CORE_FREE);
	else if (of_task && !core_task(event->task)->live)
		end_with_task(event);
	if (event->state == CORE_EXITED)
		event->task = 0;
	if (event->creator && !core_task(event->creator)->live)
		event->creator = 0;
	event->maps = 0;
}

static void judge_all(void)
{
	for_each_index(index)
		if (!is_free(core_event(index)))
			judge(core_event(index));
	for_each_index(index) {
		struct core_event *event = core_event(index);

		if (!is_free(event) && !leads(core_leader(event), event))
			event->leader = index;
	}
}

/* ---- lists ---- */

/* Of events that go on at the member at that offset. */
struct list {
	size_t next;
	bool (*has)(const struct core_event *event, uint32_t whose);
	uint32_t mark; /* core_event.mark of those that are in one; a kind at a time */
};

static uint32_t *next_of(const struct list *list, uint32_t index)
{
	return (uint32_t *)((char *)core_event(index) + list->next);
}

/* Takes out of the list at @link what is not @whose, and marks the rest. */
static uint32_t *sift(const struct list *list, uint32_t *link, uint32_t whose)
{
	const uint32_t made = core_tree()->made;

	for (uint32_t left = made; *link; left--) {
		struct core_event *event = core_event(*link);

		if (!left || *link > made || event->mark == list->mark) {
			*link = 0;
		} else if (!list->has(event, whose)) {
			*link = *next_of(list, *link);
		} else {
			event->mark = list->mark;
			link = next_of(list, *link);
		}
	}
	return link;
}

/* @event belongs in the list at @link, and was in none. */
static void append(const struct list *list, uint32_t *link, uint32_t index)
{
	while (*link)
		link = next_of(list, *link);
	*next_of(list, index) = 0;
	core_event(index)->mark = list->mark;
	*link = index;
}

static bool is_missing(const struct list *list, uint32_t index, uint32_t whose)
{
	const struct core_event *event = core_event(index);

	return event->mark != list->mark && list->has(event, whose);
}

static struct list list_of(size_t next, bool (*has)(const struct core_event *, uint32_t))
{
	return (struct list){next, has, ++core_tree()->mark};
}

static bool is_of_task(const struct core_event *event, uint32_t page)
{
	if (is_free(event) || event->state == CORE_EXITED || event->task != page)
		return false;
	return page || (event->everybody && !event->parent);
}

static bool is_member(const struct core_event *event, uint32_t leader)
{
	return !is_free(event) && event->leader == leader && core_index(event) != leader;
}

static bool was_created_by(const struct core_event *event, uint32_t page)
{
	return !is_free(event) && !event->parent && event->creator == page;
}

static bool writes_to(const struct core_event *event, uint32_t ring)
{
	return !is_free(event) && event->ring == ring;
}

static void mend_task(const struct list *list, uint32_t page)
{
	struct core_task *task = core_task(page);

	core_lock(&task->lock);
	sift(list, &task->events, page);
	task->turn = 0;
	core_unlock(&task->lock);
}

static void mend_tasks(void)
{
	const struct list list = list_of(offsetof(struct core_event, next), is_of_task);

	mend_task(&list, 0);
	for_each_page(page)
		if (core_task(page)->live)
			mend_task(&list, page);
	for_each_index(index) {
		struct core_event *event = core_event(index);
		struct core_task *task = core_task(event->task);

		if (!is_of_task(event, event->task))
			continue;
		core_lock(&task->lock);
		if (is_missing(&list, index, event->task))
			append(&list, &task->events, index);
		core_note_event(task, event);
		core_unlock(&task->lock);
	}
}

static void mend_created(void)
{
	const struct list list = list_of(offsetof(struct core_event, next_created), was_created_by);

	for_each_page(page)
		if (core_task(page)->live)
			sift(&list, &core_task(page)->created, page);
	for_each_index(index) {
		const uint32_t creator = core_event(index)->creator;

		if (creator && is_missing(&list, index, creator))
			append(&list, &core_task(creator)->created, index);
	}
}

static void mend_groups(void)
{
	const struct list members = list_of(offsetof(struct core_event, next_member), is_member);

	for_each_index(index) {
		struct core_event *event = core_event(index);

		event->members = 0;
		if (is_free(event) || event->leader != index)
			event->next_member = event->leader == index ? 0 : event->next_member;
		else
			sift(&members, &event->next_member, index);
	}
	for_each_index(index) {
		struct core_event *event = core_event(index);

		if (is_free(event) || event->leader == index)
			continue;
		if (is_missing(&members, index, event->leader))
			append(&members, &core_leader(event)->next_member, index);
		core_leader(event)->members++;
	}
}

static void mend_copies(void)
{
	for_each_index(index)
		core_event(index)->children = 0;
	for_each_index(index) {
		struct core_event *event = core_event(index);

		if (!is_free(event) && event->parent)
			core_add_child(core_event(event->parent), event);
	}
}

static void mend_spare(void)
{
	struct core_tree *tree = core_tree();
	uint32_t events = 0;

	tree->spare = 0;
	for (uint32_t index = tree->made; index; index--) {
		struct core_event *event = core_event(index);

		if (is_free(event)) {
			event->next = tree->spare;
			tree->spare = index;
		} else {
			events++;
		}
	}
	__atomic_store_n(&tree->events, events, __ATOMIC_RELAXED);
}

/* ---- rings ---- */

static void mend_rings(void)
{
	const struct list writers = list_of(offsetof(struct core_event, ring_next), writes_to);

	core_views_count();
	core_rings_sift();
	for (uint32_t i = 1; i <= core_rings_made(); i++) {
		struct core_ring *ring = core_ring(i);

		core_lock(&ring->lock);
		sift(&writers, &ring->events, i);
		core_unlock(&ring->lock);
	}
	for_each_index(index) {
		struct core_event *event = core_event(index);

		if (event->ring && is_missing(&writers, index, event->ring))
			append(&writers, &core_ring(event->ring)->events, index);
	}
}

/* ---- what follows ---- */

/* What was wanted may have been said to nobody. */
static void schedule(struct core_task *task)
{
	core_task_lock(task);
	task->kick = true;
	core_task_change(task);
	core_schedule(task);
	core_task_unlock(task);
}

static void schedule_all(void)
{
	schedule(core_everybody());
	for_each_page(page)
		if (core_task(page)->live && core_task(page)->events)
			schedule(core_task(page));
}

static void close_rest(void)
{
	for_each_index(index) {
		struct core_event *event = core_event(index);

		if (!is_free(event) && event->closed && !event->maps)
			core_release_event(event);
	}
}

/* False: not all of it can be looked at from here. */
static bool repair(void)
{
	link_tasks();
	if (!core_host_whole())
		return false;
	judge_all();
	mend_rings();
	mend_tasks();
	mend_created();
	mend_groups();
	mend_copies();
	mend_spare();
	schedule_all();
	close_rest();
	return true;
}

/* ---- the lock ---- */

void core_tree_lock(void)
{
	struct core_tree *tree = core_tree();

	if (core_lock(&tree->lock))
		tree->torn = true;
	if (tree->torn)
		tree->torn = !repair();
}

void core_tree_unlock(void)
{
	core_unlock(&core_tree()->lock);
}

/* ---- who is stopped ---- */

static bool is_of(const uint32_t *lock, uint32_t owner)
{
	return __atomic_load_n(lock, __ATOMIC_ACQUIRE) == owner;
}

bool core_has_lock(uint32_t owner)
{
	const uint32_t pages = core_tree()->pages, rings = core_rings_made();

	if (is_of(&core_tree()->lock, owner))
		return true;
	for (uint32_t page = 0; page <= pages; page++)
		if (is_of(&core_task(page)->lock, owner))
			return true;
	for (uint32_t i = 1; i <= rings; i++)
		if (is_of(&core_ring(i)->lock, owner))
			return true;
	for_each_index(index)
		if (is_of(&core_event(index)->forwarding, owner))
			return true;
	return false;
}
