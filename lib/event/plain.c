// SPDX-License-Identifier: MIT
#include "lib/event/plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/event/names.h"
#include "lib/event/nearest.h"
#include "lib/event/pmu.h"
#include "lib/event/tracepoint.h"
#include "lib/event/vendor.h"

/* Looks for several kinds of core once for each text, and only when an event depends on it. */
static int find_cores(struct tly_parse *parse)
{
	if (parse->nr_cores < 0)
		parse->nr_cores = tly_pmu_cores(parse->roots, &parse->cores);
	return parse->nr_cores;
}

static int add_on_core(struct tly_parse *parse, const struct tly_pmu *pmu, uint32_t type,
		       uint64_t config, struct tly_span word)
{
	char name[sizeof(pmu->name) + 64];
	struct tly_event *event;

	snprintf(name, sizeof(name), "%s/%.*s/", pmu->name, TLY_SPAN(word));
	if (type == PERF_TYPE_RAW)
		type = pmu->type;
	else
		config = tly_pmu_generic_config(pmu, config);
	event = tly_parse_add(parse, type, config, tly_span_of(name));
	if (!event)
		return tly_parse_no_memory(parse);
	event->core = true;
	event->event.pmu = tly_event_string(event, pmu->name, strlen(pmu->name));
	return event->event.pmu ? 0 : tly_parse_no_memory(parse);
}

int tly_plain_add(struct tly_parse *parse, struct tly_span word)
{
	const struct tly_generic *generic = tly_generic_find(word.at, word.length);
	int cores = 0, ret = 0;
	uint64_t config;
	uint32_t type;

	if (generic) {
		type = generic->type;
		config = generic->config;
	} else if (tly_cache_parse(word.at, word.length, &config)) {
		type = PERF_TYPE_HW_CACHE;
	} else if (tly_raw_config(word, &config)) {
		type = PERF_TYPE_RAW;
	} else {
		return 0;
	}
	if (type != PERF_TYPE_SOFTWARE)
		cores = find_cores(parse);
	if (cores < 0)
		return tly_parse_no_memory(parse);
	if (!cores && !tly_parse_add(parse, type, config, word))
		return tly_parse_no_memory(parse);
	for (int i = 0; !ret && i < cores; i++)
		ret = add_on_core(parse, &parse->cores[i], type, config, word);
	return ret ? ret : 1;
}

int tly_plain_unknown(struct tly_parse *parse, struct tly_span word)
{
	static const char *const times[] = {"duration_time", "user_time", "system_time"};
	char remedy[sizeof(parse->err->remedy)], cache[32];
	struct tly_nearest nearest;
	struct tly_pmu unit;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (tly_span_is(word, times[i])) {
			tly_parse_error(parse, -ENOENT, word.at, "'%s' is not an event", times[i]);
			return tly_error_remedy(parse->err, "'tally stat' prints the elapsed, "
							    "user and system time of itself");
		}
	if (!tly_pmu_find(parse->roots, word, &unit)) {
		tly_parse_error(parse, -ENOENT, word.at, "'%s' is a unit, not an event", unit.name);
		return tly_error_remedy(parse->err,
					"name what it shall count, as in %s/config=0/; 'tally list "
					"%s' shows what it can",
					unit.name, unit.name);
	}
	tly_parse_error(parse, -ENOENT, word.at, "no event '%.*s'", TLY_SPAN(word));
	tly_nearest_init(&nearest, word.at, word.length);
	for (const struct tly_generic *g = tly_generics; g->name; g++) {
		tly_nearest_consider(&nearest, g->name, NULL);
		tly_nearest_consider(&nearest, g->alias, NULL);
	}
	for (int64_t config = -1; (config = tly_cache_next(config)) >= 0;) {
		tly_cache_name(config, cache, sizeof(cache));
		tly_nearest_consider(&nearest, cache, NULL);
	}
	tly_pmu_suggest(parse->roots, &nearest);
	tly_tracepoint_suggest(parse->roots, &nearest);
	tly_vendor_suggest(&nearest);
	if (!tly_nearest_format(&nearest, remedy, sizeof(remedy)))
		return tly_error_remedy(parse->err,
					"'tally list' shows the events of this machine");
	return tly_error_remedy(parse->err, "%s", remedy);
}

int tly_plain_split_group(struct tly_parse *parse, size_t first)
{
	struct tly_event **events = parse->events->events + first;
	size_t nr = parse->events->nr - first, next = 0;
	struct tly_event **sorted = malloc(nr * sizeof(*sorted));

	if (!sorted)
		return tly_parse_no_memory(parse);
	while (next < nr) {
		size_t leader = next;
		const char *unit = NULL;

		for (size_t i = 0; i < nr; i++) {
			if (!events[i])
				continue;
			if (events[i]->core && !unit)
				unit = events[i]->event.pmu;
			/* Software events lead or join the first group, as typed. */
			if (events[i]->core ? strcmp(unit, events[i]->event.pmu) != 0 : leader > 0)
				continue;
			events[i]->event.leader = first + leader;
			sorted[next++] = events[i];
			events[i] = NULL;
		}
	}
	memcpy(events, sorted, nr * sizeof(*sorted));
	free(sorted);
	return 0;
}
