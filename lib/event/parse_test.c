// SPDX-License-Identifier: MIT
/* The grammar, on the machine's own tracefs or without any; sysfs units have pmu_test.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/event/parse.h"

static const struct tly_roots nowhere = {.sysfs = "/nonexistent", .procfs = "/nonexistent"};

static struct tally_events *parse(const char *text)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;

	assert_non_null(events);
	if (tly_events_parse(events, text, &nowhere, &err))
		fail_msg("'%s': %s", text, err.what);
	return events;
}

enum { EU = 1, EK = 2, EH = 4, EG = 8, EHOST = 16, EI = 32, PIN = 64, EXCL = 128 };

static unsigned int bits(const struct perf_event_attr *attr)
{
	return attr->exclude_user * EU | attr->exclude_kernel * EK | attr->exclude_hv * EH |
	       attr->exclude_guest * EG | attr->exclude_host * EHOST | attr->exclude_idle * EI |
	       attr->pinned * PIN | attr->exclusive * EXCL;
}

static void test_encodings(void **state)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
		unsigned int bits, precise;
	} rows[] = {
		{"cycles", 0, 0, EG},
		{"cpu-cycles", 0, 0, EG},
		{"branch-instructions", 0, 4, EG},
		{"ref-cycles", 0, 9, EG},
		{"task-clock:u", 1, 1, EK | EH | EG},
		{"cs", 1, 3, EG},
		{"cgroup-switches", 1, 11, EG},
		{"L1-dcache-load-misses", 3, 0x10000, EG},
		{"L1-dcache-loads", 3, 0, EG},
		{"l1d-read-miss", 3, 0x10000, EG},
		{"l1-d", 3, 0, EG},
		{"LLC-stores", 3, 0x102, EG},
		{"LLC-misses", 3, 0x10002, EG},
		{"dTLB-store-misses", 3, 0x10103, EG},
		{"iTLB-loads", 3, 4, EG},
		{"branch-load-misses", 3, 0x10005, EG},
		{"node-prefetch-misses", 3, 0x10206, EG},
		{"LLC-speculative-read-miss", 3, 0x10202, EG},
		{"r1a2", 4, 0x1a2, EG},
		{"rffffffffffffffff", 4, UINT64_MAX, EG},
		{"1:2", 1, 2, EG},
		{"0x4:0x1a2", 4, 0x1a2, EG},
		{"9:0x10", 9, 0x10, 0},
		{"cycles:k", 0, 0, EU | EH | EG},
		{"cycles:h", 0, 0, EU | EK | EG},
		{"cycles:uk", 0, 0, EH | EG},
		{"cycles:G", 0, 0, EHOST},
		{"cycles:H", 0, 0, EG},
		{"cycles:GH", 0, 0, 0},
		{"cycles:I", 0, 0, EG | EI},
		{"cycles:D", 0, 0, EG | PIN},
		{"cycles:e", 0, 0, EG | EXCL},
		{"cycles:p", 0, 0, EG, 1},
		{"cycles:upp", 0, 0, EK | EH | EG, 2},
		{"cycles:ppp", 0, 0, EG, 3},
		{"cycles/config=5/", 0, 5, EG},
		{"cycles//u", 0, 0, EK | EH | EG},
		{"cycles//:u", 0, 0, EK | EH | EG},
		{" cycles\n", 0, 0, EG},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = parse(rows[i].text);
		const struct tally_event *event = tally_events_at(events, 0);

		print_message("# %s\n", rows[i].text);
		assert_int_equal(tally_events_count(events), 1);
		assert_int_equal(event->attr->type, rows[i].type);
		assert_int_equal(event->attr->config, rows[i].config);
		assert_int_equal(bits(event->attr), rows[i].bits);
		assert_int_equal(event->attr->precise_ip, rows[i].precise);
		assert_int_equal(event->attr->size, sizeof(struct perf_event_attr));
		assert_true(event->scale == 1.0);
		assert_string_equal(event->pmu, "");
		tally_events_free(events);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		int code;
		uint64_t offset;
		const char *what;
		const char *remedy;
	} rows[] = {
		{"", -EINVAL, 0, "missing before the end", ""},
		{"cycles,", -EINVAL, 7, "missing before the end", ""},
		{",cycles", -EINVAL, 0, "missing before ','", ""},
		{"cs,,faults", -EINVAL, 3, "missing before ','", ""},
		{"cycels", -ENOENT, 0, "no event 'cycels'", "did you mean 'cycles'"},
		{"cs,CYCLES", -ENOENT, 3, "no event 'CYCLES'", "'cycles'"},
		{"page-fault", -ENOENT, 0, "no event", "'page-faults'"},
		{"zzzzzzzzzzzz", -ENOENT, 0, "no event", "tally list"},
		{"duration_time", -ENOENT, 0, "not an event", "tally stat"},
		{"cycles:uu", -EINVAL, 8, "too often", ""},
		{"cycles:pppp", -EINVAL, 10, "too often", ""},
		{"cycles:x", -EINVAL, 7, "'x' is not a modifier", "u k h"},
		{"cycles:", -EINVAL, 7, "modifiers are missing", ""},
		{"cycles:u:k", -EINVAL, 8, "cannot follow", ""},
		{"iTLB-stores", -ENOENT, 0, "no event", "iTLB-load"},
		{"L1-dcache-load-store", -ENOENT, 0, "no event", "L1-dcache-load"},
		{"r1ffffffffffffffff", -ENOENT, 0, "no event", ""},
		{"r", -ENOENT, 0, "no event", ""},
		{"r0x1a2", -ENOENT, 0, "no event", ""},
		{"1:x", -EINVAL, 0, "not a type and a config", ""},
		{"0x100000000:1", -EINVAL, 0, "not a type and a config", ""},
		{"{cycles", -EINVAL, 0, "not closed", ""},
		{"cycles}", -EINVAL, 6, "',' is missing", ""},
		{"{}", -EINVAL, 1, "missing before '}'", ""},
		{"{{cs}}", -EINVAL, 1, "another group", ""},
		{"{cs,faults:D}", -EINVAL, 0, "only the first", ""},
		{"{cs:pp,faults}:pp", -EINVAL, 15, "more than three p", ""},
		{"cs{faults}x", -EINVAL, 10, "',' is missing", ""},
		{"cycles/period=0/", -EINVAL, 14, "from 1", ""},
		{"cycles/period=-1/", -EINVAL, 14, "from 1", ""},
		{"cycles/freq=0x8000000000000000/", -EINVAL, 12, "from 1", ""},
		{"cycles/period=/", -EINVAL, 14, "no value", ""},
		{"cycles/period=1", -EINVAL, 6, "not closed", ""},
		{"cycles/,/", -EINVAL, 7, "a term is missing", ""},
		{"cycles/umask=1/", -EINVAL, 7, "takes no term 'umask'", "period"},
		{"cycles/percore/", -EINVAL, 7, "not one of tally's", ""},
		{"cycles/call-graph=x/", -EINVAL, 18, "'fp', 'dwarf'", ""},
		{"cycles/stack-size=12/", -EINVAL, 18, "multiple of 8", ""},
		{"cycles/stack-size=65536/", -EINVAL, 18, "multiple of 8", ""},
		{"cycles/name='x/", -EINVAL, 12, "not closed", ""},
		{"cycles/config=0x1ffffffffffffffff/", -EINVAL, 14, "a number", ""},
		{"mem:", -EINVAL, 4, "not an address", "mem:ADDRESS"},
		{"mem:xyz", -EINVAL, 4, "not an address", ""},
		{"mem:0x10/0", -EINVAL, 9, "length", ""},
		{"mem:0x1000:rr", -EINVAL, 12, "twice", ""},
		{"mem:0x1000:rq", -EINVAL, 12, "'q'", ""},
		{"sched:sched_switch", -ENOTSUP, 0, "tracefs", "mount -t tracefs"},
		{"cs faults", -EINVAL, 3, "cannot follow", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = parse("cs,faults");
		struct tally_error err;

		print_message("# %s\n", rows[i].text);
		assert_int_equal(tly_events_parse(events, rows[i].text, &nowhere, &err),
				 rows[i].code);
		assert_int_equal(err.code, rows[i].code);
		assert_int_equal(err.offset, rows[i].offset);
		if (!strstr(err.what, rows[i].what) || !strstr(err.remedy, rows[i].remedy))
			fail_msg("said: %s; %s", err.what, err.remedy);
		/* What was in the list stays. */
		assert_int_equal(tally_events_count(events), 2);
		assert_int_equal(tly_events_parse(events, rows[i].text, &nowhere, NULL),
				 rows[i].code);
		tally_events_free(events);
	}
}

