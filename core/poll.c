// SPDX-License-Identifier: MIT
/* poll(2) of an event. */
#include <poll.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/hold.h"
#include "core/host.h"
#include "core/output.h"
#include "core/ring.h"

/* A task ends here before it does in the kernel, which has trace points on the way. */
static bool has_told_all(const struct core_event *event)
{
	return !event->is_kept || __atomic_load_n(&event->kept_ended, __ATOMIC_ACQUIRE);
}

static short look(uint64_t name, bool consume)
{
	const struct core_event *event = core_named(name);
	const uint8_t state = __atomic_load_n(&event->state, __ATOMIC_ACQUIRE);
	struct core_ring *ring;
	short ready;

	if (state == CORE_EXITED && !event->children && has_told_all(event))
		return POLLHUP;
	if (state == CORE_ERROR)
		return POLLERR;
	ring = core_ring_lock(event);
	if (!ring)
		return POLLHUP;
	/* What another event has in that slot is for who polls that. */
	consume &= core_is_named(event, name);
	ready = ring->ready;
	if (consume)
		__atomic_store_n(&ring->ready, 0, __ATOMIC_RELEASE);
	core_ring_unlock(ring);
	return ready;
}

short core_poll(uint64_t event)
{
	return look(event, true);
}

short core_poll_peek(uint64_t event)
{
	return look(event, false);
}

void core_poll_wake(struct core_event *event)
{
	core_host_wake(core_opened(event), POLLHUP);
}

/* core_event.woken: 0, the number for locks of who is about to send, or that it has been done,
 * which is nobody's number. */
enum { SENT = 1 };

static bool change_woken(struct core_event *event, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&event->woken, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

bool core_wake_begins(struct core_event *event)
{
	const uint32_t me = core_host_owner();
	uint32_t woken;

	if (change_woken(event, 0, me))
		return true;
	woken = __atomic_load_n(&event->woken, __ATOMIC_SEQ_CST);
	if (woken == SENT || (woken && woken != me && core_host_owner_alive(woken)))
		return false;
	return change_woken(event, woken, me);
}

void core_wake_ends(struct core_event *event, bool sent)
{
	/* Unless somebody has looked meanwhile. */
	change_woken(event, core_host_owner(), sent ? SENT : 0);
}

void core_wake_seen(struct core_event *event)
{
	__atomic_store_n(&event->woken, 0, __ATOMIC_SEQ_CST);
}
