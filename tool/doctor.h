/* SPDX-License-Identifier: MIT */
/* What `tally doctor` found, between the finding and its two ways of telling. */
#ifndef TOOL_DOCTOR_H
#define TOOL_DOCTOR_H

#include <stdio.h>
#include <sys/utsname.h>

#include <tally/probe.h>

struct doctor {
	struct tally_system system;
	struct utsname kernel;
	long processors;
	size_t ring_budget;	/* SIZE_MAX: unlimited */
	const char *debuginfod; /* DEBUGINFOD_URLS, or NULL */
	struct tally_ability *abilities;
	size_t nr_abilities;
	bool counts, samples; /* of one's own programs: what stat and record need at least */
};

/* The ability called @name; there must be one. */
const struct tally_ability *doctor_ability(const struct doctor *doctor, const char *name);

void doctor_write_text(const struct doctor *doctor, FILE *out);
void doctor_write_json(const struct doctor *doctor, FILE *out);

#endif
