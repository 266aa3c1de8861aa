// SPDX-License-Identifier: MIT
/*
 * The mmap page of an event: its count and its times for who reads them without a system call, by
 * the protocol that <linux/perf_event.h> gives. With cap_user_rdpmc and an index
 *
 *	count = offset + rdpmc(index - 1)
 *
 * where rdpmc is answered by the translator: the counters of a task go by their kinds
 * (core_rdpmc()).
 */
#include <linux/perf_event.h>
#include <string.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/count.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/output.h"
#include "core/ring.h"
#include "core/time.h"

/* Readers extend the sign from there. */
#define COUNTER_WIDTH 64

static bool is_counter(const struct core_event *event)
{
	return event->kind < CORE_HARDWARE_KINDS;
}

/*
 * Whoever reads its own counter by rdpmc, where the count is another's or of every task, has
 * something else or a part of it: then it is read(2) that tells.
 */
static bool is_of_reader(const struct core_event *event, const struct core_ring *ring)
{
	return !event->everybody && core_task(event->task)->process == ring->process;
}

/*
 * Brings the times of @count from the last look up to now, which is returned, as the kernel does
 * for its pages: of an event that has just been enabled they would be 0, and readers divide by
 * them.
 */
static uint64_t go_on_to_now(const struct core_event *event, struct core_count *count)
{
	const struct core_task *task;
	uint64_t now, clock, passed;

	if (event->state == CORE_EXITED)
		return core_host_tsc();
	task = core_task(event->task);
	if (core_settings()->counters)
		return task->looked;
	now = core_host_tsc();
	clock = core_clock_at(task, now);
	passed = core_count_time_passes(event) && clock > task->now ? clock - task->now : 0;
	count->enabled += passed;
	if (event->state == CORE_ACTIVE)
		count->running += passed;
	return now;
}

/* Who has read on both sides of this reads once more. */
static void part(struct perf_event_mmap_page *page)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&page->lock, page->lock + 2, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/*
 * The thread that is counted reads while another one writes, which the kernel's pages never see:
 * they are written on its processor. So it may find an odd lock, twice the same, and what lies
 * between has to be true. An index leads to rdpmc, which waits for the end (core_rdpmc()): it comes
 * first, and goes last.
 */
static void tell_count(struct perf_event_mmap_page *page, uint32_t index, int64_t offset)
{
	if (index) {
		page->index = index;
		part(page);
		page->offset = offset;
	} else {
		page->offset = offset;
		part(page);
		page->index = index;
	}
	part(page);
}

static void tell(struct core_event *event, const struct core_ring *ring,
		 struct perf_event_mmap_page *page)
{
	const struct core_settings *settings = core_settings();
	bool running = event->state == CORE_ACTIVE;
	struct core_count count = core_count_with_ended(event);
	const uint64_t now = go_on_to_now(event, &count);

	core_count_never_less(&count.enabled, &event->told_enabled);
	core_count_never_less(&count.running, &event->told_running);
	if (running && is_counter(event) && is_of_reader(event, ring))
		tell_count(page, event->kind + 1U,
			   (int64_t)(event->count.value + event->ended.value - event->start));
	else
		tell_count(page, 0, (int64_t)count.value);
	page->time_enabled = count.enabled;
	page->time_running = count.running;
	page->cap_bit0_is_deprecated = 1;
	page->cap_user_rdpmc = is_counter(event);
	page->pmc_width = COUNTER_WIDTH;
	/* With turns the times stand while others have the processor: nobody sees that from here.
	 */
	page->cap_user_time = !settings->counters;
	page->time_mult = settings->tsc_mult;
	page->time_shift = (uint16_t)settings->tsc_shift;
	page->time_offset = -core_nanoseconds(now);
	page->cap_user_time_zero = page->cap_user_time && !event->attr.use_clockid;
	page->time_zero = 0;
	page->size = offsetof(struct perf_event_mmap_page, __reserved);
}

void core_page_update(struct core_event *event)
{
	struct perf_event_mmap_page *page;
	struct core_ring *ring;

	if (!event->ring)
		return;
	ring = core_ring_lock(event);
	if (!ring)
		return;
	if (core_event(ring->shown) == event) {
		page = core_arena(ring->at);
		__atomic_store_n(&page->lock, page->lock + 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		tell(event, ring, page);
		core_task(event->task)->mapped |= event->state == CORE_ACTIVE;
		__atomic_thread_fence(__ATOMIC_RELEASE);
		__atomic_store_n(&page->lock, page->lock + 1, __ATOMIC_RELAXED);
	}
	core_ring_unlock(ring);
}

/*
 * Whoever reads the times in user space adds what the time stamp counter says has passed since the
 * page was written. So pages are written anew when that begins to be true again.
 */
void core_pages_update(struct core_task *task)
{
	core_lock(&task->lock);
	task->mapped = false;
	core_look_at_clock(task);
	core_for_each_event(event, task)
		if (event->maps && event->state == CORE_ACTIVE)
			core_page_update(event);
	core_unlock(&task->lock);
}
