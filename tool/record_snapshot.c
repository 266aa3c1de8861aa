// SPDX-License-Identifier: MIT
/*
 * A flight recorder: samples go to rings that the kernel overwrites, and a snapshot writes what
 * they hold. Side-band records go to rings of their own and are kept, since the oldest mapping may
 * be the one that the newest sample needs. When they have grown to KEEP_BYTES, they are replaced by
 * what /proc says then: that forgets only what has ended before.
 */
#include "tool/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_BYTES ((size_t)64 * 1024 * 1024)

struct snapshots {
	unsigned char *data;
	size_t size, max;
};

struct snapshots *record_snapshots_new(void)
{
	return calloc(1, sizeof(struct snapshots));
}

void record_snapshots_free(struct snapshots *snapshots)
{
	if (snapshots)
		free(snapshots->data);
	free(snapshots);
}

static bool keep(struct snapshots *s, const void *data, size_t size)
{
	if (s->size + size > s->max) {
		size_t max = s->max ? s->max : 64 * 1024;

		while (max < s->size + size)
			max *= 2;
		unsigned char *grown = realloc(s->data, max);

		if (!grown)
			return false;
		s->data = grown;
		s->max = max;
	}
	memcpy(s->data + s->size, data, size);
	s->size += size;
	return true;
}

void record_snapshots_begin(struct recording *r, bool everyone)
{
	struct tool_synth synth;

	r->snapshots->size = 0;
	record_synthesize(r, &synth, everyone);
	keep(r->snapshots, synth.data, synth.size);
	tool_synth_free(&synth);
}

static void collect(struct recording *r, struct tally_sampler *sampler)
{
	for (size_t i = 0; i < tally_sampler_rings(sampler); i++) {
		struct tally_ring *ring = tally_sampler_ring(sampler, i);
		struct tally_span span[2];
		struct iovec pieces[2];
		size_t bytes;
		int nr;

		if (tally_sampler_ring_is_backward(sampler, i))
			continue;
		bytes = tally_ring_peek(ring, span);
		nr = record_pieces(r, span, pieces);
		for (int p = 0; p < nr; p++) {
			if (r->snapshots->size + pieces[p].iov_len > KEEP_BYTES ||
			    !keep(r->snapshots, pieces[p].iov_base, pieces[p].iov_len)) {
				record_snapshots_begin(r, true);
				break;
			}
		}
		tally_ring_consume(ring, bytes);
	}
}

void record_snapshots_collect(struct recording *r)
{
	collect(r, r->sampler);
	if (r->side.sampler)
		collect(r, r->side.sampler);
}

/* Copies what the overwritten rings hold, while they stand still. */
static bool copy_rings(struct recording *r, struct snapshots *copy)
{
	bool whole = true;

	for (size_t i = 0; i < tally_sampler_rings(r->sampler); i++) {
		struct tally_ring *ring = tally_sampler_ring(r->sampler, i);
		struct tally_span span[2];
		struct iovec pieces[2];
		size_t bytes;
		int nr;

		if (!tally_sampler_ring_is_backward(r->sampler, i))
			continue;
		bytes = tally_ring_peek(ring, span);
		nr = record_pieces(r, span, pieces);
		for (int p = 0; p < nr; p++)
			whole &= keep(copy, pieces[p].iov_base, pieces[p].iov_len);
		tally_ring_consume(ring, bytes);
	}
	return whole;
}

static int write_snapshot(struct recording *r, const char *path, const struct snapshots *copy,
			  struct tally_error *err)
{
	const struct iovec pieces[2] = {
		{r->snapshots->data, r->snapshots->size},
		{copy->data, copy->size},
	};
	struct tally_perfdata_writer *writer;
	int ret = record_open_file(r, path, &writer, err);

	if (ret < 0)
		return ret;
	/* The first failure is the one that finishing repeats. */
	tally_perfdata_write(writer, pieces, 2, NULL);
	return record_finish_file(r, writer, err);
}

int record_snapshot(struct recording *r, const char *path, struct tally_error *err)
{
	struct snapshots copy = {0};
	bool whole;
	int ret;

	/* What comes while the output is paused is lost: it lasts for a copy in memory only. */
	tally_sampler_pause(r->sampler, true);
	r->stats.samples = r->stats.first_time = r->stats.last_time = 0;
	whole = copy_rings(r, &copy);
	tally_sampler_pause(r->sampler, false);
	/* Every mapping that a sample needs was written before the sample. */
	record_snapshots_collect(r);
	ret = write_snapshot(r, path, &copy, err);
	free(copy.data);
	if (ret == 0 && !whole) {
		*err = (struct tally_error){.code = -ENOMEM, .offset = TALLY_NO_OFFSET};
		strcpy(err->what, "out of memory: the snapshot is incomplete");
		ret = err->code;
	}
	return ret;
}
