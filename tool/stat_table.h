/* SPDX-License-Identifier: MIT */
/*
 * What `tally stat` found: a value for each event at each place. A place is all of the target, one
 * processor or one thread. The printers and the derived numbers see nothing else.
 */
#ifndef TOOL_STAT_TABLE_H
#define TOOL_STAT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <tally/counter.h>

#include "tool/spread.h"

struct stat_event {
	char *name;	  /* to be shown; ends in ":u" where only that was allowed */
	const char *unit; /* of a value times scale, or "" */
	double scale;
	const char *cgroup; /* or NULL */
	bool user_only;	    /* narrowed to user code, since no more was allowed */
	bool snapshot;	    /* a value of the moment (occupancy), not a sum of occurrences */
	uint32_t type;	    /* of the attr, by which metrics know it */
	uint64_t config;
	unsigned int excludes;	  /* attr.exclude_user, _kernel and _hv as bits 0 to 2 */
	struct tally_error error; /* code 0: it is open */
};

struct stat_place {
	int cpu;       /* -1: not by processor */
	pid_t tid;     /* -1: not by thread */
	char comm[32]; /* of the thread */
};

struct stat_cell {
	struct tally_value
		value;	      /* of the interval, or the last run that counted; time 0: unknown */
	struct spread spread; /* of tally_value.scaled over the runs that counted */
	bool absent; /* the event's unit is counted on another processor: no line for it here */
};

struct stat_table {
	struct stat_event *events;
	size_t nr_events;
	struct stat_place *places;
	size_t nr_places;
	struct stat_cell *cells; /* [place][event] */
	size_t runs;
	struct spread elapsed, user, sys; /* seconds; user and sys of a command only */
	bool has_command;
	bool waiting;	/* for the delay to end: nothing is counted yet */
	bool by_task;	/* the target is tasks, not processors */
	bool by_cgroup; /* some events are counted in a cgroup */
};

static inline struct stat_cell *stat_cell(const struct stat_table *table, size_t place,
					  size_t event)
{
	return &table->cells[place * table->nr_events + event];
}

/* The number to be shown, before the event's scale: the mean where there were several runs. */
double stat_count(const struct stat_table *table, size_t place, size_t event);

/* Whether nothing happened there, as far as it was counted. */
bool stat_idle(const struct stat_table *table, size_t place);

/* Fills in @order, nr_places long: the places by their counts of @event, the highest first. */
void stat_order(const struct stat_table *table, size_t event, size_t *order);

/* Percent of the time enabled in which the event was really counted. */
double stat_running(const struct tally_value *value);

/* What was counted between two readings of one cell of @event; of a snapshot, the later one. */
void stat_difference(const struct stat_event *event, const struct tally_value *now,
		     const struct tally_value *before, struct tally_value *difference);

/*
 * Some kernels let the clock of a cgroup jump (docs/decisions.md). Times above @most nanoseconds
 * cannot be: the value then has none, and is not scaled by them.
 */
void stat_check_times(struct tally_value *value, double most);

/* Takes back the scaling of a snapshot: an hour's level is no higher than a second's. */
void stat_unscale_snapshot(const struct stat_event *event, struct tally_value *value);

/* "kernel", "scaled", ...; "counted", "not supported", ...: the words of CSV and JSON. */
const char *stat_source_name(enum tally_source source);
const char *stat_state_name(enum tally_state state);

void stat_table_free(struct stat_table *table);

#endif
