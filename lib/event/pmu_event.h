/* SPDX-License-Identifier: MIT */
/* Events of sysfs units: unit/term=value,.../ */
#ifndef LIB_EVENT_PMU_EVENT_H
#define LIB_EVENT_PMU_EVENT_H

#include "lib/event/parse.h"
#include "lib/event/pmu.h"

/*
 * Appends unit/terms/ for the unit called @word, or for each that it stands for: a glob, or a name
 * without its number ("uncore_imc" or "imc" for uncore_imc_0, uncore_imc_1...). @text is the whole
 * event from @word on.
 */
int tly_pmu_add(struct tly_parse *parse, struct tly_span word, const struct tly_terms *terms,
		struct tly_span text);

/* Makes @event one of the unit @pmu: opened where its cpumask says, without bits it refuses. */
int tly_pmu_bind(struct tly_parse *parse, struct tly_event *event, const struct tly_pmu *pmu);

/* Sets a one-bit term of the unit in @event. */
int tly_pmu_set(struct tly_parse *parse, struct tly_event *event, const struct tly_pmu *pmu,
		const char *term);

/*
 * Appends the event that @word names in any unit's events/. Returns 1, 0 when there is none, or a
 * negative errno.
 */
int tly_pmu_add_event(struct tly_parse *parse, struct tly_span word);

#endif
