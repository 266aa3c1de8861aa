/* SPDX-License-Identifier: MIT */
/*
 * `tally stat` in parts:
 *
 *	stat.c		the command line
 *	stat_cgroup.c	its cgroups
 *	stat_run.c	runs the command or watches the target, and when to read
 *	stat_read.c	counters into a table
 *	stat_metric.c	derived numbers
 *	stat_text.c, stat_csv.c, stat_json.c	the table, written
 */
#ifndef TOOL_STAT_H
#define TOOL_STAT_H

#include <stdio.h>

#include <tally/workload.h>

#include "tool/reasons.h"
#include "tool/stat_table.h"
#include "tool/target.h"

enum stat_format { STAT_TEXT, STAT_CSV, STAT_JSON };

/* Events that are counted on one target: several cgroups are several targets. */
struct stat_set {
	const struct tally_events *events;
	const char *cgroup; /* NULL with a target of cgroups: the whole system */
	struct tally_counters *counters;
};

struct stat_options {
	char **command; /* NULL: none */
	struct tool_target target;
	bool measure_command; /* the target is the command, and has no ids yet */
	bool out_of_reach; /* user mode could count it, and the target has been started without */
	bool no_inherit, per_cpu, per_thread;
	unsigned int interval, interval_count, timeout; /* milliseconds; 0: none */
	unsigned int delay;				/* milliseconds */
	size_t repeat;					/* 0: for ever */
	enum stat_format format;
	const char *separator; /* of CSV */
	bool big_numbers, summary;
	FILE *out;
};

struct stat_session {
	struct stat_options options;
	struct stat_set *sets;
	size_t nr_sets;
	struct stat_table table;
	struct tally_value
		*last; /* [place][event]: what the interval before ended with, or the run */
	size_t *order; /* room for each place, for printers that sort */
	double enabled_at, last_read; /* on the clock of stat_now() */
	struct tool_reasons *reasons; /* footnotes, numbered alike in all intervals */
	int wait_status;	      /* of the command, as of wait(2) */
	bool interrupted;	      /* by a signal to us */
};

/* stat_run.c: does it all and prints; returns the tool's exit status. */
int stat_run(struct stat_session *stat);

/*
 * stat_read.c: opens all counters, and on the first call lays the table out after them. Later calls
 * (of -r) must find the same places.
 */
int stat_open(struct stat_session *stat, pid_t command, struct tally_error *err);
void stat_close(struct stat_session *stat);
void stat_enable(struct stat_session *stat);
void stat_disable(struct stat_session *stat);
/* Seconds of the monotonic clock. */
double stat_now(void);
/* The values of all cells since they were enabled. */
void stat_read(struct stat_session *stat);
/* Those since the last call, or since they were enabled. */
void stat_read_interval(struct stat_session *stat);
/*
 * Takes the values into the spreads of the runs. What was not counted keeps the value of the last
 * run in which it was.
 */
void stat_add_run(struct stat_session *stat, double elapsed, const struct rusage *usage);
/* Back to the values before stat_read(). */
void stat_drop_run(struct stat_session *stat);

/* What is measured, for headings: "'make -j2'", "process 12". */
void stat_describe(const struct stat_session *stat, FILE *out);

/*
 * The printers. start: once, before all else; interval: after stat_read_interval(), @time seconds
 * since the start and @elapsed since the last; finish: the whole, after the last run.
 */
struct stat_printer {
	void (*start)(const struct stat_session *stat);
	void (*interval)(const struct stat_session *stat, double time, double elapsed);
	void (*finish)(const struct stat_session *stat);
};
extern const struct stat_printer stat_text, stat_csv, stat_json;

/* Why a cell without a number has none. */
void stat_reason(const struct stat_table *table, size_t place, size_t event, const char **what,
		 const char **remedy);

#endif
