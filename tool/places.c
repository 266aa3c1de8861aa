// SPDX-License-Identifier: MIT
#include "tool/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "tool/filter.h"
#include "tool/lookup.h"
#include "tool/memory.h"

#define MOST_FRAMES 64

struct places {
	struct tally_machine *machine;
	unsigned int flags;

	struct place *places;
	size_t nr, room;
	struct lookup by_ip;

	struct frame *frames;
	size_t nr_frames, frames_room;

	struct function *functions;
	size_t nr_functions, functions_room;
	struct lookup by_function;

	struct tally_dso **dsos;
	size_t nr_dsos, dsos_room;
	struct lookup by_dso;

	char **sources;
	size_t nr_sources, sources_room;
	struct lookup by_source;
};

static uint32_t number_source(struct places *places, const char *text);
static uint32_t number_dso(struct places *places, struct tally_dso *dso);
static uint32_t number_function(struct places *places, const struct function *wanted);

struct places *places_new(struct tally_machine *machine)
{
	struct places *places = tool_alloc(1, sizeof(*places));

	places->machine = machine;
	number_source(places, UNKNOWN);
	number_dso(places, NULL);
	number_function(places,
			&(struct function){.name = UNKNOWN, .nameless = true, .level = '.'});
	return places;
}

void places_want(struct places *places, unsigned int flags)
{
	places->flags = flags;
}

void places_free(struct places *places)
{
	if (!places)
		return;
	for (size_t i = 0; i < places->nr_sources; i++)
		free(places->sources[i]);
	free(places->sources);
	free(places->dsos);
	free(places->functions);
	free(places->frames);
	free(places->places);
	lookup_free(&places->by_ip);
	lookup_free(&places->by_function);
	lookup_free(&places->by_dso);
	lookup_free(&places->by_source);
	free(places);
}

static bool place_equal(const void *owner, uint32_t index, const void *key)
{
	const struct place *place = &((const struct places *)owner)->places[index];
	const struct place *wanted = key;

	return place->ip == wanted->ip && place->space == wanted->space &&
	       place->cpumode == wanted->cpumode && place->caller == wanted->caller;
}

uint32_t places_find(struct places *places, uint32_t pid, uint32_t space, uint64_t time,
		     uint16_t cpumode, uint64_t ip, bool caller)
{
	struct place wanted = {.ip = ip, .space = space, .cpumode = cpumode, .caller = caller};
	uint32_t hash, index;

	if (cpumode == PERF_RECORD_MISC_KERNEL || cpumode == PERF_RECORD_MISC_HYPERVISOR)
		wanted.space = 0;
	hash = lookup_hash_words((uint64_t)wanted.space << 32 | cpumode << 1 | caller, &ip, 1);
	index = lookup_find(&places->by_ip, hash, place_equal, places, &wanted);
	if (index != LOOKUP_NONE)
		return index;

	tally_machine_resolve(places->machine, pid, time, cpumode, ip - caller, &wanted.at);
	wanted.at.address += caller;
	index = places->nr++;
	places->places =
		tool_grow(places->places, &places->room, places->nr, sizeof(*places->places));
	places->places[index] = wanted;
	lookup_add(&places->by_ip, hash, index);
	return index;
}

size_t places_nr(const struct places *places)
{
	return places->nr;
}

const struct place *places_at(const struct places *places, uint32_t place)
{
	return &places->places[place];
}

static bool dso_equal(const void *owner, uint32_t index, const void *key)
{
	return ((const struct places *)owner)->dsos[index] == key;
}

static uint32_t number_dso(struct places *places, struct tally_dso *dso)
{
	uint64_t word = (uintptr_t)dso;
	uint32_t hash = lookup_hash_words(0, &word, 1);
	uint32_t index = lookup_find(&places->by_dso, hash, dso_equal, places, dso);

	if (index == LOOKUP_NONE) {
		index = places->nr_dsos++;
		places->dsos = tool_grow(places->dsos, &places->dsos_room, places->nr_dsos,
					 sizeof(struct tally_dso *));
		places->dsos[index] = dso;
		lookup_add(&places->by_dso, hash, index);
	}
	return index;
}

static bool source_equal(const void *owner, uint32_t index, const void *key)
{
	return !strcmp(((const struct places *)owner)->sources[index], key);
}

