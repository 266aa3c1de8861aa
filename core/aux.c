// SPDX-License-Identifier: MIT
/*
 * Branches are written as Intel's processors store them (BTS), in records of three words. None goes
 * over the end of the area, since readers of that format look at the two ends apart:
 *
 *	| record | record | ...				| record | rest, less than a record |
 *	0						      size, a power of two
 *
 *			tail		  told		head
 *	|...............|#### announced ###|## written ##|........................|
 *
 * What has been written is announced by PERF_RECORD_AUX, and then by aux_head, when it has come to
 * the watermark, when the area is full, and when the task stops tracing. All of that is done by the
 * task's own thread, so whoever disables the event from elsewhere sees the end of it a moment
 * later. When the area is full the event is disabled: what comes next would not fit to what was
 * there before. A mapping that cannot be written has no tail, and nothing of it is ever full.
 */
#include "core/aux.h"

#include <signal.h>
#include <string.h>

#include "core/arena.h"
#include "core/count.h"
#include "core/lock.h"
#include "core/schedule.h"
#include "core/sideband.h"

#define RECORD sizeof(struct core_branch)

static struct perf_event_mmap_page *page_of(const struct core_ring *ring)
{
	return core_arena(ring->at);
}

/* The ring of @event, locked, if it has an area. */
static struct core_ring *lock_area(const struct core_event *event)
{
	struct core_ring *ring = core_ring_lock(event);

	if (ring && !ring->aux.size) {
		core_ring_unlock(ring);
		ring = NULL;
	}
	return ring;
}

/* ---- room ---- */

static uint64_t place(const struct core_aux *aux)
{
	return aux->head & (aux->size - 1);
}

/* Bytes before the reader's place, of which one stays free. The reader may have written anything
 * there. */
static uint64_t room(const struct core_ring *ring)
{
	const struct core_aux *aux = &ring->aux;
	uint64_t tail;

	if (aux->overwrite)
		return aux->size;
	tail = __atomic_load_n(&page_of(ring)->aux_tail, __ATOMIC_ACQUIRE);
	return aux->head - tail < aux->size ? (tail - aux->head - 1) & (aux->size - 1) : 0;
}

static bool has_crossed(const struct core_aux *aux)
{
	return aux->watermark && aux->head - aux->wakeup >= aux->watermark;
}

