/* SPDX-License-Identifier: MIT */
/*
 * A record of the trace, taken in by the model one access and one instruction at a time, to see
 * which of them brings a counter to 0. It leaves the model and the counters as if the record had
 * been taken in as a whole.
 */
#ifndef RUNTIME_PMU_SINGLE_H
#define RUNTIME_PMU_SINGLE_H

#include <stdint.h>

#include "core/host.h"
#include "runtime/model/model.h"

/* For what is told relative to the blocks of the trace. */
enum { SINGLE_ROOM = sizeof(struct block) + 2 * sizeof(struct block_access) };

struct single {
	struct model *model;
	const struct machine *machine;
	void *room; /* SINGLE_ROOM bytes, near the trace */
	int64_t *counter;
	uint64_t fs_base;
	uint64_t watched; /* kinds whose causes are wanted */

	uint64_t found; /* kinds that have got to 0, by: */
	struct core_cause causes[CORE_HARDWARE_KINDS];
};

/* @record is one of @block, and is followed by whatever begins at @next. */
void single_run(struct single *single, const struct block *block, const uint64_t *record,
		uint64_t next);

#endif
