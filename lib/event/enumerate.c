// SPDX-License-Identifier: MIT
/* tally_events_enumerate(): what there is to name. */
#include "lib/event/enumerate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/names.h"
#include "lib/event/pmu.h"
#include "lib/event/tracepoint.h"
#include "lib/event/vendor.h"

struct enumeration {
	const struct tly_roots *roots;
	int (*visit)(const struct tally_event_info *info, void *ctx);
	void *ctx;
};

static int offer(const struct enumeration *enumeration, struct tally_event_info info)
{
	const char **strings[] = {&info.alias, &info.pmu, &info.encoding, &info.unit, &info.desc};

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (!*strings[i])
			*strings[i] = "";
	return enumeration->visit(&info, enumeration->ctx);
}

static int offer_generics(const struct enumeration *enumeration, enum tally_event_kind kind,
			  uint32_t type)
{
	int ret = 0;

	for (const struct tly_generic *g = tly_generics; g->name && !ret; g++)
		if (g->type == type)
			ret = offer(enumeration, (struct tally_event_info){.kind = kind,
									   .name = g->name,
									   .alias = g->alias,
									   .desc = g->desc});
	return ret;
}

static int offer_hardware(const struct enumeration *enumeration)
{
	return offer_generics(enumeration, TALLY_EVENT_HARDWARE, PERF_TYPE_HARDWARE);
}

static int offer_software(const struct enumeration *enumeration)
{
	return offer_generics(enumeration, TALLY_EVENT_SOFTWARE, PERF_TYPE_SOFTWARE);
}

static int offer_caches(const struct enumeration *enumeration)
{
	char name[32], desc[64];
	int ret = 0;

	for (int64_t config = -1; !ret && (config = tly_cache_next(config)) >= 0;) {
		tly_cache_name(config, name, sizeof(name));
		tly_cache_describe(config, desc, sizeof(desc));
		ret = offer(enumeration, (struct tally_event_info){.kind = TALLY_EVENT_CACHE,
								   .name = name,
								   .desc = desc});
	}
	return ret;
}

static int offer_unit_event(const struct tly_pmu *pmu, const char *event, const char *encoding,
			    void *ctx)
{
	char name[2 * NAME_MAX + 4], full[NAME_MAX + 1100], unit[128] = "", desc[NAME_MAX + 192];

	if (!event)
		return 0;
	snprintf(name, sizeof(name), "%s/%s/", pmu->name, event);
	snprintf(full, sizeof(full), "%s/%s/", pmu->name, encoding);
	tly_pmu_read(pmu, "/events", tly_span_of(event), ".unit", unit, sizeof(unit));
	snprintf(desc, sizeof(desc), "event of the unit %s%s%s", pmu->name, *unit ? ", in " : "",
		 unit);
	return offer(ctx, (struct tally_event_info){.kind = TALLY_EVENT_PMU,
						    .name = name,
						    .pmu = pmu->name,
						    .encoding = full,
						    .unit = unit,
						    .desc = desc});
}

static int offer_units(const struct enumeration *enumeration)
{
	return tly_pmu_walk(enumeration->roots, offer_unit_event, (void *)enumeration);
}

static int offer_tracepoint(const char *system, const char *event, void *ctx)
{
	char name[2 * NAME_MAX + 2];

	snprintf(name, sizeof(name), "%s:%s", system, event);
	return offer(ctx, (struct tally_event_info){.kind = TALLY_EVENT_TRACEPOINT, .name = name});
}

static int offer_tracepoints(const struct enumeration *enumeration)
{
	return tly_tracepoint_walk(enumeration->roots, "*", offer_tracepoint, (void *)enumeration);
}

/* "cpu/event=N,umask=N/" of a unit with formats; kprobe and uprobe are named as probes. */
static int offer_unit_terms(const struct tly_pmu *pmu, void *ctx)
{
	char name[512], desc[NAME_MAX + 64];
	size_t used;
	char **terms;
	ssize_t nr;

	if (!strcmp(pmu->name, "kprobe") || !strcmp(pmu->name, "uprobe"))
		return 0;
	nr = tly_pmu_names(pmu, "/format", &terms);
	if (nr <= 0)
		return nr;
	used = snprintf(name, sizeof(name), "%s/", pmu->name);
	for (ssize_t i = 0; i < nr && used + strlen(terms[i]) + 5 < sizeof(name); i++)
		used += sprintf(name + used, "%s%s=N", i ? "," : "", terms[i]);
	strcpy(name + used, "/");
	free(terms);
	snprintf(desc, sizeof(desc), "any event of the unit %s, by its terms", pmu->name);
	return offer(ctx, (struct tally_event_info){.kind = TALLY_EVENT_RAW,
						    .name = name,
						    .pmu = pmu->name,
						    .desc = desc});
}

