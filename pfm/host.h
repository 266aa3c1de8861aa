/* SPDX-License-Identifier: MIT */
/* What pfm_initialize() found out: the units of this machine and what the environment asks for. */
#ifndef PFM_HOST_H
#define PFM_HOST_H

#include <stdbool.h>
#include <stdio.h>

#include "pfm/table.h"

struct processor {
	int vendor; /* enum table_vendor, -1 if it is another's */
	unsigned int family, model, stepping;
	bool is_virtual;	      /* within a tally run */
	unsigned int counters, fixed; /* that Intel's architecture tells of */
};

struct host {
	bool ready;
	int result;	      /* of the initialization */
	bool encode_inactive; /* LIBPFM_ENCODE_INACTIVE */
	bool forced;	      /* LIBPFM_FORCE_PMU */
	bool verbose, debug;
	FILE *out;
	unsigned int arch_counters, arch_fixed; /* of Intel's architected unit */
	uint64_t present[16];			/* bits by position in the table */
	unsigned int end; /* no loop over units has to look at this number or a greater one */
};

/* Only pfm_initialize() and pfm_terminate() write it. */
extern struct host tly_pfm_host __attribute__((visibility("hidden")));

/* The processor that this runs on. */
struct processor tly_pfm_processor(void);

void tly_pfm_detect(struct host *host, const struct processor *cpu);

static inline bool host_has(const struct table_pmu *pmu)
{
	size_t i = pmu - table_pmus();

	return tly_pfm_host.present[i / 64] >> (i % 64) & 1;
}

/* Whether the environment lets a unit that no table has be used. */
bool tly_pfm_may_have(const char *name);

/* The unit with an id, NULL without a table. */
const struct table_pmu *tly_pfm_unit(unsigned int id);

/* The type of perf_event_attr for one of the unit's devices in sysfs, or -1. */
int tly_pfm_device_type(const struct table_pmu *pmu);

/* Say why a string was refused, or what was found, for LIBPFM_VERBOSE and LIBPFM_DEBUG. */
void tly_pfm_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tly_pfm_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
