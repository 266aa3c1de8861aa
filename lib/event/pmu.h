/* SPDX-License-Identifier: MIT */
/*
 * Units of /sys/bus/event_source/devices: what their files say turns "unit/term=value,.../" into
 * an attr.
 *
 *	type		attr.type
 *	format/NAME	where a term's bits lie: "config:0-7,21", "config1:0-15"
 *	events/NAME	an event: terms, "event=0x3c,umask=0x01"; beside it NAME.unit, .scale...
 *	cpumask		the processors to open its events on
 *	cpus		of a processor's own unit: the processors that have it
 */
#ifndef LIB_EVENT_PMU_H
#define LIB_EVENT_PMU_H

#include <limits.h>
#include <sys/types.h>

#include "lib/event/nearest.h"
#include "lib/event/parse.h"

struct tly_pmu {
	char name[NAME_MAX + 1];
	char path[PATH_MAX];
	uint32_t type;
	bool core; /* a processor's own: the one that generic events are counted by */
};

/* Returns 0, or -ENOENT when there is no such unit. */
int tly_pmu_find(const struct tly_roots *roots, struct tly_span name, struct tly_pmu *pmu);

/* Calls @visit for each unit, sorted by name; stops when it returns non-zero, returning that. */
int tly_pmu_each(const struct tly_roots *roots, int (*visit)(const struct tly_pmu *pmu, void *ctx),
		 void *ctx);

/*
 * Reads the file @folder/@name@suffix of the unit, as tly_read_file(); -ENOENT also for names that
 * are no single path component.
 */
ssize_t tly_pmu_read(const struct tly_pmu *pmu, const char *folder, struct tly_span name,
		     const char *suffix, char *buf, size_t size);

/*
 * The names in a folder of the unit, sorted; *@names is to be freed. None when there is no such
 * folder; -ENOMEM.
 */
ssize_t tly_pmu_names(const struct tly_pmu *pmu, const char *folder, char ***names);

/* Whether a file in events/ says more about the event of the same name: NAME.scale... */
bool tly_pmu_is_attribute(const char *name);

/*
 * Finds the event @name, as spelt or else whatever its case, and reads what it stands for into
 * @buf. Fills in @spelt, of NAME_MAX + 1 bytes. Returns the length, -ENOENT when there is none.
 */
ssize_t tly_pmu_find_event(const struct tly_pmu *pmu, struct tly_span name, char *spelt, char *buf,
			   size_t size);

/*
 * Calls @visit for each unit, then for each of its events with its name and what it stands for.
 * Stops when that returns non-zero, and returns that.
 */
int tly_pmu_walk(const struct tly_roots *roots,
		 int (*visit)(const struct tly_pmu *pmu, const char *event, const char *encoding,
			      void *ctx),
		 void *ctx);

/* Offers all events of all units as suggestions. */
void tly_pmu_suggest(const struct tly_roots *roots, struct tly_nearest *nearest);

/*
 * attr.config of a generic event on one of the processors' own units: which one is meant stands
 * above the event's number (ABI: type.hw-extended).
 */
uint64_t tly_pmu_generic_config(const struct tly_pmu *pmu, uint64_t config);

/*
 * The processors' own units when there are several, as on a machine with two kinds of cores: then
 * each generic event has to be opened once for each of them. Returns how many, 0 when there is one
 * kind or none; *@pmus is to be freed with free().
 */
int tly_pmu_cores(const struct tly_roots *roots, struct tly_pmu **pmus);

#endif
