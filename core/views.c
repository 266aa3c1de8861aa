// SPDX-License-Identifier: MIT
#include "core/views.h"

#include "core/arena.h"
#include "core/core.h"
#include "core/lock.h"
#include "core/pages.h"

static struct core_view *views(void)
{
	return core_arena(CORE_VIEWS_AT);
}

uint32_t core_views_owner(void)
{
	uint32_t *last = &core_tree()->last_owner, owner;

	do
		owner = __atomic_add_fetch(last, 1, __ATOMIC_RELAXED);
	while (!owner);
	return owner;
}

/* With the tree's lock: some mapping of @event, or an unused place, by @owner 0. */
static struct core_view *find(uint32_t owner, uint32_t event)
{
	for (uint32_t i = 0; i < core_tree()->views; i++)
		if (views()[i].owner == owner && (!owner || views()[i].event == event))
			return &views()[i];
	return NULL;
}

bool core_view_begin(uint32_t owner, uint32_t event)
{
	struct core_tree *tree = core_tree();
	struct core_view *place;

	core_lock(&tree->lock);
	place = find(0, 0);
	if (!place && tree->views < CORE_VIEWS)
		place = &views()[tree->views++];
	if (place) {
		place->event = event;
		place->generation = core_event(event)->generation;
		place->owner = owner; /* last, so that there is none by halves */
	}
	core_unlock(&tree->lock);
	return place;
}

void core_view_end(uint32_t owner, uint32_t event)
{
	struct core_view *view;

	core_lock(&core_tree()->lock);
	view = find(owner, event);
	if (view)
		view->owner = 0;
	core_unlock(&core_tree()->lock);
	if (view)
		core_ring_unmap(event, 0);
}

/* Some event that @owner has mapped, which it has not any more; 0: there is none. */
static uint32_t take_any(uint32_t owner)
{
	uint32_t event = 0;

	core_lock(&core_tree()->lock);
	for (uint32_t i = 0; i < core_tree()->views && !event; i++) {
		struct core_view *view = &views()[i];

		if (view->owner != owner)
			continue;
		view->owner = 0;
		if (core_event(view->event)->generation == view->generation)
			event = view->event;
	}
	core_unlock(&core_tree()->lock);
	return event;
}

void core_views_end(uint32_t owner)
{
	uint32_t event;

	while ((event = take_any(owner)))
		core_ring_unmap(event, 0);
}
