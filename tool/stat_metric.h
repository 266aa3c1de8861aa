/* SPDX-License-Identifier: MIT */
/* Numbers derived from counts: instructions per cycle, miss rates, rates per second. */
#ifndef TOOL_STAT_METRIC_H
#define TOOL_STAT_METRIC_H

#include "tool/stat_table.h"

struct stat_metric {
	double value;
	const char *unit; /* "insn per cycle"; "/sec" for a rate */
	bool rate;	  /* per second: large or small, so that people want a prefix */
	bool percent;	  /* the unit goes on after a percent sign */
};

/*
 * The metric shown beside @event at @place; false when there is none, because the event or what it
 * is compared to was not counted. @elapsed is in seconds.
 */
bool stat_metric(const struct stat_table *table, size_t place, size_t event, double elapsed,
		 struct stat_metric *metric);

#endif
