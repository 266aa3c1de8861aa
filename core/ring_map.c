// SPDX-License-Identifier: MIT
/* How rings come and go: mmap(2), munmap(2), PERF_EVENT_IOC_SET_OUTPUT. All with the tree's lock.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <string.h>

#include "core/arena.h"
#include "core/attach.h"
#include "core/aux.h"
#include "core/core.h"
#include "core/hold.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/output.h"
#include "core/pages.h"
#include "core/repair.h"
#include "core/ring.h"
#include "core/schedule.h"

static struct perf_event_mmap_page *mmap_page(const struct core_ring *ring)
{
	return core_arena(ring->at);
}

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

/* ---- the structs ---- */

struct core_ring *core_ring(uint32_t index)
{
	return (struct core_ring *)core_arena(ARENA_RINGS_AT) + index;
}

static uint32_t *nr_rings(void)
{
	return &core_ring(0)->events;
}

static uint32_t free_ring(void)
{
	for (uint32_t i = 1; i <= *nr_rings(); i++)
		if (!core_ring(i)->at)
			return i;
	return *nr_rings() + 1 < CORE_RINGS ? ++*nr_rings() : 0;
}

/* ---- who writes to them ---- */

static void attach(struct core_event *event, uint32_t index)
{
	struct core_ring *ring = core_ring(index);

	core_lock(&ring->lock);
	event->ring_next = ring->events;
	ring->events = core_index(event);
	__atomic_store_n(&event->ring, index, __ATOMIC_RELEASE);
	core_unlock(&ring->lock);
}

static void detach(struct core_event *event)
{
	struct core_ring *ring = core_ring_lock(event);
	uint32_t *link;

	if (!ring)
		return;
	/* Who was killed may have left it out of the list (core/repair.c). */
	for (link = &ring->events; *link && core_event(*link) != event;)
		link = &core_event(*link)->ring_next;
	if (*link)
		*link = event->ring_next;
	event->ring_next = 0;
	__atomic_store_n(&event->ring, 0, __ATOMIC_RELEASE);
	core_ring_unlock(ring);
}

bool core_may_write_to(const struct core_event *event, const struct core_event *to)
{
	return to->ring && event != to && event->cpu == to->cpu &&
	       (event->cpu >= 0 || event->target == to->target) &&
	       core_same_clock(&event->attr, &to->attr) &&
	       event->attr.write_backward == to->attr.write_backward;
}

int core_set_output(uint64_t name, uint64_t output)
{
	struct core_event *event = core_named(name), *to = core_named(output);
	int error = -EINVAL;

	core_tree_lock();
	if (!core_is_named(event, name) || (output && !core_is_named(to, output))) {
		error = -EBADF;
		goto out;
	}
	if ((output && !core_may_write_to(event, to)) || event->maps)
		goto out;
	detach(event);
	if (output)
		attach(event, to->ring);
	else
		core_poll_wake(event);
	error = 0;
out:
	core_tree_unlock();
	return error;
}

/* ---- locked memory ---- */

struct charge {
	uint32_t locked, pinned; /* pages: of what everybody may lock, of the process's limit */
};

static struct charge charged(uint64_t process)
{
	struct charge all = {0};

	for (uint32_t i = 1; i <= *nr_rings(); i++) {
		const struct core_ring *ring = core_ring(i);

		all.locked += ring->locked + ring->aux_locked;
		if (ring->process == process)
			all.pinned += ring->pinned + ring->aux_pinned;
	}
	return all;
}

static bool charge(uint64_t pages, uint64_t process, const struct core_rights *rights,
		   struct charge *charge)
{
	const struct core_settings *settings = core_settings();
	uint64_t share = settings->mlock_kb / (ARENA_PAGE / 1024) * (uint64_t)settings->cpus;
	struct charge before = charged(process);
	uint64_t left = before.locked < share ? share - before.locked : 0;

	charge->locked = (uint32_t)(pages < left ? pages : left);
	charge->pinned = (uint32_t)(pages - charge->locked);
	return before.pinned + (uint64_t)charge->pinned <= rights->mlock / ARENA_PAGE ||
	       settings->paranoid < 0;
}

/* ---- mmap(2) ---- */

static uint64_t watermark_of(const struct perf_event_attr *attr, uint64_t size)
{
	uint64_t asked = attr->watermark ? attr->wakeup_watermark : 0;

	if (!asked)
		return size / 2;
	return asked < size ? asked : size;
}

