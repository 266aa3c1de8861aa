/* SPDX-License-Identifier: MIT */
/*
 * Records of the trace, taken in by the model: as many at a time as bring no counter to 0 for which
 * somebody waits, and the others each by itself (single.h).
 */
#ifndef RUNTIME_PMU_INTAKE_H
#define RUNTIME_PMU_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/pmu/single.h"

struct intake {
	struct single single;
	struct compiled_end *end; /* where the model comes back to behind many */
	struct block *part;	  /* room for what was executed of a block */
};

/* Those up to @end, a word behind which may be written. The program is at @pc then; @last: and goes
 * on there. */
void intake_records(struct intake *intake, uint64_t *record, uint64_t *end, uint64_t pc, bool last);

/* The one at @record, which was left after @insns instructions; the program is at @pc. */
void intake_part(struct intake *intake, const uint64_t *record, unsigned int insns, uint64_t pc);

#endif
