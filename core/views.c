// SPDX-License-Identifier: MIT
#include "core/views.h"

#include <errno.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/hold.h"
#include "core/host.h"
#include "core/pages.h"
#include "core/repair.h"
#include "core/ring.h"

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

static bool is_of(const struct core_view *view, uint64_t event, bool aux)
{
	const uint32_t generation = (uint32_t)(event >> 32);

	return view->event == (uint32_t)event && view->aux == aux &&
	       (!generation || view->generation == generation);
}

/* With the tree's lock: some mapping of @event, or an unused place, by @owner 0. */
static struct core_view *find(uint32_t owner, uint64_t event, bool aux)
{
	for (uint32_t i = 0; i < core_tree()->views; i++)
		if (views()[i].owner == owner && (!owner || is_of(&views()[i], event, aux)))
			return &views()[i];
	return NULL;
}

static struct core_view *unused(void)
{
	struct core_tree *tree = core_tree();
	struct core_view *place = find(0, 0, false);

	if (!place && tree->views < CORE_VIEWS)
		place = &views()[tree->views++];
	return place;
}

int64_t core_view_begin(uint32_t owner, uint64_t name, uint64_t offset, uint64_t size,
			bool writable, const struct core_rights *rights)
{
	struct core_event *event = core_named(name);
	struct core_view *place;
	int64_t at = -ENOMEM;

	core_tree_lock();
	place = unused();
	if (!core_is_named(event, name))
		at = -EBADF;
	else if (place)
		at = core_map_ring(event, offset, size, writable, rights);
	if (!at) {
		const struct core_ring *ring = core_ring(event->ring);

		at = (int64_t)(offset ? ring->aux.at : ring->at);
		place->event = core_index(event);
		place->aux = offset != 0;
		place->generation = event->generation;
		/* Last, so that there is none by halves. */
		__atomic_store_n(&place->owner, owner, __ATOMIC_RELEASE);
		event->maps++;
	}
	core_tree_unlock();
	return at;
}

/* The name of the event if it is gone with that and who keeps the kernel's has to know: no
 * descriptor tells him any more. 0: nobody has to. */
static uint64_t end(struct core_view *view)
{
	struct core_event *event = core_event(view->event);
	const uint64_t name = core_name(view->event, view->generation);
	const bool keeps = event->keeps;

	view->owner = 0;
	if (!core_is_named(event, name))
		return 0;
	core_unmap_ring(event, view->aux);
	return keeps && !core_is_named(event, name) ? name : 0;
}

static void tell(uint64_t gone)
{
	if (gone)
		core_host_kept(gone, false, CORE_KEPT_GONE);
}

void core_view_end(uint32_t owner, uint64_t event, uint64_t offset)
{
	struct core_view *view;
	uint64_t gone = 0;

	core_tree_lock();
	view = find(owner, event, offset);
	if (view)
		gone = end(view);
	core_tree_unlock();
	tell(gone);
}

void core_views_end(uint32_t owner)
{
	uint32_t i = 0;
	uint64_t gone;

	do {
		gone = 0;
		core_tree_lock();
		for (; i < core_tree()->views && !gone; i++)
			if (views()[i].owner == owner)
				gone = end(&views()[i]);
		core_tree_unlock();
		tell(gone);
	} while (gone);
}

void core_views_count(void)
{
	for (uint32_t i = 1; i <= core_rings_made(); i++)
		core_ring(i)->aux.maps = 0;
	for (uint32_t i = 0; i < core_tree()->views; i++) {
		struct core_view *view = &views()[i];
		struct core_event *event = core_event(view->event);

		if (!view->owner)
			continue;
		if (event->state == CORE_FREE || event->generation != view->generation ||
		    !event->ring)
			view->owner = 0;
		else {
			event->maps++;
			core_ring(event->ring)->aux.maps += view->aux;
		}
	}
}