/* All but the lock, which somebody who comes late may hold. */
static void clear(struct core_ring *ring)
{
	memset((char *)ring + sizeof(ring->lock), 0, sizeof(*ring) - sizeof(ring->lock));
}

static uint64_t caller(void)
{
	const struct core_task *task = core_host_task();

	return task ? task->process : 0;
}

static void begin_page(struct core_event *event, const struct core_ring *ring)
{
	struct perf_event_mmap_page *page = mmap_page(ring);
	struct core_task *task;

	page->data_offset = ARENA_PAGE;
	page->data_size = ring->size;
	task = core_event_lock(event);
	core_page_update(event);
	if (task)
		core_task_unlock(task);
}

static int make_ring(struct core_event *event, uint64_t data_pages, bool writable,
		     const struct core_rights *rights)
{
	uint32_t index = free_ring();
	struct core_ring *ring = core_ring(index);
	struct charge cost;
	uint64_t at;

	if (!charge(1 + data_pages, caller(), rights, &cost))
		return -EPERM;
	at = index ? core_pages_take(1 + data_pages) : 0;
	if (!at)
		return -ENOMEM;
	core_lock(&ring->lock);
	clear(ring);
	ring->shown = core_index(event);
	ring->at = at;
	ring->size = data_pages * ARENA_PAGE;
	ring->overwrite = !writable;
	ring->watermark = watermark_of(&event->attr, ring->size);
	ring->locked = cost.locked;
	ring->pinned = cost.pinned;
	ring->process = caller();
	core_unlock(&ring->lock);
	attach(event, index);
	begin_page(event, ring);
	return 0;
}

static int map_ring(struct core_event *event, uint64_t pages, bool writable,
		    const struct core_rights *rights)
{
	struct core_ring *ring = core_ring(event->ring);

	if (pages > 1 && !is_power_of_two(pages - 1))
		return -EINVAL;
	if (!event->ring)
		return make_ring(event, pages - 1, writable, rights);
	if (ring->size != (pages - 1) * ARENA_PAGE)
		return -EINVAL;
	if (!event->maps)
		return -EBUSY;
	return 0;
}

/* ---- the AUX area ---- */

/* Where nothing was asked for it is half of the area: then one half is read while the other is
 * written. What is overwritten nobody waits for. */
static uint64_t aux_watermark_of(const struct perf_event_attr *attr, uint64_t size, bool writable)
{
	uint64_t half = size / 2 < UINT32_MAX ? size / 2 : UINT32_MAX;

	if (!writable)
		return 0;
	return attr->aux_watermark ? attr->aux_watermark : half;
}

static int make_aux(struct core_event *event, uint64_t offset, uint64_t size, bool writable,
		    const struct core_rights *rights)
{
	struct core_ring *ring = core_ring(event->ring);
	struct charge cost;
	uint64_t at;

	if (!charge(size / ARENA_PAGE, caller(), rights, &cost))
		return -EPERM;
	if (!core_aux_fills(&event->attr))
		return -EOPNOTSUPP;
	at = core_pages_take(size / ARENA_PAGE);
	if (!at)
		return -ENOMEM;
	core_lock(&ring->lock);
	ring->aux = (struct core_aux){
		.maps = 1,
		.overwrite = !writable,
		.at = at,
		.size = size,
		.offset = offset,
		.watermark = aux_watermark_of(&event->attr, size, writable),
	};
	ring->aux_locked = cost.locked;
	ring->aux_pinned = cost.pinned;
	core_unlock(&ring->lock);
	return 0;
}

static int map_aux(struct core_event *event, uint64_t offset, uint64_t size, bool writable,
		   const struct core_rights *rights)
{
	struct core_ring *ring = core_ring(event->ring);
	const struct perf_event_mmap_page *page;

	if (!event->ring)
		return -EINVAL;
	page = mmap_page(ring);
	/* The program may write there at any time. */
	if (__atomic_load_n(&page->aux_offset, __ATOMIC_RELAXED) != offset ||
	    __atomic_load_n(&page->aux_size, __ATOMIC_RELAXED) != size ||
	    offset < ARENA_PAGE + ring->size || !is_power_of_two(size))
		return -EINVAL;
	if (ring->aux.size && (ring->aux.offset != offset || ring->aux.size != size))
		return -EINVAL;
	/* It goes with the ring, which goes with the mappings of the event that it was made for. */
	if (!event->maps)
		return -EBUSY;
	if (!ring->aux.size)
		return make_aux(event, offset, size, writable, rights);
	ring->aux.maps++;
	return 0;
}

