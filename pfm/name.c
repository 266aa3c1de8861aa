// SPDX-License-Identifier: MIT
/* The fully qualified string: unit, event, masks by number, modifiers with their values. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pfm/event.h"
#include "pfm/tracepoints.h"

static void write_masks(FILE *out, const struct request *request)
{
	const struct event *event = &request->event;

	if (event->system) {
		fprintf(out, ":%s", event->system->points[request->tracepoint]);
		return;
	}
	if (request->has_raw) {
		if (event->pmu->encoder != TABLE_ENCODE_PERF_RAW)
			fprintf(out, ":0x%" PRIx64, request->raw);
		return;
	}
	for (unsigned int i = 0; i < event->entry->n_masks; i++)
		if (request_has_mask(request, i))
			fprintf(out, ":%s", table_string(table_masks(event->entry)[i].name));
}

/* Periods show where there is one, whichever of the two gave it; binding to a processor does not.
 */
static bool shows(const struct request *request, enum perf_mod mod)
{
	switch (mod) {
	case PERF_MOD_PERIOD:
	case PERF_MOD_FREQ:
		return request->perf_given & (1 << PERF_MOD_PERIOD | 1 << PERF_MOD_FREQ);
	case PERF_MOD_CPU:
	case PERF_MOD_PINNED:
		return false;
	default:
		return true;
	}
}

static uint64_t shown_value(const struct request *request, enum perf_mod mod)
{
	if (mod == PERF_MOD_PERIOD && !(request->perf_given & 1 << PERF_MOD_PERIOD))
		return request->perf_value[PERF_MOD_FREQ];
	if (mod == PERF_MOD_FREQ && !(request->perf_given & 1 << PERF_MOD_FREQ))
		return request->perf_value[PERF_MOD_PERIOD];
	return request->perf_value[mod];
}

static void write_modifiers(FILE *out, const struct request *request)
{
	unsigned int mods = tly_pfm_mods_of(&request->event, request->os);
	unsigned int perf_mods = tly_pfm_perf_mods_of(&request->event, request->os);

	for (unsigned int i = 0; i < N_MODS; i++)
		if (mods >> i & 1)
			fprintf(out, ":%s=%" PRIu64, tly_pfm_mods[i].name, request->value[i]);
	for (unsigned int i = 0; i < N_PERF_MODS; i++)
		if (perf_mods >> i & 1 && shows(request, i))
			fprintf(out, ":%s=%" PRIu64, tly_pfm_perf_mods[i].name,
				shown_value(request, i));
}

char *tly_pfm_full_name(const struct request *request)
{
	const struct event *event = &request->event;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out)
		return NULL;
	fprintf(out, "%s::", table_string(event->pmu->name));
	if (event->pmu->encoder == TABLE_ENCODE_PERF_RAW)
		fprintf(out, "r%" PRIx64, request->raw);
	else
		fputs(event->system ? event->system->name : table_string(event->entry->name), out);
	write_masks(out, request);
	write_modifiers(out, request);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