static void test_messages_are_one_line(void **state)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;

	(void)state;
	assert_int_equal(tly_events_parse(events, "cyc\033[31mles", &nowhere, &err), -ENOENT);
	assert_non_null(strstr(err.what, "'cyc?[31mles'"));
	assert_int_equal(tly_events_parse(events, "cs:\nu", &nowhere, &err), -EINVAL);
	assert_null(strchr(err.what, '\n'));
	tally_events_free(events);
}

static void test_breakpoints(void **state)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t address, length;
		unsigned int bits;
	} rows[] = {
		{"mem:0x1000", 3, 0x1000, 4, EG},
		{"mem:4096/2:w", 2, 0x1000, 2, EG},
		{"mem:0x1000:x", 4, 0x1000, sizeof(long), EG},
		{"mem:0x1000:rwx", 7, 0x1000, 4, EG},
		{"mem:0x1000/8:r:u", 1, 0x1000, 8, EK | EH | EG},
		{"mem:0x1000:u", 3, 0x1000, 4, EK | EH | EG},
		{"mem:0xffffffffffffffff/1:wr", 3, UINT64_MAX, 1, EG},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = parse(rows[i].text);
		const struct perf_event_attr *attr = tally_events_at(events, 0)->attr;

		assert_int_equal(attr->type, PERF_TYPE_BREAKPOINT);
		assert_int_equal(attr->config, 0);
		assert_int_equal(attr->bp_type, rows[i].type);
		assert_int_equal(attr->bp_addr, rows[i].address);
		assert_int_equal(attr->bp_len, rows[i].length);
		assert_int_equal(bits(attr), rows[i].bits);
		tally_events_free(events);
	}
}

