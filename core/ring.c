// SPDX-License-Identifier: MIT
/*
 * Records are written under the ring's lock and shown by moving data_head when they are whole. Who
 * dies in between has shown nothing: the next writer begins at the same place.
 *
 *	tail		   head		  forwards: free is what lies between head and tail
 *	|#### records ####|....................|
 *
 *	     head			tail	  backwards: the head counts down, the newest record
 *	|....|######## records ########|......|	  is the first above it
 */
#include "core/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/hold.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/record.h"

static struct perf_event_mmap_page *mmap_page(const struct core_ring *ring)
{
	return core_arena(ring->at);
}

static void wake_all(const struct core_ring *ring)
{
	for (uint32_t i = ring->events; i; i = core_event(i)->ring_next)
		core_host_wake(core_event(i), POLLIN);
}

/* Who had the lock is gone, and may have been about to wake: then all later wakes would be left
 * out. */
static void wake_instead(struct core_ring *ring)
{
	__atomic_store_n(&ring->ready, POLLIN | POLLRDNORM, __ATOMIC_RELEASE);
	wake_all(ring);
}

struct core_ring *core_ring_lock(const struct core_event *event)
{
	uint32_t index;

	event = core_opened_const(event);
	while ((index = __atomic_load_n(&event->ring, __ATOMIC_ACQUIRE))) {
		struct core_ring *ring = core_ring(index);

		if (core_lock(&ring->lock) && ring->at)
			wake_instead(ring);
		if (event->ring == index)
			return ring;
		core_unlock(&ring->lock);
	}
	return NULL;
}

void core_ring_unlock(struct core_ring *ring)
{
	core_unlock(&ring->lock);
}

void core_ring_wake(struct core_ring *ring)
{
	/* Nobody has looked since the last time: they are awake, or will look before they sleep. */
	if (__atomic_exchange_n(&ring->ready, POLLIN | POLLRDNORM, __ATOMIC_ACQ_REL))
		return;
	wake_all(ring);
}

void core_signal_owner(struct core_event *event, int band)
{
	if (event->owner.async)
		core_host_signal(event, band);
}

/* The bytes from the newest on to the oldest that the reader has not consumed leave one free. */
static bool has_room(const struct core_ring *ring, uint64_t tail, bool backward, size_t size)
{
	uint64_t used = backward ? tail - ring->head : ring->head - tail;

	return ((-used - 1) & (ring->size - 1)) >= size;
}

static void put_lost(struct core_output *out, uint64_t lost, size_t size)
{
	struct core_identity identity;

	core_identify(&identity, out->event);
	core_put_header(out, PERF_RECORD_LOST, 0, size);
	core_output_put_u64(out, out->event->id);
	core_output_put_u64(out, lost);
	core_put_identity(out, out->event, &identity);
}

bool core_output_begin(struct core_output *out, struct core_event *event, size_t size)
{
	struct core_event *opened = core_opened(event);
	bool backward = opened->attr.write_backward;
	struct core_ring *ring = core_ring_lock(event);
	size_t lost_size = 0;
	uint64_t tail, lost;

	if (!ring)
		return false;
	if (!ring->size)
		goto none;
	if (ring->lost)
		lost_size = core_record_size(opened, 2 * sizeof(uint64_t));
	tail = __atomic_load_n(&mmap_page(ring)->data_tail, __ATOMIC_ACQUIRE);
	if (ring->paused ||
	    (!ring->overwrite && !has_room(ring, tail, backward, size + lost_size))) {
		ring->lost++;
		__atomic_fetch_add(&opened->lost, 1, __ATOMIC_RELAXED);
		goto none;
	}
	size += lost_size;
	*out = (struct core_output){
		.ring = ring,
		.event = opened,
		.data = core_arena(ring->at + ARENA_PAGE),
		.mask = ring->size - 1,
		.at = backward ? ring->head - size : ring->head,
		.head = backward ? ring->head - size : ring->head + size,
	};
	if ((backward ? -out->head : out->head) - ring->wakeup > ring->watermark) {
		ring->wakeup += ring->watermark;
		out->wake = true;
	}
	if (lost_size) {
		lost = ring->lost;
		ring->lost = 0;
		put_lost(out, lost, lost_size);
	}
	return true;
none:
	core_ring_unlock(ring);
	return false;
}

/* How much of @size fits before the data's end. */
static size_t straight(const struct core_output *out, size_t size)
{
	size_t left = (size_t)(out->mask + 1 - (out->at & out->mask));

	return size < left ? size : left;
}

void core_output_put(struct core_output *out, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;

	while (size) {
		size_t piece = straight(out, size);

		memcpy(out->data + (out->at & out->mask), from, piece);
		out->at += piece;
		from += piece;
		size -= piece;
	}
}

size_t core_output_put_user(struct core_output *out, uint64_t from, size_t size)
{
	size_t copied = 0;
	bool readable = true;

	while (size) {
		size_t piece = straight(out, size), read = 0;
		unsigned char *to = out->data + (out->at & out->mask);

		if (readable)
			read = core_host_read(to, from + copied, piece);
		copied += read;
		readable &= read == piece;
		memset(to + read, 0, piece - read);
		out->at += piece;
		size -= piece;
	}
	return copied;
}

void core_output_end(struct core_output *out, bool sample)
{
	const struct perf_event_attr *attr = &out->event->attr;
	struct core_ring *ring = out->ring;

	ring->head = out->head;
	__atomic_store_n(&mmap_page(ring)->data_head, ring->head, __ATOMIC_RELEASE);
	if (sample && !attr->watermark && attr->wakeup_events &&
	    (int32_t)++ring->samples >= (int32_t)attr->wakeup_events) {
		ring->samples -= attr->wakeup_events;
		ring->wakeup++; /* as the kernel counts: a byte, where the watermark is meant */
		out->wake = true;
	}
	if (out->wake)
		core_ring_wake(ring);
	core_ring_unlock(ring);
	if (out->wake && !sample) /* of samples overflows tell, each */
		core_signal_owner(out->event, POLL_IN);
}

int core_pause_output(uint64_t name, bool pause)
{
	const struct core_event *event = core_named(name);
	struct core_ring *ring = core_ring_lock(event);
	int error = 0;

	if (!ring)
		return -EINVAL;
	if (!core_is_named(event, name))
		error = -EBADF;
	else if (!ring->size)
		error = -EINVAL;
	else
		ring->paused = pause;
	core_ring_unlock(ring);
	return error;
}