/* Nobody writes there any more. */
static void forget_aux(struct core_ring *ring)
{
	core_lock(&ring->lock);
	ring->aux = (struct core_aux){0};
	ring->aux_locked = ring->aux_pinned = 0;
	core_unlock(&ring->lock);
}

/* Whoever has the pages next finds zeros there. */
static void free_aux(struct core_ring *ring)
{
	const struct core_aux aux = ring->aux;

	if (!aux.size)
		return;
	forget_aux(ring);
	core_host_discard(aux.at, aux.size);
	core_pages_give(aux.at, aux.size / ARENA_PAGE);
}

int core_map_ring(struct core_event *event, uint64_t offset, uint64_t size, bool writable,
		  const struct core_rights *rights)
{
	uint64_t pages = size / ARENA_PAGE;

	if (!size || size % ARENA_PAGE || (event->cpu < 0 && event->attr.inherit))
		return -EINVAL;
	if (pages > INT32_MAX)
		return -ENOMEM;
	if (offset)
		return map_aux(event, offset, size, writable, rights);
	return map_ring(event, pages, writable, rights);
}

/* ---- munmap(2) ---- */

/* Takes the first out of the list, whatever that says of itself: the list ends. */
static struct core_event *take_writer(struct core_ring *ring, uint32_t index)
{
	struct core_event *event;

	core_lock(&ring->lock);
	event = core_event_or_null(ring->events);
	if (event) {
		ring->events = event->ring_next;
		event->ring_next = 0;
		if (event->ring == index)
			__atomic_store_n(&event->ring, 0, __ATOMIC_RELEASE);
	}
	core_unlock(&ring->lock);
	return event;
}

static void free_pages(uint32_t index)
{
	struct core_ring *ring = core_ring(index);
	uint64_t at = ring->at, size = ring->size;
	struct core_event *event;

	free_aux(ring);
	while ((event = take_writer(ring, index)))
		core_poll_wake(event);
	/* Whoever has the pages next finds zeros there. */
	core_host_discard(at, size + ARENA_PAGE);
	core_lock(&ring->lock);
	clear(ring);
	core_unlock(&ring->lock);
	core_pages_give(at, 1 + size / ARENA_PAGE);
}

void core_unmap_ring(struct core_event *event, bool aux)
{
	struct core_ring *ring = core_ring(event->ring);

	if (!event->maps)
		return;
	if (aux && ring->aux.maps && !--ring->aux.maps)
		free_aux(ring);
	if (--event->maps)
		return;
	if (event->ring)
		free_pages(event->ring);
	if (event->closed)
		core_release_event(event);
}

/* ---- repair ---- */

uint32_t core_rings_made(void)
{
	return *nr_rings();
}

/* Whether the event that it was made for still has it mapped. */
static bool is_mapped(uint32_t index)
{
	const struct core_event *event = core_event(core_ring(index)->shown);

	return event->state != CORE_FREE && event->ring == index && event->maps;
}

static void sift_aux(struct core_ring *ring, bool stays)
{
	if (!ring->aux.size)
		return;
	if (stays) {
		core_pages_have(ring->aux.at, ring->aux.size / ARENA_PAGE);
		return;
	}
	core_host_discard(ring->aux.at, ring->aux.size);
	forget_aux(ring);
}

void core_rings_sift(void)
{
	core_pages_forget();
	for (uint32_t i = 1; i <= core_rings_made(); i++) {
		struct core_ring *ring = core_ring(i);

		if (ring->at && !is_mapped(i)) {
			sift_aux(ring, false);
			core_host_discard(ring->at, ring->size + ARENA_PAGE);
			core_lock(&ring->lock);
			clear(ring);
			core_unlock(&ring->lock);
		}
		if (ring->at) {
			core_pages_have(ring->at, 1 + ring->size / ARENA_PAGE);
			sift_aux(ring, ring->aux.maps);
		}
	}
	for (uint32_t i = 1; i <= core_tree()->made; i++) {
		struct core_event *event = core_event(i);

		if (event->ring && !core_ring(event->ring)->at) {
			event->maps = 0;
			__atomic_store_n(&event->ring, 0, __ATOMIC_RELEASE);
		}
	}
}

void core_ring_leave(struct core_event *event)
{
	detach(event);
}
