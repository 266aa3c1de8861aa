// SPDX-License-Identifier: MIT
/*
 * Reading a ring that the kernel writes at the same time.
 *
 * The kernel stores a record and then data_head; we load data_head (acquire) and then the record.
 * We finish with a record and then store data_tail (release); the kernel loads data_tail and then
 * overwrites (ABI: mmap.data_head, mmap.data_tail). In an overwrite ring nothing stops the kernel:
 * a record is copied first, and then counts only if head shows that it was still whole.
 *
 * Nothing in the data decides what is read next unless it has been checked against head.
 */
#include "lib/sampler/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"

void tly_ring_init(struct tally_ring *ring, struct perf_event_mmap_page *page, const void *data,
		   size_t size, unsigned int flags)
{
	*ring = (struct tally_ring){.page = page, .data = data, .size = size, .flags = flags};
	/* Another reader may have used the same ring before: what it consumed is gone. */
	if (!(flags & (TALLY_RING_OVERWRITE | TALLY_RING_BACKWARD)))
		ring->tail = page->data_tail;
}

void tly_ring_release(struct tally_ring *ring)
{
	free(ring->bounce);
	free(ring->starts);
	ring->bounce = NULL;
	ring->starts = NULL;
}

bool tly_record_size_ok(size_t size, size_t available)
{
	return size >= sizeof(struct perf_event_header) && size % 8 == 0 && size <= available;
}

