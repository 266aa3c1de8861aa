/* SPDX-License-Identifier: MIT */
/*
 * PERF_SAMPLE_READ: samples that carry the values of a group's counters. Each value is how far one
 * event has counted, so each sample stands for as much of every member as was counted since the
 * last one.
 */
#ifndef TOOL_READS_H
#define TOOL_READS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/perfdata.h>

struct reads;

struct reads *reads_new(const struct tally_perfdata *reader);
void reads_free(struct reads *reads);

/* Begins with the values of @sample, of event @event; @sample must stay until the last one. */
void reads_start(struct reads *reads, size_t event, const struct tally_sample *sample);
/* The next event that has counted, and by how much; false after the last. */
bool reads_next(struct reads *reads, size_t *event, uint64_t *period);

#endif
