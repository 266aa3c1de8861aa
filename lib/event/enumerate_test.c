// SPDX-License-Identifier: MIT
#include "lib/event/enumerate.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/event/parse.h"

#define ALL	  ((1u << TALLY_EVENT_KINDS) - 1)
#define OF_TABLES (1u << TALLY_EVENT_VENDOR | 1u << TALLY_EVENT_FOREIGN)

struct seen {
	const struct tly_roots *roots;
	size_t nr[TALLY_EVENT_KINDS];
	enum tally_event_kind last;
	char last_name[300];
	const char *wanted;
	char text[600];
};

static struct tly_roots roots_of(const char *machine)
{
	static char sysfs[PATH_MAX], tracefs[PATH_MAX];
	const char *source = getenv("TALLY_SOURCE");

	snprintf(sysfs, sizeof(sysfs), "%s/lib/event/testdata/%s/sys", source, machine);
	snprintf(tracefs, sizeof(tracefs), "%s/lib/event/testdata/tracefs", source);
	return (struct tly_roots){.sysfs = sysfs, .procfs = "/nonexistent", .tracefs = tracefs};
}

static bool is_a_pattern(enum tally_event_kind kind)
{
	return kind == TALLY_EVENT_RAW || kind == TALLY_EVENT_BREAKPOINT ||
	       kind == TALLY_EVENT_PROBE || kind == TALLY_EVENT_FOREIGN;
}

static void check_parses(const struct tly_roots *roots, const char *name)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;

	/* Parameters are the user's to give; the folder odd has a tracepoint without a good id. */
	if (tly_events_parse(events, name, roots, &err) && !strstr(err.what, "needs a value") &&
	    strncmp(name, "odd:", 4) != 0)
		fail_msg("'%s': %s", name, err.what);
	tally_events_free(events);
}

static int see(const struct tally_event_info *info, void *ctx)
{
	struct seen *seen = ctx;

	assert_true(info->kind >= seen->last);
	if (info->kind == seen->last &&
	    (info->kind == TALLY_EVENT_PMU || info->kind == TALLY_EVENT_TRACEPOINT))
		assert_true(strcmp(seen->last_name, info->name) < 0);
	seen->last = info->kind;
	snprintf(seen->last_name, sizeof(seen->last_name), "%s", info->name);
	seen->nr[info->kind]++;
	assert_true(*info->name);
	assert_true(*info->desc || info->kind == TALLY_EVENT_TRACEPOINT);
	if (!is_a_pattern(info->kind)) {
		check_parses(seen->roots, info->name);
		if (*info->alias)
			check_parses(seen->roots, info->alias);
		if (*info->encoding)
			check_parses(seen->roots, info->encoding);
	}
	if (seen->wanted && !strcmp(seen->wanted, info->name)) {
		snprintf(seen->text, sizeof(seen->text), "%s|%s|%s|%s|%s", info->alias, info->pmu,
			 info->encoding, info->unit, info->desc);
		return 7;
	}
	return 0;
}

static void test_all_kinds(void **state)
{
	struct tly_roots roots = roots_of("intel");
	struct seen seen = {.roots = &roots};

	(void)state;
	assert_int_equal(tly_events_enumerate(ALL, &roots, see, &seen, NULL), 0);
	assert_int_equal(seen.nr[TALLY_EVENT_HARDWARE], 10);
	assert_int_equal(seen.nr[TALLY_EVENT_SOFTWARE], 12);
	assert_int_equal(seen.nr[TALLY_EVENT_CACHE], 2 * (4 * 3 + 2 + 1 + 1));
	assert_int_equal(seen.nr[TALLY_EVENT_PMU], 8 + 2 + 3 * 2 + 1 + 1);
	assert_int_equal(seen.nr[TALLY_EVENT_TRACEPOINT], 7);
	assert_int_equal(seen.nr[TALLY_EVENT_RAW], 1 + 8);
	assert_int_equal(seen.nr[TALLY_EVENT_BREAKPOINT], 1);
	assert_int_equal(seen.nr[TALLY_EVENT_PROBE], 5);
	assert_true(seen.nr[TALLY_EVENT_VENDOR] > 100);
	assert_true(seen.nr[TALLY_EVENT_FOREIGN] > 10000);
}

static void test_one_kind(void **state)
{
	struct tly_roots roots = roots_of("hybrid");
	struct seen seen = {.roots = &roots};

	(void)state;
	assert_int_equal(tly_events_enumerate(1u << TALLY_EVENT_PMU, &roots, see, &seen, NULL), 0);
	for (size_t kind = 0; kind < TALLY_EVENT_KINDS; kind++)
		assert_int_equal(seen.nr[kind], kind == TALLY_EVENT_PMU ? 6 : 0);
}

static void test_entries(void **state)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
		{"cycles", "cpu-cycles||||processor cycles, at the frequency of the moment"},
		{"dTLB-load-misses", "||||data TLB: loads that missed"},
		{"power/energy-pkg/",
		 "|power|power/event=0x02/|Joules|event of the unit power, in Joules"},
		{"sched:sched_switch", "||||"},
		{"msr/event=N/", "|msr|||any event of the unit msr, by its terms"},
		{"LONGEST_LAT_CACHE:MISS",
		 "|icl|r412e||Last-level cache: "
		 "Requests of this core that the last-level cache does not hold"},
	};
	struct tly_roots roots = roots_of("intel");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seen seen = {.roots = &roots, .wanted = rows[i].name};

		assert_int_equal(tly_events_enumerate(ALL, &roots, see, &seen, NULL), 7);
		assert_string_equal(seen.text, rows[i].text);
	}
}

static int count(const struct tally_event_info *info, void *ctx)
{
	(void)info;
	++*(size_t *)ctx;
	return 0;
}

static void test_nothing_there(void **state)
{
	struct tly_roots nowhere = {.sysfs = "/nonexistent", .procfs = "/nonexistent"};
	size_t nr = 0;

	(void)state;
	assert_int_equal(tly_events_enumerate(ALL & ~OF_TABLES, &nowhere, count, &nr, NULL), 0);
	assert_int_equal(nr, 10 + 12 + 32 + 1 + 1);
}

/* Names in units of this machine that its kernel describes wrongly would fail here, and should. */
static void test_this_machine(void **state)
{
	struct seen seen = {.roots = &tly_roots_default};

	(void)state;
	assert_int_equal(tly_events_enumerate(ALL & ~(1u << TALLY_EVENT_TRACEPOINT),
					      &tly_roots_default, see, &seen, NULL),
			 0);
	assert_int_equal(seen.nr[TALLY_EVENT_HARDWARE], 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),    cmocka_unit_test(test_one_kind),
		cmocka_unit_test(test_entries),	     cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_this_machine),
	};

	/* The processor whose vendor's names are known. */
	setenv("LIBPFM_FORCE_PMU", "icl", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