static uint32_t number_source(struct places *places, const char *text)
{
	uint32_t hash = lookup_hash_text(text);
	uint32_t index = lookup_find(&places->by_source, hash, source_equal, places, text);

	if (index == LOOKUP_NONE) {
		index = places->nr_sources++;
		places->sources = tool_grow(places->sources, &places->sources_room,
					    places->nr_sources, sizeof(char *));
		places->sources[index] = tool_copy(text, strlen(text));
		lookup_add(&places->by_source, hash, index);
	}
	return index;
}

static bool function_equal(const void *owner, uint32_t index, const void *key)
{
	const struct function *function = &((const struct places *)owner)->functions[index];
	const struct function *wanted = key;

	return function->dso == wanted->dso && function->identity == wanted->identity &&
	       function->level == wanted->level && function->inlined == wanted->inlined &&
	       (function->name == wanted->name || !strcmp(function->name, wanted->name));
}

static uint32_t number_function(struct places *places, const struct function *wanted)
{
	uint64_t words[] = {wanted->identity, (uint64_t)wanted->dso << 32 | wanted->inlined << 8 |
						      (unsigned char)wanted->level};
	uint32_t hash = lookup_hash_words(0, words, 2) ^ lookup_hash_text(wanted->name);
	uint32_t index = lookup_find(&places->by_function, hash, function_equal, places, wanted);

	if (index == LOOKUP_NONE) {
		index = places->nr_functions++;
		places->functions = tool_grow(places->functions, &places->functions_room,
					      places->nr_functions, sizeof(*places->functions));
		places->functions[index] = *wanted;
		lookup_add(&places->by_function, hash, index);
	}
	return index;
}

static void add_frame(struct places *places, const struct function *function, uint32_t source)
{
	struct frame frame = {number_function(places, function), source};

	places->frames = tool_grow(places->frames, &places->frames_room, places->nr_frames + 1,
				   sizeof(*places->frames));
	places->frames[places->nr_frames++] = frame;
}

static uint32_t source_of(struct places *places, const struct tally_source_frame *frame)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;
	char text[512];

	if (!frame->file)
		return 0;
	snprintf(text, sizeof(text), "%s:%u", slash ? slash + 1 : frame->file, frame->line);
	return number_source(places, text);
}

static void make_frames(struct places *places, struct place *place)
{
	const struct tally_symbol *symbol = place->at.symbol;
	struct tally_source_frame sources[MOST_FRAMES];
	struct function function = {
		.dso = number_dso(places, place->at.dso),
		.level = place->at.level,
	};
	size_t nr = 0;

	place->first_frame = places->nr_frames;
	if (places->flags && place->at.dso) {
		nr = tally_dso_source(place->at.dso, place->at.address - place->caller, sources,
				      MOST_FRAMES);
		nr = nr < MOST_FRAMES ? nr : MOST_FRAMES;
	}
	if (places->flags & PLACES_INLINE) {
		for (size_t i = 0; i < nr && sources[i].inlined; i++) {
			if (!sources[i].function)
				continue;
			function.name = sources[i].function;
			function.inlined = true;
			add_frame(places, &function, source_of(places, &sources[i]));
		}
		function.inlined = false;
	}
	function.name = symbol ? symbol->name : UNKNOWN;
	function.nameless = !symbol;
	function.identity = symbol ? symbol->start : 0;
	/* The line of the function itself when inlined ones have theirs, else the innermost. */
	add_frame(places, &function,
		  !nr ? 0
		      : source_of(places, &sources[places->flags & PLACES_INLINE ? nr - 1 : 0]));
	place->nr_frames = places->nr_frames - place->first_frame;
}

uint32_t places_frames(struct places *places, uint32_t place, size_t *nr)
{
	struct place *p = &places->places[place];

	if (!p->nr_frames)
		make_frames(places, p);
	*nr = p->nr_frames;
	return p->first_frame;
}

const struct frame *places_frame(const struct places *places, uint32_t frame)
{
	return &places->frames[frame];
}

const struct function *places_function(const struct places *places, uint32_t function)
{
	return &places->functions[function];
}

struct tally_dso *places_dso(const struct places *places, uint32_t dso)
{
	return places->dsos[dso];
}

const char *places_source(const struct places *places, uint32_t source)
{
	return places->sources[source];
}

const char *places_dso_name(const struct places *places, uint32_t dso)
{
	return places->dsos[dso] ? tally_dso_short_name(places->dsos[dso]) : UNKNOWN;
}
