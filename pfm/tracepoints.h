/* SPDX-License-Identifier: MIT */
/*
 * The kernel's tracepoints: each system is an event of the unit "perf" and each of its tracepoints
 * a mask of that. They are looked for when something asks for them first, as that takes longer than
 * all the rest together.
 */
#ifndef PFM_TRACEPOINTS_H
#define PFM_TRACEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracepoint_system {
	char *name;
	char *desc;
	char **points;
	char **descs;
	size_t n_points;
};

/* The systems there are; none where tracefs cannot be read. Stays as it is until forgotten. */
const struct tracepoint_system *tly_pfm_tracepoint_systems(size_t *n);

/* Returns whether the number could be read. */
bool tly_pfm_tracepoint_id(const struct tracepoint_system *system, size_t point, uint64_t *id);

/* Not while another thread uses what tly_pfm_tracepoint_systems() returned. */
void tly_pfm_tracepoints_forget(void);

#endif