/* So many come to the watermark. */
static uint64_t until_watermark(const struct core_aux *aux)
{
	const uint64_t written = aux->head - aux->wakeup;

	return aux->watermark ? (aux->watermark - written + RECORD - 1) / RECORD : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- writing ---- */

/* Leaves out what is too short for a record, at the end of the area. */
static void skip_rest(struct core_aux *aux, uint64_t rest)
{
	memset((char *)core_arena(aux->at) + place(aux), 0, rest);
	aux->head += rest;
	aux->told = aux->head;
}

/*
 * Writes as many as can be written before something has to be told; returns how many. 0: what is
 * there has to be told before any more, or with PERF_AUX_FLAG_TRUNCATED in @flags, there is no
 * room.
 */
static size_t put(struct core_ring *ring, const struct core_branch *from, size_t nr,
		  uint64_t *flags)
{
	struct core_aux *aux = &ring->aux;
	uint64_t rest = aux->size - place(aux), free = room(ring);

	if (rest < RECORD && free >= rest + RECORD) {
		if (!aux->overwrite && aux->told != aux->head)
			return 0;
		skip_rest(aux, rest);
		if (has_crossed(aux))
			return 0;
		free -= rest;
		rest = aux->size;
	}
	nr = least(least(nr, until_watermark(aux)), least(rest, free) / RECORD);
	if (!nr)
		*flags |= PERF_AUX_FLAG_TRUNCATED;
	memcpy((char *)core_arena(aux->at) + place(aux), from, nr * RECORD);
	aux->head += nr * RECORD;
	return nr;
}

/* ---- telling ---- */

static void publish(const struct core_event *event)
{
	struct core_ring *ring = lock_area(event);

	if (!ring)
		return;
	__atomic_store_n(&page_of(ring)->aux_head,
			 ring->aux.overwrite ? ring->aux.head : ring->aux.told, __ATOMIC_RELEASE);
	core_ring_unlock(ring);
}

/* What has been written and not been told yet, and why: PERF_AUX_FLAG_. */
static void tell(struct core_event *event, const struct core_task *task, uint64_t flags)
{
	struct core_ring *ring = lock_area(event);
	uint64_t offset, size;

	if (!ring)
		return;
	offset = ring->aux.told;
	size = 0;
	if (ring->aux.writer == core_page(task)) {
		size = ring->aux.head - offset;
		ring->aux.told = ring->aux.head;
	}
	if (ring->aux.overwrite) { /* where it begins nobody knows: all of it, up to the head */
		offset = ring->aux.head;
		size = ring->aux.size;
		flags |= PERF_AUX_FLAG_OVERWRITE;
	}
	core_ring_unlock(ring);
	if (size || flags)
		core_tell_aux(event, task, offset, size, flags);
	publish(event);
}

/* Who waits is woken if it has come that far, or has to make room. */
static void wake(struct core_event *event, bool full)
{
	struct core_ring *ring = lock_area(event);
	bool wakes;

	if (!ring)
		return;
	wakes = full;
	if (has_crossed(&ring->aux)) {
		ring->aux.wakeup = ring->aux.head - ring->aux.head % ring->aux.watermark;
		wakes = true;
	}
	if (wakes)
		core_ring_wake(ring);
	core_ring_unlock(ring);
	if (wakes)
		core_signal_owner(core_opened(event), POLL_IN);
}

/* It is disabled until who reads has made room and enables it. */
static void stop(struct core_task *task, struct core_event *event)
{
	task->tracing = 0;
	core_look(task);
	core_switch_off(task, event);
	core_schedule(task);
}

/* ---- of a task ---- */

static struct core_event *traced(const struct core_task *task)
{
	struct core_event *event = task->events ? core_event_or_null(task->tracing) : NULL;

	if (!event || event->state == CORE_FREE || event->state == CORE_EXITED ||
	    event->generation != task->tracing_generation || event->task != core_page(task))
		return NULL;
	return event;
}

/* With the first that has an area to go to. */
static void announce(struct core_event *event, const struct core_task *task)
{
	struct core_event *opened = core_opened(event);

	if (opened->started)
		return;
	opened->started = true;
	core_tell_itrace_start(event, task);
}

/* Of a processor several tasks may write to one area; whose it is only records tell. */
static uint32_t other_writer(const struct core_aux *aux, uint32_t page)
{
	const bool pending = !aux->overwrite && aux->told != aux->head;

	return pending && aux->writer != page ? aux->writer : 0;
}

static void write_all(struct core_task *task, struct core_event *event,
		      const struct core_branch *branches, size_t nr)
{
	struct core_ring *ring;

	while (nr && (ring = lock_area(event))) {
		const uint32_t other = other_writer(&ring->aux, core_page(task));
		uint64_t flags = 0;
		size_t n;
		bool due;

		if (other) {
			core_ring_unlock(ring);
			tell(event, core_task(other), 0);
			continue;
		}
		ring->aux.writer = core_page(task);
		n = put(ring, branches, nr, &flags);
		due = !n || has_crossed(&ring->aux);
		core_ring_unlock(ring);
		branches += n;
		nr -= n;
		announce(event, task);
		if (!due)
			continue;
		tell(event, task, flags);
		wake(event, flags);
		if (flags) {
			stop(task, event);
			return;
		}
	}
}

void core_trace(struct core_task *task, const struct core_branch *branches, size_t nr)
{
	struct core_event *event;

	core_lock(&task->lock);
	event = traced(task);
	if (event && !event->paused) {
		write_all(task, event, branches, nr);
		publish(event);
	}
	core_task_unlock(task);
}

static void begin(struct core_task *task, struct core_event *event)
{
	struct core_ring *ring;
	bool full;

	task->tracing_generation = event->generation;
	task->tracing = core_index(event);
	ring = lock_area(event);
	if (!ring)
		return;
	full = room(ring) < RECORD;
	core_ring_unlock(ring);
	announce(event, task);
	if (!full)
		return;
	wake(event, true);
	stop(task, event);
}

void core_trace_end(struct core_task *task)
{
	struct core_event *event = traced(task);

	if (event) {
		tell(event, task, 0);
		wake(event, false);
	}
	task->tracing = 0;
}

static struct core_event *active(const struct core_task *task)
{
	core_for_each_event(event, task)
		if (event->kind == CORE_TRACE && event->state == CORE_ACTIVE &&
		    !event->attr.exclude_user)
			return event;
	return NULL;
}

void core_trace_follow(struct core_task *task)
{
	struct core_event *event;

	core_task_lock(task);
	event = active(task);
	if (event != traced(task)) {
		core_trace_end(task);
		if (event)
			begin(task, event);
	}
	core_task_unlock(task);
}

/* ---- of a sample ---- */

/* What is traced for the leader of @event's group, now. */
static struct core_ring *lock_traced(const struct core_event *event)
{
	const struct core_event *leader = core_leader(event);

	if (leader == event || traced(core_task(event->task)) != leader)
		return NULL;
	return lock_area(leader);
}

/* Bytes of an area that records lie in. */
static uint64_t usable(const struct core_aux *aux)
{
	return aux->size - aux->size % RECORD;
}

size_t core_trace_last(const struct core_event *event, size_t size)
{
	struct core_ring *ring = lock_traced(event);
	uint64_t there;

	if (!ring)
		return 0;
	there = ring->aux.head < ring->aux.size ? ring->aux.head : usable(&ring->aux);
	core_ring_unlock(ring);
	size = least(size, there);
	return size - size % RECORD;
}

void core_trace_put(struct core_output *out, const struct core_event *event, size_t size)
{
	static const struct core_branch none;
	struct core_ring *ring = core_ring(core_opened_const(core_leader(event))->ring);
	const bool same = ring == out->ring;
	const char *data;
	uint64_t at, before;

	/* Its room in the record has been told. That the area goes meanwhile is rare. */
	if (!same)
		ring = lock_traced(event);
	if (!ring || !ring->aux.size) {
		for (; size; size -= RECORD)
			core_output_put(out, &none, RECORD);
		if (ring && !same)
			core_ring_unlock(ring);
		return;
	}
	data = core_arena(ring->aux.at);
	at = place(&ring->aux);
	if (at > usable(&ring->aux))
		at = usable(&ring->aux);
	before = size > at ? size - at : 0;
	core_output_put(out, data + usable(&ring->aux) - before, before);
	core_output_put(out, data + at - (size - before), size - before);
	if (!same)
		core_ring_unlock(ring);
}

/* ---- attr.aux_action ---- */

void core_trace_pause(const struct core_event *event, bool paused)
{
	struct core_event *leader = core_leader(event);

	if (leader != event && leader->kind == CORE_TRACE)
		leader->paused = paused;
}
