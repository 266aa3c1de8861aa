// SPDX-License-Identifier: MIT
/* The fully qualified string: unit, event, masks by number, modifiers with their values. */
#include <stdlib.h>
#include <string.h>

#include "pfm/event.h"
#include "pfm/tracepoints.h"

enum { NAME_ROOM = 256, DIGITS = 20 };

/* Programs ask for a name with every encoding: stdio would take longer than all of the rest. */
struct text {
	char *start; /* NULL once memory is short */
	size_t len, room;
};

/* Room for len more bytes and a zero behind them; NULL if there is none. */
static char *reserve(struct text *text, size_t len)
{
	size_t room = 2 * text->room + len;
	char *more;

	if (!text->start)
		return NULL;
	if (len >= text->room - text->len) {
		more = realloc(text->start, room);
		if (!more)
			free(text->start);
		text->start = more;
		text->room = room;
		if (!more)
			return NULL;
	}
	return text->start + text->len;
}

static char *write_number(char *to, uint64_t number, unsigned int base)
{
	char digits[DIGITS], *first = digits + DIGITS;

	do {
		*--first = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	return mempcpy(to, first, digits + DIGITS - first);
}

static void end_at(struct text *text, char *end)
{
	*end = '\0';
	text->len = end - text->start;
}

static void append(struct text *text, const char *before, const char *string)
{
	char *to = reserve(text, strlen(before) + strlen(string));

	if (to)
		end_at(text, stpcpy(stpcpy(to, before), string));
}

static void append_hex(struct text *text, const char *before, uint64_t number)
{
	char *to = reserve(text, strlen(before) + DIGITS);

	if (to)
		end_at(text, write_number(stpcpy(to, before), number, 16));
}

static void append_modifier(struct text *text, const char *name, uint64_t value)
{
	size_t len = strlen(name);
	char *to = reserve(text, len + 2 + DIGITS);

	if (!to)
		return;
	*to = ':';
	to = mempcpy(to + 1, name, len);
	*to++ = '=';
	if (value < 10)
		*to++ = '0' + value;
	else
		to = write_number(to, value, 10);
	end_at(text, to);
}

static void append_masks(struct text *text, const struct request *request)
{
	const struct event *event = &request->event;
	const struct table_mask *masks;

	if (event->system) {
		append(text, ":", event->system->points[request->tracepoint]);
		return;
	}
	masks = table_masks(event->entry);
	for (int i = request_next_mask(request, 0); i >= 0; i = request_next_mask(request, i + 1))
		append(text, ":", table_string(masks[i].name));
	if (request->has_raw && event->pmu->encoder != TABLE_ENCODE_PERF_RAW)
		append_hex(text, ":0x", request->raw);
}

static void append_fields(struct text *text, const struct request *request)
{
	const struct sysfs_unit *device = request->event.device;

	for (size_t i = 0; i < device->n_fields; i++)
		append_modifier(text, device->fields[i].name,
				tly_pfm_field_get(&device->fields[i], request->config));
}

static const char *event_name(const struct event *event)
{
	if (event->device)
		return device_event(event)->name;
	return event->system ? event->system->name : table_string(event->entry->name);
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

static void append_modifiers(struct text *text, const struct request *request)
{
	unsigned int mods = tly_pfm_mods_of(&request->event, request->os);
	unsigned int perf_mods = tly_pfm_perf_mods_of(&request->event, request->os);

	for (unsigned int i = 0; i < N_MODS; i++)
		if (mods >> i & 1)
			append_modifier(text, tly_pfm_mods[i].name, request->value[i]);
	for (unsigned int i = 0; i < N_PERF_MODS; i++)
		if (perf_mods >> i & 1 && shows(request, i))
			append_modifier(text, tly_pfm_perf_mods[i].name, shown_value(request, i));
}

char *tly_pfm_full_name(const struct request *request)
{
	const struct event *event = &request->event;
	struct text text = {.start = malloc(NAME_ROOM), .room = NAME_ROOM};

	append(&text, unit_name(event), "::");
	if (event->pmu->encoder == TABLE_ENCODE_PERF_RAW)
		append_hex(&text, "r", request->raw);
	else
		append(&text, "", event_name(event));
	if (event->device)
		append_fields(&text, request);
	else
		append_masks(&text, request);
	append_modifiers(&text, request);
	return text.start;
}
