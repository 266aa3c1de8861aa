/* SPDX-License-Identifier: MIT */
/*
 * `tally record`, between its files:
 *
 *	record.c	  the order of things, what is said
 *	record_options.c  the command line
 *	record_events.c	  which events, and what each sample holds
 *	record_stream.c	  from the rings to the file
 *	record_off_cpu.c  context switches into samples weighted by the time off the processor
 *	record_snapshot.c the same from rings that are overwritten, on request
 *	record_aux.c	  what a unit writes into the AUX areas of rings
 */
#ifndef TOOL_RECORD_H
#define TOOL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/tally.h>

#include "tool/synth.h"
#include "tool/target.h"
#include "tool/user_mode.h"

#define NO_EVENT SIZE_MAX

struct record_options {
	const char *output;
	uint64_t frequency, period; /* 0: not given */
	bool frequency_max;	    /* -F max */
	enum tally_callgraph callgraph;
	uint32_t stack_size;
	uint64_t sample_type; /* PERF_SAMPLE_ that were asked for beside what is always sampled */
	uint64_t branch_sample_type;
	bool all_cgroups, namespaces;
	bool no_user_callchain, no_kernel_callchain;
	bool switch_events, off_cpu, no_inherit, overwrite, quiet, verbose;
	size_t pages;
	unsigned int delay_ms;
	int zstd_level;
	int clockid; /* -1: the kernel's own */
};

/*
 * With -C, the tracking event alone, on every processor: what runs on the ones to be sampled may
 * have been mapped on another. All NULL otherwise.
 */
struct record_side {
	struct tally_events *events;
	struct tally_counters *counters;
	struct tally_sampler *sampler;
};

struct off_cpu;
struct snapshots;
struct aux;

struct recording {
	const struct tool_command *command;
	struct record_options options;
	const char **argv; /* the whole command line, for the file's header */
	struct tool_target target;

	struct tally_events *events; /* all of the file */
	bool elsewhere;		     /* another process will parse them: tool/user_mode.h */
	struct record_side side;
	size_t tracking;      /* the event that carries the side-band records */
	size_t off_cpu_event; /* or NO_EVENT */
	struct tally_counters *counters;
	struct tally_sampler *sampler;
	struct tally_workload *workload;

	struct tally_perfdata_writer *writer;
	bool write_failed;
	size_t time_at; /* bytes from the start of a sample's body to its time */
	struct tally_sampler_stats stats;
	uint64_t last_time; /* of the records that were decoded */

	struct off_cpu *off_cpu;     /* with options.off_cpu */
	struct snapshots *snapshots; /* with options.overwrite */
	struct aux *aux;	     /* with an event whose unit writes an AUX area */
	bool aux_cut;		     /* some of that found no room */
};

/* What is worth knowing but no failure; nothing with -q. */
void record_note(const struct recording *r, const char *what, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- record_options.c ---- */

extern const struct tool_option record_option_rows[];
/* Of the option that record.c looks at itself, ahead of the others. */
#define RECORD_KEY_PMU 512
/* Returns 0, or the exit status after saying what is wrong. */
int record_parse_option(struct recording *r, int key, const char *argument);
int record_check_options(const struct recording *r, bool has_command);

/* ---- record_events.c ---- */

/* Adds the events that were not typed, and decides what all of them sample. */
int record_prepare_events(struct recording *r, struct tally_error *err);
/* Takes over the attrs as the kernel accepted them, and says what that leaves out. */
int record_adopt_attrs(struct recording *r, struct tally_error *err);
/* Where the counters of @event are, which becomes its index there. */
struct tally_counters *record_counters(const struct recording *r, size_t *event);

/* ---- record_stream.c ---- */

/* Starts a file at @path with its events. */
int record_open_file(struct recording *r, const char *path, struct tally_perfdata_writer **writer,
		     struct tally_error *err);
/*
 * The side-band records of what is there already: the kernel, and the target's processes or
 * @everyone. @synth is initialised here, and to be freed.
 */
void record_synthesize(struct recording *r, struct tool_synth *synth, bool everyone);
/* Moves what the rings hold to the file. After a failure, said once, it only empties the rings. */
void record_drain(struct recording *r, bool flush);
/* Writes @size bytes of whole records to the recording's file. */
void record_write(struct recording *r, const void *data, size_t size);
void record_write_failed(struct recording *r, const struct tally_error *err);
/* The samples that the kernel lost and has not told of in a record: tells, and counts them. */
void record_count_lost(struct recording *r);
/* The well-formed part of a peeked ring as pieces to write, counted; returns how many. */
int record_pieces(struct recording *r, struct tally_span span[2], struct iovec pieces[2]);
/* Writes down when the samples were taken that were counted, and finishes. */
int record_finish_file(const struct recording *r, struct tally_perfdata_writer *writer,
		       struct tally_error *err);

void record_write_pieces(struct recording *r, const struct iovec *pieces, int nr);

/* ---- record_aux.c ---- */

/* Pages of each ring's AUX area: 0 where no event wants one, or it cannot be kept. */
size_t record_aux_pages(const struct recording *r);
/* Before anything else is written. Not 0: out of memory. */
int record_aux_begin(struct recording *r);
void record_aux_free(struct aux *aux);
/* Of whole records of the sampler's ring @ring, ahead of writing them: what they tell of. */
void record_aux_take(struct recording *r, size_t ring, const struct iovec *pieces, int nr);

/* ---- record_off_cpu.c ---- */

struct off_cpu *record_off_cpu_new(const struct tally_record_format *format);
void record_off_cpu_free(struct off_cpu *off_cpu);
/*
 * Takes in a record of the off-CPU event, or a FORK or EXIT of any. Returns the sample that it
 * completes, valid until the next call, or NULL.
 */
const struct perf_event_header *record_off_cpu_feed(struct off_cpu *off_cpu,
						    const struct tally_record *record);
/* At the end: the next task that is still off its processor, up to @now; NULL after the last. */
const struct perf_event_header *record_off_cpu_finish(struct off_cpu *off_cpu, uint64_t now);

/* ---- record_snapshot.c ---- */

struct snapshots *record_snapshots_new(void);
void record_snapshots_free(struct snapshots *snapshots);
/* Begins with what /proc says of the target, or of @everyone; what was kept before is dropped. */
void record_snapshots_begin(struct recording *r, bool everyone);
/* Keeps the side-band records that have come, from the rings of either sampler. */
void record_snapshots_collect(struct recording *r);
/* Writes all that is kept, and what the overwritten rings hold, to @path. */
int record_snapshot(struct recording *r, const char *path, struct tally_error *err);

#endif
