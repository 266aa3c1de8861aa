// SPDX-License-Identifier: MIT
/*
 * What a unit writes into the AUX areas of rings, into the file: of intel_bts, whose format needs
 * no more than to be named. A piece of an area goes to the file when a record tells of it, with
 * the task that the record says it is of, so that several may share a processor's area:
 *
 *	| AUXTRACE_INFO |	once	what wrote it
 *	| AUXTRACE | branches |		behind it, as they lay in the area
 *
 * Readers want to know what time it is by the processor's counter. That is said to be the time of
 * the records, which is all that they need to bring the two in order.
 */
#include "tool/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	AUX_PAGES = 1024, /* of each ring */
	RECORD_MAX = 256, /* PERF_RECORD_AUX with all that a trailer can have */
	TRIES = 1000,
	TRY_US = 100,
};

/* As perf numbers what writes AUX data. */
enum { AUXTRACE_INTEL_BTS = 2 };

struct auxtrace_info {
	struct perf_event_header header;
	uint32_t type, reserved;
	uint64_t unit, time_shift, time_mult, time_zero, has_time, snapshots;
};

struct auxtrace {
	struct perf_event_header header;
	uint64_t size, offset, time;
	uint32_t index, tid;
	int32_t cpu;
	uint32_t reserved;
};

struct aux {
	struct tally_record_format format;
	size_t nr_rings;
	uint64_t *tails; /* of each ring: bytes of its area that have been given back */
	size_t nr_tids;
	uint32_t *tids; /* readers keep apart what has different indexes: one for each task */
};

/* ---- which events ---- */

static uint32_t unit_number(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/intel_bts/type", "re");
	unsigned int type = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%u", &type) != 1)
		type = 0;
	fclose(file);
	return type;
}

/* The event that a ring is mapped by decides whether it has an area. */
static bool traces(const struct recording *r)
{
	const uint32_t unit = unit_number();

	return unit && tally_events_count(r->events) &&
	       tally_events_at(r->events, 0)->attr->type == unit;
}

size_t record_aux_pages(const struct recording *r)
{
	if (!traces(r) || r->options.overwrite || r->options.off_cpu || r->options.zstd_level)
		return 0;
	return AUX_PAGES;
}

int record_aux_begin(struct recording *r)
{
	const struct perf_event_attr *attr;
	struct auxtrace_info info = {
		.header = {TALLY_RECORD_AUXTRACE_INFO, 0, sizeof(info)},
		.type = AUXTRACE_INTEL_BTS,
		.time_mult = 1,
		.has_time = 1,
	};

	if (!record_aux_pages(r))
		return 0;
	r->aux = calloc(1, sizeof(*r->aux));
	if (!r->aux)
		return -1;
	attr = tally_events_at(r->events, 0)->attr;
	tally_record_format_init(&r->aux->format, attr);
	r->aux->nr_rings = tally_sampler_rings(r->sampler);
	r->aux->tails = calloc(r->aux->nr_rings, sizeof(*r->aux->tails));
	if (!r->aux->tails)
		return -1;
	info.unit = attr->type;
	record_write(r, &info, sizeof(info));
	return 0;
}

void record_aux_free(struct aux *aux)
{
	if (!aux)
		return;
	free(aux->tails);
	free(aux->tids);
	free(aux);
}

/* ---- pieces of an area ---- */

static uint32_t index_of(struct aux *aux, uint32_t tid)
{
	uint32_t *more;

	for (size_t i = 0; i < aux->nr_tids; i++)
		if (aux->tids[i] == tid)
			return (uint32_t)i;
	more = realloc(aux->tids, (aux->nr_tids + 1) * sizeof(*more));
	if (!more)
		return (uint32_t)aux->nr_tids; /* the next new one will have it, too */
	aux->tids = more;
	more[aux->nr_tids] = tid;
	return (uint32_t)aux->nr_tids++;
}

/* A record comes a moment before the head that it tells of. */
static bool wait_for(struct tally_ring *ring, struct tally_span span[2], uint64_t size)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		if (tally_ring_peek_aux(ring, span) >= size)
			return true;
		usleep(TRY_US);
	}
	return false;
}

/* @size bytes behind @skip of them, in pieces; returns how many. */
static int cut(const struct tally_span span[2], size_t skip, size_t size, struct iovec *to)
{
	int nr = 0;

	for (int i = 0; i < 2; i++) {
		size_t from = skip < span[i].size ? skip : span[i].size;
		size_t some = span[i].size - from < size ? span[i].size - from : size;

		skip -= from;
		size -= some;
		if (some)
			to[nr++] = (struct iovec){(char *)span[i].data + from, some};
	}
	return nr;
}

static void take(struct recording *r, size_t ring, const struct tally_record *record)
{
	struct tally_ring *its = tally_sampler_ring(r->sampler, ring);
	uint64_t *tail = &r->aux->tails[ring];
	const uint64_t size = record->aux.size, skip = record->aux.offset - *tail;
	struct auxtrace head = {
		.header = {TALLY_RECORD_AUXTRACE, 0, sizeof(head)},
		.size = size,
		.offset = record->aux.offset,
		.time = record->id.time,
		.index = index_of(r->aux, record->id.tid),
		.tid = record->id.tid,
		.cpu = -1,
	};
	struct iovec pieces[3] = {{&head, sizeof(head)}};
	struct tally_span span[2];

	if (!size || !wait_for(its, span, skip + size))
		return;
	record_write_pieces(r, pieces, 1 + cut(span, skip, size, pieces + 1));
	tally_ring_consume_aux(its, skip + size);
	*tail += skip + size;
}

/* It has been stopped, since nobody made room in time. */
static void go_on(struct recording *r)
{
	for (size_t task = 0; task < tally_counters_tasks(r->counters); task++) {
		for (size_t cpu = 0; cpu < tally_counters_cpus(r->counters); cpu++) {
			struct tally_counter *counter =
				tally_counters_at(r->counters, 0, task, cpu);

			if (counter)
				tally_counter_enable(counter, false);
		}
	}
}

/* ---- what rings say ---- */

static void copy(const struct iovec *pieces, int nr, size_t at, void *to, size_t size)
{
	for (int i = 0; i < nr && size; i++) {
		size_t some = 0;

		if (at < pieces[i].iov_len) {
			some = pieces[i].iov_len - at < size ? pieces[i].iov_len - at : size;
			memcpy(to, (const char *)pieces[i].iov_base + at, some);
			to = (char *)to + some;
			size -= some;
		}
		at = at > pieces[i].iov_len ? at - pieces[i].iov_len : 0;
	}
}

void record_aux_take(struct recording *r, size_t ring, const struct iovec *pieces, int nr)
{
	struct perf_event_header header;
	_Alignas(8) unsigned char bytes[RECORD_MAX];
	struct tally_record record;
	bool truncated = false;
	size_t whole = 0;

	for (int i = 0; i < nr; i++)
		whole += pieces[i].iov_len;
	for (size_t at = 0; at < whole; at += header.size) {
		copy(pieces, nr, at, &header, sizeof(header));
		if (header.type != PERF_RECORD_AUX || header.size > sizeof(bytes))
			continue;
		copy(pieces, nr, at, bytes, header.size);
		if (tally_record_decode(&r->aux->format, bytes, header.size, &record, NULL) !=
		    header.size)
			continue;
		take(r, ring, &record);
		truncated |= record.aux.flags & PERF_AUX_FLAG_TRUNCATED;
	}
	r->aux_cut |= truncated;
	if (truncated)
		go_on(r);
}