static int offer_raw(const struct enumeration *enumeration)
{
	int ret = offer(enumeration,
			(struct tally_event_info){.kind = TALLY_EVENT_RAW,
						  .name = "rHEX",
						  .desc = "any event of the processor, by the "
							  "number that its manual gives"});

	return ret ? ret : tly_pmu_each(enumeration->roots, offer_unit_terms, (void *)enumeration);
}

static int offer_breakpoint(const struct enumeration *enumeration)
{
	return offer(enumeration,
		     (struct tally_event_info){.kind = TALLY_EVENT_BREAKPOINT,
					       .name = "mem:ADDRESS[/LENGTH][:rwx]",
					       .desc = "reads, writes or executions of memory"});
}

static int offer_probes(const struct enumeration *enumeration)
{
	static const struct {
		const char *unit, *name, *desc;
	} rows[] = {
		{"kprobe", "kprobe:FUNCTION[+OFFSET]", "a kernel function is entered"},
		{"kprobe", "kretprobe:FUNCTION", "a kernel function returns"},
		{"uprobe", "uprobe:PATH:FUNCTION[+OFFSET]",
		 "a function of a program or library is entered"},
		{"uprobe", "uprobe:PATH:0xOFFSET", "the code at an offset of a file is executed"},
		{"uprobe", "uretprobe:PATH:FUNCTION", "a function of a program or library returns"},
	};
	struct tly_pmu pmu;
	int ret = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && !ret; i++)
		if (!tly_pmu_find(enumeration->roots, tly_span_of(rows[i].unit), &pmu))
			ret = offer(enumeration,
				    (struct tally_event_info){.kind = TALLY_EVENT_PROBE,
							      .name = rows[i].name,
							      .pmu = rows[i].unit,
							      .desc = rows[i].desc});
	return ret;
}

static int offer_vendors(const struct tly_vendor_event *event, void *ctx)
{
	return offer(ctx, (struct tally_event_info){.kind = TALLY_EVENT_VENDOR,
						    .name = event->name,
						    .pmu = event->unit,
						    .encoding = event->encoding,
						    .desc = event->desc});
}

static int offer_vendor(const struct enumeration *enumeration)
{
	return tly_vendor_walk(false, offer_vendors, (void *)enumeration);
}

static int offer_others(const struct tly_vendor_event *event, void *ctx)
{
	return offer(ctx, (struct tally_event_info){.kind = TALLY_EVENT_FOREIGN,
						    .name = event->name,
						    .pmu = event->unit,
						    .desc = event->desc});
}

static int offer_foreign(const struct enumeration *enumeration)
{
	return tly_vendor_walk(true, offer_others, (void *)enumeration);
}

int tly_events_enumerate(unsigned int kinds, const struct tly_roots *roots,
			 int (*visit)(const struct tally_event_info *info, void *ctx), void *ctx,
			 struct tally_error *err)
{
	static int (*const offers[TALLY_EVENT_KINDS])(const struct enumeration *enumeration) = {
		[TALLY_EVENT_HARDWARE] = offer_hardware,
		[TALLY_EVENT_SOFTWARE] = offer_software,
		[TALLY_EVENT_CACHE] = offer_caches,
		[TALLY_EVENT_PMU] = offer_units,
		[TALLY_EVENT_TRACEPOINT] = offer_tracepoints,
		[TALLY_EVENT_RAW] = offer_raw,
		[TALLY_EVENT_BREAKPOINT] = offer_breakpoint,
		[TALLY_EVENT_PROBE] = offer_probes,
		[TALLY_EVENT_VENDOR] = offer_vendor,
		[TALLY_EVENT_FOREIGN] = offer_foreign,
	};
	const struct enumeration enumeration = {.roots = roots, .visit = visit, .ctx = ctx};

	for (unsigned int kind = 0; kind < TALLY_EVENT_KINDS; kind++) {
		int ret = kinds & 1u << kind ? offers[kind](&enumeration) : 0;

		if (ret == -ENOMEM)
			return tly_error(err, -ENOMEM, "out of memory");
		/* A folder that is missing or closed to us; what @visit returns is not negative. */
		if (ret > 0)
			return ret;
	}
	return 0;
}

int tally_events_enumerate(unsigned int kinds,
			   int (*visit)(const struct tally_event_info *info, void *ctx), void *ctx,
			   struct tally_error *err)
{
	return tly_events_enumerate(kinds, &tly_roots_default, visit, ctx, err);
}
