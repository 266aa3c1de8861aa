// SPDX-License-Identifier: MIT
/*
 * From the rings to the file. The bytes are moved as they are: what a drain finds in all rings goes
 * into one write, and only the headers are looked at, for the sizes (which nobody else has checked)
 * and the counts. With --off-cpu alone, records are decoded and put in order.
 */
#include "tool/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RINGS_PER_WRITE 128
#define BATCH_BYTES	(128 * 1024)

/* ---- files ---- */

static int add_ids(struct recording *r, struct tally_perfdata_writer *writer, size_t event,
		   uint64_t *ids)
{
	size_t nr = 0, index = event;
	struct tally_counters *counters = record_counters(r, &index);

	for (size_t task = 0; task < tally_counters_tasks(counters); task++) {
		for (size_t cpu = 0; cpu < tally_counters_cpus(counters); cpu++) {
			struct tally_counter *counter =
				tally_counters_at(counters, index, task, cpu);

			if (counter && tally_counter_id(counter, &ids[nr]) == 0)
				nr++;
		}
	}
	return tally_perfdata_writer_ids(writer, event, ids, nr);
}

static int add_all_ids(struct recording *r, struct tally_perfdata_writer *writer,
		       struct tally_error *err)
{
	const struct tally_counters *widest = r->side.counters ? r->side.counters : r->counters;
	size_t max = tally_counters_tasks(widest) * tally_counters_cpus(widest);
	uint64_t *ids = calloc(max, sizeof(*ids));
	int ret = ids ? 0 : -ENOMEM;

	for (size_t i = 0; ret == 0 && i < tally_events_count(r->events); i++)
		ret = add_ids(r, writer, i, ids);
	free(ids);
	if (ret < 0) {
		*err = (struct tally_error){.code = ret, .offset = TALLY_NO_OFFSET};
		strcpy(err->what, "out of memory");
	}
	return ret;
}

static bool samples_kernel(const struct recording *r)
{
	for (size_t i = 0; i < tally_events_count(r->events); i++)
		if (!tally_events_at(r->events, i)->attr->exclude_kernel)
			return true;
	return false;
}

static void add_kernel_build_id(struct tally_perfdata_writer *writer)
{
	struct tally_perfdata_build_id kernel = {
		.filename = "[kernel.kallsyms]",
		.pid = -1,
		.misc = PERF_RECORD_MISC_KERNEL,
	};

	kernel.size = tally_build_id_read("/sys/kernel/notes", kernel.build_id);
	if (kernel.size)
		tally_perfdata_writer_build_id(writer, &kernel);
}

void record_synthesize(struct recording *r, struct tool_synth *synth, bool everyone)
{
	const struct perf_event_attr *tracking = tally_events_at(r->events, r->tracking)->attr;
	const struct tally_target *target = &r->target.target;
	struct tally_record_format format;

	tally_record_format_init(&format, tracking);
	tool_synth_init(synth, "", format.trailer_size);
	synth->data_maps = tracking->mmap_data;
	if (samples_kernel(r) && !tool_synth_kernel(synth))
		record_note(r, "the kernel hides its addresses from this user: its functions will "
			       "have no names (sudo sysctl kernel.kptr_restrict=0 "
			       "kernel.perf_event_paranoid=1)");
	if (everyone || target->kind == TALLY_TARGET_SYSTEM ||
	    target->kind == TALLY_TARGET_CGROUP) {
		tool_synth_all(synth);
	} else if (tool_target_given(&r->target)) {
		tool_synth_thread_map(synth, target->ids, target->nr_ids);
		for (size_t i = 0; i < target->nr_ids; i++)
			tool_synth_process(synth, target->ids[i]);
	}
	if (r->options.all_cgroups)
		tool_synth_cgroups(synth);
	if (target->nr_cpus)
		tool_synth_cpu_map(synth, target->cpus, target->nr_cpus);
}

