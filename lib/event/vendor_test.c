// SPDX-License-Identifier: MIT
/* Vendors' names in the grammar. The machine is said to have an Ice Lake; encodings are pfm's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/event/vendor.h"

static const struct tly_roots nowhere = {.sysfs = "/nonexistent", .procfs = "/nonexistent"};

enum { EU = 1, EK = 2, EH = 4, EG = 8, EXCL = 16 };

static unsigned int bits(const struct perf_event_attr *attr)
{
	return attr->exclude_user * EU | attr->exclude_kernel * EK | attr->exclude_hv * EH |
	       attr->exclude_guest * EG | attr->exclusive * EXCL;
}

static void test_encodings(void **state)
{
	static const struct {
		const char *text;
		uint64_t config, config1;
		unsigned int bits, precise;
	} rows[] = {
		{"L2_RQSTS:DEMAND_DATA_RD_MISS", 0x2124, 0, EG},
		{"l2_rqsts:demand_data_rd_miss", 0x2124, 0, EG},
		{"L2_RQSTS.DEMAND_DATA_RD_MISS", 0x2124, 0, EG},
		{"l2_rqsts.demand_data_rd_miss:u", 0x2124, 0, EG | EK | EH},
		{"icl::L2_RQSTS:DEMAND_DATA_RD_MISS", 0x2124, 0, EG},
		{"ICL::L2_RQSTS:0x21", 0x2124, 0, EG},
		{"UOPS_DECODED", 0x156, 0, EG},
		{"UOPS_DECODED:k", 0x156, 0, EG | EU | EH},
		{"UOPS_DECODED:uk", 0x156, 0, EG | EH},
		{"INST_RETIRED:ANY_P:c=2:i:pp", 0x28000c0, 0, EG, 2},
		{"INST_RETIRED:ANY_P:c=2:e", 0x20400c0, 0, EG},
		{"INST_RETIRED:ANY_P:ue", 0xc0, 0, EG | EK | EH | EXCL},
		{"INST_RETIRED:ANY_P:u=1", 0xc0, 0, EG | EK},
		{"MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=64", 0x1cd, 64, EG},
		{" INST_RETIRED:ANY_P ", 0xc0, 0, EG},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = tally_events_new();
		const struct perf_event_attr *attr;
		struct tally_error err;

		if (tly_events_parse(events, rows[i].text, &nowhere, &err))
			fail_msg("'%s': %s", rows[i].text, err.what);
		assert_int_equal(tally_events_count(events), 1);
		attr = tally_events_at(events, 0)->attr;
		assert_int_equal(attr->type, PERF_TYPE_RAW);
		assert_int_equal(attr->config, rows[i].config);
		assert_int_equal(attr->config1, rows[i].config1);
		assert_int_equal(bits(attr), rows[i].bits);
		assert_int_equal(attr->precise_ip, rows[i].precise);
		tally_events_free(events);
	}
}

static void test_names_and_flags(void **state)
{
	struct tally_events *events = tally_events_new();

	(void)state;
	assert_int_equal(
		tly_events_parse(events,
				 "{icl::INST_RETIRED:ANY_P:period=7,UOPS_DECODED/freq=9/}:u,cs,"
				 "UOPS_DECODED/name=mine/u",
				 &nowhere, NULL),
		0);
	assert_int_equal(tally_events_count(events), 4);
	assert_string_equal(tally_events_at(events, 0)->name, "icl::INST_RETIRED:ANY_P:period=7:u");
	assert_int_equal(tally_events_at(events, 0)->flags,
			 TALLY_EVENT_PERIOD | TALLY_EVENT_MODIFIED);
	assert_int_equal(tally_events_at(events, 0)->attr->sample_period, 7);
	assert_int_equal(tally_events_at(events, 1)->leader, 0);
	assert_int_equal(tally_events_at(events, 1)->attr->sample_freq, 9);
	assert_string_equal(tally_events_at(events, 2)->name, "cs");
	tally_events_free(events);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *what, *remedy;
	} rows[] = {
		{"INST_RETIERD", -ENOENT, "no event", "did you mean 'INST_RETIRED'"},
		{"icl::INST_RETIERD", -ENOENT, "icl has no event", "'icl::INST_RETIRED'"},
		{"L2_RQSTS", -EINVAL, "needs a mask", "one of ALL_DEMAND_REFERENCES,"},
		{"L2_RQSTS:RFO_MIS", -ENOENT, "no mask or modifier 'RFO_MIS'",
		 "'L2_RQSTS:RFO_MISS'"},
		{"L2_RQSTS:RFO_MISS:q", -ENOENT, "no mask or modifier 'q'", ""},
		{"INST_RETIRED:ANY_P:NOP", -EINVAL, "cannot be counted together", "INST_RETIRED:"},
		{"INST_RETIRED:ANY_P:c=256", -EINVAL, "a value that it does not take", "(0 to 255"},
		{"INST_RETIRED:ANY_P:c=", -EINVAL, "a value that it does not take", "c: "},
		{"INST_RETIRED:STALL_CYCLES:c=2", -EINVAL, "two values", "leave the modifier out"},
		{"INST_RETIRED:ANY_P:cpu=3", -EINVAL, "cannot choose a processor", "-C 3"},
		{"RETIRED_SSE_AVX_FLOPS", -ENOENT, "of other processors: amd64_fam", "has icl:"},
		{"branches_taken", -ENOENT, "tally run has", "tally::branches_taken"},
		{"RETIRED_SSE_AVX_FLOPS:ANY", -ENOENT, "of other processors", "has icl:"},
		{"skl::INST_RETIRED", -ENOTSUP, "skl is not this machine's", "has icl:"},
		{"iclx::INST_RETIRED", -ENOENT, "called 'iclx'", "'icl'"},
		{"icl::", -ENOENT, "has no event ''", "'tally list icl::'"},
		{"::INST_RETIRED", -EINVAL, "an event is missing", ""},
	};
	struct tally_events *events = tally_events_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_error err = {.remedy = ""};

		assert_int_equal(tly_events_parse(events, rows[i].text, &nowhere, &err),
				 rows[i].code);
		if (!strstr(err.what, rows[i].what) || !strstr(err.remedy, rows[i].remedy))
			fail_msg("'%s': '%s' ('%s')", rows[i].text, err.what, err.remedy);
	}
	assert_int_equal(tally_events_count(events), 0);
	tally_events_free(events);
}

static void test_long_texts(void **state)
{
	struct tally_events *events = tally_events_new();
	char text[2000];

	(void)state;
	for (size_t length = 40; length < sizeof(text) - 20; length += 97) {
		memset(text, 'A', length);
		text[length] = '\0';
		assert_int_not_equal(tly_events_parse(events, text, &nowhere, NULL), 0);
		memcpy(text, "icl::", 5);
		assert_int_not_equal(tly_events_parse(events, text, &nowhere, NULL), 0);
		memcpy(text, "INST_RETIRED:", 13);
		assert_int_not_equal(tly_events_parse(events, text, &nowhere, NULL), 0);
		memcpy(text + length - 2, "::", 2);
		assert_int_not_equal(tly_events_parse(events, text, &nowhere, NULL), 0);
	}
	tally_events_free(events);
}

struct found {
	unsigned int nr;
	bool has_unit, seen;
};

static int find(const struct tly_vendor_event *event, void *ctx)
{
	struct found *found = ctx;

	found->nr++;
	assert_true(*event->desc && *event->unit);
	assert_int_equal(!!strstr(event->name, "::"), found->has_unit);
	if (!strcmp(event->name, "L2_RQSTS:RFO_MISS")) {
		assert_string_equal(event->encoding, "r2224");
		assert_string_equal(event->unit, "icl");
		found->seen = true;
	}
	if (!strcmp(event->name, "skx::L2_RQSTS:RFO_MISS"))
		found->seen = true;
	assert_string_not_equal(event->name, "L2_RQSTS");
	return 0;
}

static void test_walk(void **state)
{
	struct found here = {0}, others = {.has_unit = true};

	(void)state;
	assert_int_equal(tly_vendor_walk(false, find, &here), 0);
	assert_true(here.seen && here.nr > 100);
	assert_int_equal(tly_vendor_walk(true, find, &others), 0);
	assert_true(others.seen && others.nr > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encodings), cmocka_unit_test(test_names_and_flags),
		cmocka_unit_test(test_refusals),  cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_walk),
	};

	setenv("LIBPFM_FORCE_PMU", "icl", 1);
	unsetenv("LIBPFM_ENCODE_INACTIVE");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
