// SPDX-License-Identifier: MIT
#include "lib/perfdata/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/perfdata/reader.h"

/* Held records are copied into chunks; a chunk is free again once none of it is held. */
#define CHUNK_SIZE (1u << 20)

struct chunk {
	struct chunk *next; /* among the free ones */
	size_t used, held;
	uint8_t data[CHUNK_SIZE];
};

struct held {
	uint64_t time, offset;
	const uint8_t *data;
	struct chunk *chunk;
	size_t event;
	uint32_t type;
	uint16_t size;
};

struct tly_order {
	struct held *held; /* from head on; those before nr_ready are sorted and may go out */
	size_t head, nr_ready, nr, room;
	struct held *scratch;
	size_t scratch_room;
	struct chunk *current, *free;
	struct chunk *last; /* of the record handed out last */
	uint64_t newest, newest_before;
	bool at_end;
	int status; /* what follows the last record */
};

struct tly_order *tly_order_new(void)
{
	return calloc(1, sizeof(struct tly_order));
}

static void chunk_put(struct tly_order *order, struct chunk *chunk)
{
	if (--chunk->held || chunk == order->current)
		return;
	chunk->next = order->free;
	order->free = chunk;
}

void tly_order_free(struct tly_order *order)
{
	if (!order)
		return;
	if (order->last)
		chunk_put(order, order->last);
	while (order->head < order->nr)
		chunk_put(order, order->held[order->head++].chunk);
	free(order->current);
	while (order->free) {
		struct chunk *chunk = order->free;

		order->free = chunk->next;
		free(chunk);
	}
	free(order->held);
	free(order->scratch);
	free(order);
}

static struct chunk *chunk_with_room(struct tly_order *order, size_t size)
{
	struct chunk *chunk = order->current;

	if (chunk && !chunk->held)
		chunk->used = 0;
	if (chunk && CHUNK_SIZE - chunk->used >= size)
		return chunk;
	chunk = order->free;
	if (chunk)
		order->free = chunk->next;
	else
		chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return NULL;
	chunk->used = 0;
	chunk->held = 0;
	order->current = chunk;
	return chunk;
}

static bool room_for_one(struct tly_order *order)
{
	struct held *held;
	size_t room;

	if (order->nr < order->room)
		return true;
	if (order->head >= order->room / 2 && order->head) {
		memmove(order->held, order->held + order->head,
			(order->nr - order->head) * sizeof(*order->held));
		order->nr -= order->head;
		order->nr_ready -= order->head;
		order->head = 0;
		return true;
	}
	room = order->room ? 2 * order->room : 1024;
	held = realloc(order->held, room * sizeof(*held));
	if (!held)
		return false;
	order->held = held;
	order->room = room;
	return true;
}

static bool hold(struct tly_order *order, const struct tly_raw *raw, size_t event, uint64_t time)
{
	struct chunk *chunk = chunk_with_room(order, raw->size);
	uint8_t *data;

	if (!chunk || !room_for_one(order))
		return false;
	data = memcpy(chunk->data + chunk->used, raw->data, raw->size);
	chunk->used += raw->size;
	chunk->held++;
	order->held[order->nr++] = (struct held){
		.time = time,
		.offset = raw->offset,
		.data = data,
		.chunk = chunk,
		.event = event,
		.type = raw->type,
		.size = raw->size,
	};
	if (time > order->newest)
		order->newest = time;
	return true;
}

/* The end of the ordered run that begins at @from. */
static size_t run_end(const struct held *held, size_t from, size_t nr)
{
	size_t end = from + 1;

	while (end < nr && held[end - 1].time <= held[end].time)
		end++;
	return end;
}

static void merge(const struct held *a, size_t nr_a, const struct held *b, size_t nr_b,
		  struct held *out)
{
	while (nr_a && nr_b) {
		if (b->time < a->time) {
			*out++ = *b++;
			nr_b--;
		} else {
			*out++ = *a++;
			nr_a--;
		}
	}
	memcpy(out, a, nr_a * sizeof(*a));
	memcpy(out + nr_a, b, nr_b * sizeof(*b));
}

/*
 * A stable merge sort over the runs that are there: one for each ring and round, so that a file of
 * one ring costs one look at it.
 */
