// SPDX-License-Identifier: MIT
/*
 * The parser of event names. Input: one byte that chooses the machine, then the text. Everything
 * that the parser returns is read; what it refuses must leave the list as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/event/fields.h"
#include "lib/event/format.h"
#include "lib/event/parse.h"

#define TESTDATA TALLY_SOURCE "/lib/event/testdata/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tly_roots machines[] = {
	{TESTDATA "intel/sys", "/nonexistent", TESTDATA "tracefs"},
	{TESTDATA "hybrid/sys", "/nonexistent", TESTDATA "tracefs"},
	{TESTDATA "arm/sys", "/nonexistent", NULL},
	{TESTDATA "powerpc/sys", "/nonexistent", TESTDATA "tracefs"},
	{TESTDATA "broken/sys", "/nonexistent", TESTDATA "tracefs"},
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_event(const struct tally_events *events, size_t index)
{
	const struct tally_event *event = tally_events_at(events, index);
	char name[256], small[8];
	int length;

	require(event->leader <= index);
	require(tally_events_at(events, event->leader)->leader == event->leader);
	require(event->attr->size <= sizeof(union tly_attr));
	require(event->attr->precise_ip <= 3);
	require(event->scale > 0);
	require(*event->name || event->flags & TALLY_EVENT_NAMED);
	(void)(strlen(event->name) + strlen(event->pmu) + strlen(event->unit) +
	       strlen(event->cpus));
	length = tally_event_name(event->attr, name, sizeof(name));
	require(length > 0 && strlen(name) <= (size_t)length);
	require(tally_event_name(event->attr, small, sizeof(small)) == length);
	require(strlen(small) < sizeof(small));
}

static void check_list(const char *text, const struct tly_roots *machine)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;
	size_t before;

	require(events);
	require(!tly_events_parse(events, "{cs,faults}", machine, &err));
	before = tally_events_count(events);
	if (tly_events_parse(events, text, machine, &err)) {
		require(err.code < 0 && *err.what);
		require(err.offset == TALLY_NO_OFFSET || err.offset <= strlen(text));
		require(tally_events_count(events) == before);
	} else {
		require(tally_events_count(events) > before);
	}
	for (size_t i = 0; i < tally_events_count(events); i++)
		check_event(events, i);
	tally_events_free(events);
}

static int visit(const struct tally_tracepoint_field *field, void *ctx)
{
	(void)ctx;
	require(*field->name && *field->type);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The processor is one with few events, so that suggestions do not take most of the time. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setenv("LIBPFM_FORCE_PMU", "ix86arch", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tly_format format;
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	require(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	check_list(text, &machines[data[0] % (sizeof(machines) / sizeof(machines[0]))]);
	if (tly_format_parse(text, &format))
		require(format.bits && tly_format_width(&format) <= 64);
	tly_fields_parse(text, visit, NULL);
	free(text);
	return 0;
}