uint64_t tly_ring_head(const struct tally_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

uint64_t tly_ring_position(const struct tally_ring *ring)
{
	return ring->tail;
}

static bool is_backward(const struct tally_ring *ring)
{
	return ring->flags & TALLY_RING_BACKWARD;
}

static bool is_overwrite(const struct tally_ring *ring)
{
	return ring->flags & TALLY_RING_OVERWRITE;
}

static bool is_boundary(const struct tally_ring *ring, uint64_t head)
{
	return (head | ring->tail) % 8 == 0;
}

/* Records start at multiples of 8 and the ring's size is one: a header never wraps. */
static struct perf_event_header header_at(const struct tally_ring *ring, uint64_t position)
{
	struct perf_event_header header;

	memcpy(&header, ring->data + (position & (ring->size - 1)), sizeof(header));
	return header;
}

static size_t split(const struct tally_ring *ring, uint64_t position, size_t bytes,
		    struct tally_span piece[2])
{
	size_t start = position & (ring->size - 1);
	size_t first = bytes < ring->size - start ? bytes : ring->size - start;

	piece[0] = (struct tally_span){ring->data + start, first};
	piece[1] = (struct tally_span){ring->data, bytes - first};
	return bytes;
}

static void set_tail(struct tally_ring *ring, uint64_t tail)
{
	ring->tail = tail;
	if (!is_overwrite(ring))
		__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

static void drop_until(struct tally_ring *ring, uint64_t head)
{
	uint64_t pending = head - ring->tail;

	ring->dropped += pending < ring->size ? pending : ring->size;
	ring->held = 0;
	set_tail(ring, head);
}

/*
 * The end of what can be read of a backward ring that starts at @head: records that the kernel has
 * overwritten in part, and anything behind a header that cannot be true, stay out. With @starts,
 * remembers where each record starts.
 */
static int backward_end(struct tally_ring *ring, uint64_t head, bool starts, uint64_t *end)
{
	uint64_t written = ring->tail - head;
	size_t left = written < ring->size ? written : ring->size;

	ring->nr_starts = 0;
	ring->snapshot_torn = 0;
	*end = head;
	if (!is_boundary(ring, head))
		return 0;
	while (left >= sizeof(struct perf_event_header)) {
		size_t size = header_at(ring, *end).size;

		if (!tly_record_size_ok(size, left))
			break;
		if (starts && ring->nr_starts == ring->max_starts) {
			size_t max = ring->max_starts ? 2 * ring->max_starts : 1024;
			uint64_t *grown = reallocarray(ring->starts, max, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			ring->starts = grown;
			ring->max_starts = max;
		}
		if (starts)
			ring->starts[ring->nr_starts++] = *end;
		*end += size;
		left -= size;
	}
	/* Of a ring that was filled, the oldest record is torn; else nothing may be left over. */
	if (written < ring->size)
		ring->snapshot_torn = left;
	return 0;
}

static void end_snapshot(struct tally_ring *ring)
{
	ring->dropped += ring->snapshot_torn;
	ring->snapshot_torn = 0;
	ring->in_snapshot = false;
	set_tail(ring, ring->snapshot_head);
}

size_t tally_ring_peek(struct tally_ring *ring, struct tally_span piece[2])
{
	uint64_t head = tly_ring_head(ring);
	uint64_t end;

	if (is_backward(ring)) {
		backward_end(ring, head, false, &end);
		ring->snapshot_head = head;
		return split(ring, head, end - head, piece);
	}
	/* Overrun (overwrite) or corrupt: where the records start is not known any more. */
	if (head - ring->tail > ring->size || !is_boundary(ring, head))
		drop_until(ring, head);
	return split(ring, ring->tail, head - ring->tail, piece);
}

void tally_ring_consume(struct tally_ring *ring, size_t bytes)
{
	if (is_backward(ring))
		end_snapshot(ring);
	else
		set_tail(ring, ring->tail + bytes);
}

/* Stores the record at @position, made contiguous; copied where the kernel may overwrite it. */
static int contiguous(struct tally_ring *ring, uint64_t position, size_t size,
		      struct tally_span *record, struct tally_error *err)
{
	struct tally_span piece[2];

	split(ring, position, size, piece);
	*record = piece[0];
	if (!piece[1].size && !is_overwrite(ring))
		return 1;
	if (!ring->bounce)
		ring->bounce = malloc(TLY_RECORD_MAX);
	if (!ring->bounce)
		return tly_error(err, -ENOMEM, "out of memory reading a ring");
	memcpy(ring->bounce, piece[0].data, piece[0].size);
	memcpy(ring->bounce + piece[0].size, piece[1].data, piece[1].size);
	*record = (struct tally_span){ring->bounce, size};
	return 1;
}

/* Collects where the records start, newest first, and hands them out from the other end. */
static int fetch_backward(struct tally_ring *ring, struct tally_span *record,
			  struct tally_error *err)
{
	if (!ring->in_snapshot) {
		uint64_t head = tly_ring_head(ring);

		if (head == ring->tail)
			return 0;
		if (backward_end(ring, head, true, &ring->snapshot_end))
			return tly_error(err, -ENOMEM, "out of memory reading a ring");
		ring->snapshot_head = head;
		ring->in_snapshot = true;
		if (ring->snapshot_torn)
			return tly_error(err, -EBADMSG, "%zu bytes of a ring are corrupt",
					 ring->snapshot_torn);
	}
	if (!ring->nr_starts) {
		end_snapshot(ring);
		return 0;
	}
	uint64_t start = ring->starts[--ring->nr_starts];
	size_t size = ring->snapshot_end - start;

	ring->snapshot_end = start;
	return contiguous(ring, start, size, record, err);
}

int tly_ring_fetch(struct tally_ring *ring, uint64_t limit, struct tally_span *record,
		   struct tally_error *err)
{
	if (is_backward(ring))
		return fetch_backward(ring, record, err);

	if (ring->held) {
		set_tail(ring, ring->tail + ring->held);
		ring->held = 0;
	}
	uint64_t head = tly_ring_head(ring);
	size_t available = head - ring->tail;

	if (!available)
		return 0;
	if (available > ring->size && is_overwrite(ring)) {
		drop_until(ring, head);
		return tly_error(err, -EBADMSG,
				 "a ring was overwritten before it was read: %zu bytes are gone",
				 ring->size);
	}
	if (available > ring->size || !is_boundary(ring, head)) {
		drop_until(ring, head);
		return tly_error(err, -EBADMSG, "the head of a ring is not where records end");
	}
	if ((int64_t)(limit - ring->tail) <= 0)
		return 0;
	size_t size = header_at(ring, ring->tail).size;

	if (!tly_record_size_ok(size, available)) {
		drop_until(ring, head);
		return tly_error(
			err, -EBADMSG,
			"a record of %zu bytes where a ring holds %zu: the rest is dropped", size,
			available);
	}
	if (contiguous(ring, ring->tail, size, record, err) < 0)
		return -ENOMEM;
	if (is_overwrite(ring)) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		head = tly_ring_head(ring);
		if (head - ring->tail > ring->size) {
			drop_until(ring, head);
			return tly_error(err, -EBADMSG, "a ring was overwritten while it was read");
		}
	}
	ring->held = size;
	return 1;
}

int tly_ring_decode(struct tally_ring *ring, const struct tally_record_format *format,
		    struct tally_span raw, struct tally_record *record, struct tally_error *err)
{
	const char *why = "its size changed while it was read";

	if (tally_record_decode(format, raw.data, raw.size, record, &why) >= 0)
		return 1;
	ring->dropped += raw.size;
	return tly_error(err, -EBADMSG, "a record contradicts itself: %s", why);
}

int tally_ring_next(struct tally_ring *ring, const struct tally_record_format *format,
		    struct tally_record *record, struct tally_error *err)
{
	struct tally_span raw;
	int ret = tly_ring_fetch(ring, tly_ring_head(ring), &raw, err);

	return ret == 1 ? tly_ring_decode(ring, format, raw, record, err) : ret;
}

uint64_t tally_ring_dropped(const struct tally_ring *ring)
{
	return ring->dropped;
}

/* ---- counting without decoding ---- */

/* Copies @size bytes at @offset of both pieces; the caller knows that they are there. */
static void copy_out(const struct tally_span piece[2], size_t offset, void *to, size_t size)
{
	size_t first = 0;

	if (offset < piece[0].size) {
		first = piece[0].size - offset < size ? piece[0].size - offset : size;
		memcpy(to, (const char *)piece[0].data + offset, first);
	}
	if (first < size)
		memcpy((char *)to + first,
		       (const char *)piece[1].data + (offset + first - piece[0].size),
		       size - first);
}

/* The word @at bytes into the body of a record; 0 when that is too short. */
static uint64_t body_u64(const struct tally_span piece[2], size_t record, size_t size, size_t at)
{
	size_t offset = sizeof(struct perf_event_header) + at;
	uint64_t value = 0;

	if (at < size && offset + 8 <= size)
		copy_out(piece, record + offset, &value, sizeof(value));
	return value;
}

size_t tally_ring_scan(const struct tally_span piece[2], size_t time_at,
		       struct tally_sampler_stats *stats)
{
	size_t total = piece[0].size + piece[1].size;
	size_t offset = 0;

	while (total - offset >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;

		copy_out(piece, offset, &header, sizeof(header));
		if (!tly_record_size_ok(header.size, total - offset))
			break;
		stats->records++;
		switch (header.type) {
		case PERF_RECORD_SAMPLE:
			tly_stats_sample(stats, body_u64(piece, offset, header.size, time_at));
			break;
		case PERF_RECORD_LOST:
			stats->lost += body_u64(piece, offset, header.size, 8);
			break;
		case PERF_RECORD_LOST_SAMPLES:
			stats->lost += body_u64(piece, offset, header.size, 0);
			break;
		case PERF_RECORD_THROTTLE:
			stats->throttled++;
			break;
		}
		offset += header.size;
	}
	stats->bytes += offset;
	stats->corrupt += total - offset;
	return offset;
}

/* ---- the AUX area ---- */

size_t tally_ring_peek_aux(struct tally_ring *ring, struct tally_span piece[2])
{
	uint64_t head, from;
	size_t bytes;

	piece[0] = piece[1] = (struct tally_span){0};
	if (!ring->aux)
		return 0;
	head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
	if (ring->aux_overwrite) {
		from = head; /* the byte after the newest is the oldest */
		bytes = ring->aux_size;
	} else {
		if (head - ring->aux_tail > ring->aux_size) {
			ring->dropped += ring->aux_size;
			ring->aux_tail = head;
			__atomic_store_n(&ring->page->aux_tail, head, __ATOMIC_RELEASE);
		}
		from = ring->aux_tail;
		bytes = head - ring->aux_tail;
	}
	size_t start = from % ring->aux_size;
	size_t first = bytes < ring->aux_size - start ? bytes : ring->aux_size - start;

	piece[0] = (struct tally_span){ring->aux + start, first};
	piece[1] = (struct tally_span){ring->aux, bytes - first};
	return bytes;
}

void tally_ring_consume_aux(struct tally_ring *ring, size_t bytes)
{
	if (!ring->aux || ring->aux_overwrite)
		return;
	ring->aux_tail += bytes;
	__atomic_store_n(&ring->page->aux_tail, ring->aux_tail, __ATOMIC_RELEASE);
}