static void test_groups(void **state)
{
	struct tally_events *events = parse("cs,{cycles:D,instructions:k,faults}:uS,g{cs,cs//}:W");
	static const size_t leaders[] = {0, 1, 1, 1, 4, 4};
	static const char *const names[] = {
		"cs", "cycles:Du", "instructions:ku", "faults:u", "cs", "cs//",
	};

	(void)state;
	assert_int_equal(tally_events_count(events), 6);
	for (size_t i = 0; i < 6; i++) {
		const struct tally_event *event = tally_events_at(events, i);

		assert_int_equal(event->leader, leaders[i]);
		assert_string_equal(event->name, names[i]);
		assert_int_equal(!!(event->flags & TALLY_EVENT_WEAK), i >= 4);
		assert_int_equal(!!(event->flags & TALLY_EVENT_LEADER_SAMPLING), i >= 1 && i < 4);
		assert_int_equal(event->attr->pinned, i == 1);
	}
	assert_int_equal(bits(tally_events_at(events, 1)->attr), EK | EH | EG | PIN);
	assert_int_equal(bits(tally_events_at(events, 2)->attr), EH | EG);
	assert_null(tally_events_at(events, 6));
	tally_events_free(events);
}

static void test_group_modifiers_in_names(void **state)
{
	static const struct {
		const char *text, *name;
	} rows[] = {
		{"{cycles}:u", "cycles:u"},
		{"{cycles:u}:u", "cycles:u"},
		{"{cycles:p}:pp", "cycles:ppp"},
		{"{cycles/config=1/}:u", "cycles/config=1/u"},
		{"{cycles/config=1/k}:u", "cycles/config=1/ku"},
		{"{mem:0x10}:u", "mem:0x10:u"},
		{"{mem:0x10:w}:k", "mem:0x10:w:k"},
		{"{cycles/name=n/}:u", "n"},
		{"{cycles}:DW", "cycles"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = parse(rows[i].text);

		assert_string_equal(tally_events_at(events, 0)->name, rows[i].name);
		tally_events_free(events);
	}
}

static void test_terms(void **state)
{
	struct tally_events *events =
		parse("cycles/period=1000,name=foo/u,cs/freq=99,call-graph=dwarf,stack-size=1024/,"
		      "faults/call-graph=no,config1=0x10,config2=7,config3=9,name='a,b/c'/,"
		      "cs/freq=5,period=6,max-stack=17/P");
	const struct tally_event *event = tally_events_at(events, 0);
	uint64_t config3;

	(void)state;
	assert_string_equal(event->name, "foo");
	assert_int_equal(event->attr->sample_period, 1000);
	assert_int_equal(event->attr->freq, 0);
	assert_int_equal(event->attr->exclude_kernel, 1);
	assert_int_equal(event->flags,
			 TALLY_EVENT_PERIOD | TALLY_EVENT_NAMED | TALLY_EVENT_MODIFIED);

	event = tally_events_at(events, 1);
	assert_string_equal(event->name, "cs/freq=99,call-graph=dwarf,stack-size=1024/");
	assert_int_equal(event->attr->sample_freq, 99);
	assert_int_equal(event->attr->freq, 1);
	assert_int_equal(event->flags, TALLY_EVENT_FREQ);
	assert_int_equal(event->callgraph, TALLY_CALLGRAPH_DWARF);
	assert_int_equal(event->stack_size, 1024);

	event = tally_events_at(events, 2);
	assert_string_equal(event->name, "a,b/c");
	assert_int_equal(event->callgraph, TALLY_CALLGRAPH_NONE);
	assert_int_equal(event->attr->config1, 0x10);
	assert_int_equal(event->attr->config2, 7);
	assert_true(event->attr->size >= TLY_ATTR_SIZE_CONFIG3);
	memcpy(&config3, (const char *)event->attr + 128, sizeof(config3));
	assert_int_equal(config3, 9);

	event = tally_events_at(events, 3);
	assert_int_equal(event->attr->sample_period, 6);
	assert_int_equal(event->attr->sample_max_stack, 17);
	assert_int_equal(event->flags, TALLY_EVENT_PERIOD | TALLY_EVENT_PRECISE_MAX);
	tally_events_free(events);
}

static void test_split(void **state)
{
	struct tally_events *events = parse("dummy,{cs,faults},cycles"), *rest;
	const struct tally_event *cs = tally_events_at(events, 1);

	(void)state;
	assert_int_equal(tally_events_split(events, 5, &rest), -EINVAL);
	assert_int_equal(tally_events_split(events, 2, &rest), -EINVAL);
	assert_null(rest);
	assert_int_equal(tally_events_count(events), 4);
	assert_int_equal(tally_events_split(events, 1, &rest), 0);
	assert_int_equal(tally_events_count(events), 1);
	assert_int_equal(tally_events_count(rest), 3);
	assert_ptr_equal(tally_events_at(rest, 0), cs);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(tally_events_at(rest, i)->leader, i == 1 ? 0 : i);
	/* Both go on as lists of their own. */
	assert_int_equal(tally_events_parse(rest, "dummy", 0, NULL), 0);
	assert_int_equal(tally_events_at(rest, 3)->leader, 3);
	assert_int_equal(tally_events_parse(events, "faults", 0, NULL), 0);
	assert_string_equal(tally_events_at(events, 1)->name, "faults");
	tally_events_free(rest);
	assert_int_equal(tally_events_split(events, 2, &rest), 0);
	assert_int_equal(tally_events_count(rest), 0);
	tally_events_free(rest);
	tally_events_free(events);
}

static void test_filter(void **state)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;

	(void)state;
	assert_int_equal(tally_events_set_filter(events, "pid > 0", &err), -EINVAL);
	assert_int_equal(tally_events_set_filter(events, "pid > 0", NULL), -EINVAL);
	tally_events_free(events);
	events = parse("cs");
	assert_int_equal(tally_events_set_filter(events, "pid > 0", &err), -EINVAL);
	assert_non_null(strstr(err.what, "'cs'"));
	assert_null(tally_event_filter(tally_events_at(events, 0)));
	tally_events_free(events);
}

static void test_names_of_attrs(void **state)
{
	static const char *const names[] = {
		"cycles",
		"page-faults:u",
		"L1-dcache-load-misses",
		"LLC-stores:k",
		"r1a2",
		"rffffffffffffffff:ppp",
		"mem:0x1000/8:w",
		"mem:0x1000/4:rwx:u",
		"instructions:upp",
		"cycles:G",
		"77:0x12",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct tally_events *events = parse(names[i]);
		const struct perf_event_attr *attr = tally_events_at(events, 0)->attr;
		char name[64], small[4];

		assert_int_equal(tally_event_name(attr, name, sizeof(name)), strlen(names[i]));
		assert_string_equal(name, names[i]);
		assert_int_equal(tally_event_name(attr, small, sizeof(small)), strlen(names[i]));
		assert_memory_equal(small, names[i], 3);
		assert_int_equal(small[3], '\0');
		tally_events_free(events);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_messages_are_one_line),
		cmocka_unit_test(test_breakpoints),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_group_modifiers_in_names),
		cmocka_unit_test(test_terms),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_names_of_attrs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