int record_open_file(struct recording *r, const char *path, struct tally_perfdata_writer **writer,
		     struct tally_error *err)
{
	const struct tally_perfdata_options options = {
		.zstd_level = r->options.zstd_level,
		.argv = (const char *const *)r->argv,
		.clockid = r->options.clockid,
	};
	int ret = tally_perfdata_create(path, r->events, &options, writer, err);

	if (ret < 0)
		return ret;
	ret = add_all_ids(r, *writer, err);
	if (ret < 0) {
		tally_perfdata_finish(*writer, NULL);
		*writer = NULL;
		return ret;
	}
	if (samples_kernel(r))
		add_kernel_build_id(*writer);
	return 0;
}

int record_finish_file(const struct recording *r, struct tally_perfdata_writer *writer,
		       struct tally_error *err)
{
	if (r->stats.last_time)
		tally_perfdata_writer_times(writer, r->stats.first_time, r->stats.last_time);
	return tally_perfdata_finish(writer, err);
}

/* ---- writing ---- */

void record_write_pieces(struct recording *r, const struct iovec *pieces, int nr)
{
	struct tally_error err;

	if (r->write_failed || !nr || tally_perfdata_write(r->writer, pieces, nr, &err) >= 0)
		return;
	record_write_failed(r, &err);
}

void record_write(struct recording *r, const void *data, size_t size)
{
	const struct iovec piece = {.iov_base = (void *)data, .iov_len = size};

	if (size)
		record_write_pieces(r, &piece, 1);
}

void record_write_failed(struct recording *r, const struct tally_error *err)
{
	r->write_failed = true;
	tool_error(err);
}

/* ---- draining ---- */

int record_pieces(struct recording *r, struct tally_span span[2], struct iovec pieces[2])
{
	size_t whole = tally_ring_scan(span, r->time_at, &r->stats);
	int nr = 0;

	for (int i = 0; i < 2 && whole; i++) {
		size_t size = span[i].size < whole ? span[i].size : whole;

		if (size)
			pieces[nr++] = (struct iovec){(void *)span[i].data, size};
		whole -= size;
	}
	return nr;
}

static bool drain_bytes(struct recording *r, struct tally_sampler *sampler)
{
	size_t nr_rings = tally_sampler_rings(sampler);
	bool any = false;

	for (size_t first = 0; first < nr_rings; first += RINGS_PER_WRITE) {
		size_t last =
			first + RINGS_PER_WRITE < nr_rings ? first + RINGS_PER_WRITE : nr_rings;
		struct iovec pieces[2 * RINGS_PER_WRITE];
		size_t taken[RINGS_PER_WRITE];
		int nr = 0, some;

		for (size_t i = first; i < last; i++) {
			struct tally_span span[2];

			taken[i - first] = tally_ring_peek(tally_sampler_ring(sampler, i), span);
			if (!taken[i - first])
				continue;
			some = record_pieces(r, span, pieces + nr);
			if (r->aux && sampler == r->sampler)
				record_aux_take(r, i, pieces + nr, some);
			nr += some;
		}
		if (!nr)
			continue;
		any = true;
		record_write_pieces(r, pieces, nr);
		for (size_t i = first; i < last; i++)
			if (taken[i - first])
				tally_ring_consume(tally_sampler_ring(sampler, i),
						   taken[i - first]);
	}
	return any;
}

/* Gathers records for one write. */
struct batch {
	unsigned char data[BATCH_BYTES];
	size_t size;
	bool any;
};

static void batch_flush(struct recording *r, struct batch *batch)
{
	record_write(r, batch->data, batch->size);
	batch->size = 0;
}

static void count_sample(struct recording *r, const struct perf_event_header *sample)
{
	struct tally_sampler_stats *stats = &r->stats;
	uint64_t time;

	stats->samples++;
	if (r->time_at >= sample->size ||
	    sample->size - sizeof(*sample) < r->time_at + sizeof(time))
		return;
	memcpy(&time, (const char *)(sample + 1) + r->time_at, sizeof(time));
	if (!stats->first_time || time < stats->first_time)
		stats->first_time = time;
	if (time > stats->last_time)
		stats->last_time = time;
}