static bool sort(struct tly_order *order)
{
	size_t nr = order->nr - order->head;
	struct held *from, *to;

	if (nr < 2)
		return true;
	from = order->held + order->head;
	if (run_end(from, 0, nr) == nr)
		return true;
	if (order->scratch_room < nr) {
		free(order->scratch);
		order->scratch = malloc(nr * sizeof(*order->scratch));
		order->scratch_room = order->scratch ? nr : 0;
		if (!order->scratch)
			return false;
	}
	to = order->scratch;
	while (run_end(from, 0, nr) < nr) {
		struct held *swap = from;

		for (size_t at = 0; at < nr;) {
			size_t middle = run_end(from, at, nr);
			size_t end = middle < nr ? run_end(from, middle, nr) : nr;

			merge(from + at, middle - at, from + middle, end - middle, to + at);
			at = end;
		}
		from = to;
		to = swap;
	}
	if (from == order->scratch)
		memcpy(to, from, nr * sizeof(*from));
	return true;
}

/* Lets go all that is not newer than @time. */
static bool release(struct tly_order *order, uint64_t time)
{
	size_t low = order->head, high = order->nr;

	if (!sort(order))
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (order->held[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	order->nr_ready = low;
	return true;
}

/* Returns false for records that have no time. */
static bool time_of(const struct tally_perfdata *reader, const struct tly_raw *raw, size_t event,
		    uint64_t *time)
{
	const size_t header = sizeof(struct perf_event_header);
	const struct tly_event *layout;

	if (raw->type >= TALLY_RECORD_HEADER_ATTR || !reader->nr_events)
		return false;
	layout = reader->events[event == SIZE_MAX ? 0 : event];
	if (!layout->has_time)
		return false;
	if (raw->type == PERF_RECORD_SAMPLE) {
		if (raw->size < header + layout->time_in_sample + WORD)
			return false;
		*time = tally_u64(raw->data + header + layout->time_in_sample);
	} else {
		if (!layout->time_from_end || raw->size < header + layout->time_from_end)
			return false;
		*time = tally_u64(raw->data + raw->size - layout->time_from_end);
	}
	return *time && *time != UINT64_MAX;
}

/*
 * Hands out the oldest that may go; it stays valid until the next call. Behind one that is damaged
 * nothing is.
 */
static int hand_out(struct tly_order *order, struct tally_perfdata *reader,
		    struct tally_perfdata_record *record)
{
	const struct held *held = &order->held[order->head++];
	struct tly_raw raw = {held->data, held->type, held->size, held->offset};
	int ret = tly_record_decode(reader, &raw, held->event, record);

	order->last = held->chunk;
	if (ret < 0) {
		order->nr_ready = order->head;
		order->at_end = true;
		order->status = ret;
	}
	return ret;
}

static int no_memory(struct tally_perfdata *reader)
{
	return tly_reader_fails(reader, -ENOMEM, "no memory to put its records in order");
}

/* Nothing follows what is held but @status. */
static int end(struct tly_order *order, struct tally_perfdata *reader, int status)
{
	order->at_end = true;
	order->status = status;
	if (release(order, UINT64_MAX))
		return 0;
	order->status = no_memory(reader);
	return order->status;
}

/*
 * Takes in one more record. Returns 1 when it was decoded to be handed out at once, 0 when it was
 * dealt with.
 */
static int take_in(struct tly_order *order, struct tally_perfdata *reader,
		   struct tally_perfdata_record *record)
{
	struct tly_raw raw;
	uint64_t time;
	size_t event;
	int ret = tly_stream_next(reader, &raw);

	if (ret <= 0)
		return end(order, reader, ret);
	if (raw.type == TALLY_RECORD_FINISHED_ROUND) {
		if (!release(order, order->newest_before))
			return end(order, reader, no_memory(reader));
		order->newest_before = order->newest;
		return 0;
	}
	if (!tly_record_wanted(reader, &raw, &event))
		return 0;
	if (time_of(reader, &raw, event, &time)) {
		if (hold(order, &raw, event, time))
			return 0;
		ret = no_memory(reader);
	} else {
		ret = tly_record_decode(reader, &raw, event, record);
	}
	return ret > 0 ? ret : end(order, reader, ret);
}

int tly_order_next(struct tly_order *order, struct tally_perfdata *reader,
		   struct tally_perfdata_record *record)
{
	if (order->last) {
		chunk_put(order, order->last);
		order->last = NULL;
	}
	for (;;) {
		int ret;

		if (order->head < order->nr_ready)
			return hand_out(order, reader, record);
		if (order->at_end)
			return order->status;
		ret = take_in(order, reader, record);
		if (ret)
			return ret;
	}
}