static void batch_add(struct recording *r, struct batch *batch,
		      const struct perf_event_header *record)
{
	if (batch->size + record->size > sizeof(batch->data))
		batch_flush(r, batch);
	memcpy(batch->data + batch->size, record, record->size);
	batch->size += record->size;
	batch->any = true;
	if (record->type == PERF_RECORD_SAMPLE)
		count_sample(r, record);
}

/* Records that --off-cpu takes in and answers with samples; tasks' beginnings and ends are both. */
static bool is_off_cpu(const struct recording *r, const struct tally_record *record, bool sampled)
{
	if (record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT)
		record_off_cpu_feed(r->off_cpu, record);
	return sampled &&
	       (record->type == PERF_RECORD_SAMPLE || record->type == PERF_RECORD_SWITCH ||
		record->type == PERF_RECORD_SWITCH_CPU_WIDE);
}

static void decode_rings(struct recording *r, struct tally_sampler *sampler, bool flush,
			 struct batch *batch)
{
	const struct perf_event_header *sample;
	struct tally_record record;
	struct tally_error err;
	size_t event;
	int ret;

	do {
		ret = tally_sampler_next(sampler, flush, &record, &event, &err);
		if (ret != 1)
			continue;
		if (record.id.time > r->last_time)
			r->last_time = record.id.time;
		if (is_off_cpu(r, &record, sampler == r->sampler && event == r->off_cpu_event))
			sample = record_off_cpu_feed(r->off_cpu, &record);
		else
			sample = record.raw;
		if (sample)
			batch_add(r, batch, sample);
	} while (ret == 1 || ret == -EBADMSG);
}

static bool drain_records(struct recording *r, bool flush)
{
	struct batch *batch = malloc(sizeof(*batch));
	const struct perf_event_header *sample;
	bool any;

	if (!batch)
		return false;
	batch->size = 0;
	batch->any = false;
	if (r->side.sampler)
		decode_rings(r, r->side.sampler, true, batch);
	decode_rings(r, r->sampler, flush, batch);
	/* Time goes no further: what still waits has waited until now. */
	while (flush && (sample = record_off_cpu_finish(r->off_cpu, r->last_time)))
		batch_add(r, batch, sample);
	batch_flush(r, batch);
	any = batch->any;
	free(batch);
	return any;
}

static bool drain_both(struct recording *r)
{
	bool any = r->side.sampler && drain_bytes(r, r->side.sampler);

	return drain_bytes(r, r->sampler) || any;
}

void record_drain(struct recording *r, bool flush)
{
	if (r->snapshots)
		record_snapshots_collect(r);
	else if ((r->off_cpu ? drain_records(r, flush) : drain_both(r)) && !r->write_failed)
		tally_perfdata_writer_round(r->writer, NULL);
}

void record_count_lost(struct recording *r)
{
	struct tally_sampler_stats stats = {0};
	struct tally_record_format format;
	struct tool_synth synth;
	uint64_t lost = 0;

	if (r->off_cpu) {
		tally_sampler_stats(r->sampler, &stats);
		r->stats.lost = stats.lost;
		r->stats.throttled = stats.throttled;
		r->stats.corrupt = stats.corrupt;
	}
	for (size_t i = 0; i < tally_events_count(r->events); i++) {
		size_t index = i;
		struct tally_counters *counters = record_counters(r, &index);
		struct tally_value value;

		if (tally_counters_sum(counters, index, &value) == 0)
			lost += value.lost;
	}
	/* An overwrite ring loses by design, and says nothing of it. */
	if (r->snapshots || lost <= r->stats.lost)
		return;
	tally_record_format_init(&format, tally_events_at(r->events, r->tracking)->attr);
	tool_synth_init(&synth, "", format.trailer_size);
	tool_synth_lost_samples(&synth, lost - r->stats.lost);
	record_write(r, synth.data, synth.size);
	tool_synth_free(&synth);
	r->stats.lost = lost;
}
