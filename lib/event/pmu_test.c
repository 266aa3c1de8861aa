// SPDX-License-Identifier: MIT
/* Units of sysfs, on the trees in testdata/: machines that this one is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/event/format.h"
#include "lib/event/pmu_event.h"

struct machine {
	char sysfs[PATH_MAX];
	struct tly_roots roots;
};

static struct machine *machine(const char *name)
{
	static struct machine machine;

	snprintf(machine.sysfs, sizeof(machine.sysfs), "%s/lib/event/testdata/%s/sys",
		 getenv("TALLY_SOURCE"), name);
	machine.roots = (struct tly_roots){.sysfs = machine.sysfs, .procfs = "/nonexistent"};
	return &machine;
}

static struct tally_events *parse(const char *on, const char *text)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;

	assert_non_null(events);
	if (tly_events_parse(events, text, &machine(on)->roots, &err))
		fail_msg("'%s' on %s: %s; %s", text, on, err.what, err.remedy);
	return events;
}

static uint64_t config3(const struct perf_event_attr *attr)
{
	uint64_t value = 0;

	if (attr->size >= TLY_ATTR_SIZE_CONFIG3)
		memcpy(&value, (const char *)attr + TLY_ATTR_SIZE_CONFIG3 - sizeof(value),
		       sizeof(value));
	return value;
}

static void test_formats(void **state)
{
	static const struct {
		const char *text;
		bool good;
		unsigned int config;
		uint64_t bits;
	} rows[] = {
		{"config:0-7", true, 0, 0xff},
		{"config:0-7,32-35", true, 0, 0xf000000ff},
		{"config1:0-63", true, 1, UINT64_MAX},
		{"config2:63", true, 2, 1ull << 63},
		{"config3:0", true, 3, 1},
		{"config:0,2,4", true, 0, 0x15},
		{"config:0-64", false},
		{"config:64", false},
		{"config:7-0", false},
		{"config:", false},
		{"config:0-", false},
		{"config:0,", false},
		{"config:-1", false},
		{"config:0x", false},
		{"config", false},
		{"configure", false},
		{"", false},
		{"config:99999999999999999999", false},
	};
	struct tly_format format;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(tly_format_parse(rows[i].text, &format), rows[i].good);
		if (!rows[i].good)
			continue;
		assert_int_equal(format.config, rows[i].config);
		assert_int_equal(format.bits, rows[i].bits);
	}
}

static void test_spreading(void **state)
{
	const struct tly_format split = {.bits = 0xf000000ff}, all = {.bits = UINT64_MAX};

	(void)state;
	assert_int_equal(tly_format_spread(&split, 0x1c2), 0x1000000c2);
	assert_int_equal(tly_format_spread(&split, 0xfff), 0xf000000ff);
	assert_true(tly_format_fits(&split, 0xfff));
	assert_false(tly_format_fits(&split, 0x1000));
	assert_true(tly_format_fits(&all, UINT64_MAX));
	assert_int_equal(tly_format_spread(&all, UINT64_MAX), UINT64_MAX);
}

static void test_encodings(void **state)
{
	static const struct {
		const char *machine, *text;
		uint32_t type;
		uint64_t config, config1, config2, config3;
		bool guests; /* counted */
	} rows[] = {
		{"intel", "cpu/cpu-cycles/", 4, 0x3c},
		{"intel", "cpu/CPU-Cycles/", 4, 0x3c},
		{"intel", "cpu/event=0x3c,umask=1,edge,cmask=2/", 4, 0x204013c},
		{"intel", "cpu/event=60/", 4, 0x3c},
		{"intel", "cpu/cache-misses,cmask=1/", 4, 0x100412e},
		{"intel", "cpu/cache-misses,umask=1/", 4, 0x12e},
		{"intel", "cpu/mem-loads/pp", 4, 0x1cd, 3},
		{"intel", "cpu/mem-loads,ldlat=30/", 4, 0x1cd, 30},
		{"intel", "mem-loads:u", 4, 0x1cd, 3},
		{"intel", "cpu/offcore_rsp=0xffffffffffffffff,event=0xb7/", 4, 0xb7, UINT64_MAX},
		{"intel", "cpu/config=0x5003c,config1=7,config2=8,config3=9/", 4, 0x5003c, 7, 8, 9},
		{"intel", "cpu/r1a2/", 4, 0x1a2},
		{"intel", "cpu/cycles/", 0, 0},
		{"intel", "cpu/L1-dcache-load-misses/", 3, 0x10000},
		{"intel", "cpu//", 4, 0},
		{"intel", "cycles", 0, 0},
		{"intel", "topdown-retiring", 4, 0x2c2},
		{"intel", "msr/tsc/", 9, 0, .guests = true},
		{"intel", "msr/event=0xffffffffffffffff/", 9, UINT64_MAX, .guests = true},
		{"intel", "intel_pt/tsc,psb_period=3/", 41, 0x3000400, .guests = true},
		{"intel", "power/energy-pkg/", 40, 2, .guests = true},
		{"hybrid", "cpu_atom/mem-loads/", 10, 0x5d0},
		{"hybrid", "cpu_atom/cycles/", 0, 0xa00000000},
		{"hybrid", "cpu_core/LLC-loads/", 3, 2},
		{"hybrid", "cs", 1, 3},
		{"arm", "armv8_pmuv3_0/inst_retired,long/", 8, 8, 1},
		{"arm", "cycles", 0, 0},
		{"arm", "arm_dsu_0/event=0xffffffff/", 9, 0xffffffff, .guests = true},
		{"arm", "arm_dsu/cycles/", 9, 0x11, .guests = true},
		{"arm", "arm_cmn_0/hnf_cache_miss,wp_val=1,wp_mask=2,wp_combine=15/", 10, 0x10005,
		 1, 2, 15, .guests = true},
		{"amd", "cpu/event=0x1c2,umask=3/", 4, 0x1000003c2},
		{"powerpc", "hv_24x7/HPM_TLBIE,core=3/", 11, 0x1000030002, .guests = true},
		{"powerpc", "hv_24x7/hpm_tlbie,core=3/", 11, 0x1000030002, .guests = true},
		{"powerpc", "hv_24x7/PM_CLK,core=1,lpar=5/", 11, 0xe000010001, 5, .guests = true},
		{"broken", "odd/good=0xff/", 12, 0xff, .guests = true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = parse(rows[i].machine, rows[i].text);
		const struct tally_event *event = tally_events_at(events, 0);

		print_message("# %s\n", rows[i].text);
		assert_int_equal(tally_events_count(events), 1);
		assert_string_equal(event->name, rows[i].text);
		assert_int_equal(event->attr->type, rows[i].type);
		assert_int_equal(event->attr->config, rows[i].config);
		assert_int_equal(event->attr->config1, rows[i].config1);
		assert_int_equal(event->attr->config2, rows[i].config2);
		assert_int_equal(config3(event->attr), rows[i].config3);
		assert_int_equal(event->attr->exclude_guest, !rows[i].guests);
		tally_events_free(events);
	}
}

static void test_attributes(void **state)
{
	struct tally_events *events =
		parse("intel", "power/energy-pkg/,uncore_imc_1/cas_count_read/,msr/tsc/,"
			       "topdown-total-slots");
	const struct tally_event *event = tally_events_at(events, 0);

	(void)state;
	assert_string_equal(event->pmu, "power");
	assert_string_equal(event->unit, "Joules");
	assert_true(event->scale == 2.3283064365386962890625e-10);
	assert_string_equal(event->cpus, "0,18");
	assert_int_equal(event->flags, TALLY_EVENT_PER_PACKAGE | TALLY_EVENT_SNAPSHOT);
	event = tally_events_at(events, 1);
	assert_string_equal(event->unit, "MiB");
	assert_true(event->scale == 6.103515625e-5);
	assert_int_equal(event->flags, 0);
	event = tally_events_at(events, 2);
	assert_string_equal(event->pmu, "msr");
	assert_string_equal(event->unit, "");
	assert_string_equal(event->cpus, "");
	assert_true(event->scale == 1.0);
	event = tally_events_at(events, 3);
	assert_true(event->scale == 4.0);
	tally_events_free(events);
}

static void check_names(const char *on, const char *text, const char *const *names)
{
	struct tally_events *events = parse(on, text);
	size_t nr = 0;

	print_message("# %s\n", text);
	for (; names[nr]; nr++) {
		const struct tally_event *event = tally_events_at(events, nr);

		assert_non_null(event);
		assert_string_equal(event->name, names[nr]);
	}
	assert_int_equal(tally_events_count(events), nr);
	tally_events_free(events);
}

static void test_several_units(void **state)
{
	static const char *const imcs[] = {"uncore_imc_0/clockticks/", "uncore_imc_1/clockticks/",
					   "uncore_imc_10/clockticks/", NULL};
	static const char *const all[] = {"uncore_imc_0/event=1/", "uncore_imc_1/event=1/",
					  "uncore_imc_10/event=1/",
					  "uncore_imc_free_running_0/event=1/", NULL};
	static const char *const plain[] = {"uncore_imc_0/clockticks/", "uncore_imc_1/clockticks/",
					    "uncore_imc_10/clockticks/", NULL};
	static const char *const named[] = {"x", "x", "x", NULL};

	(void)state;
	check_names("intel", "uncore_imc/clockticks/", imcs);
	check_names("intel", "imc/clockticks/", imcs);
	check_names("intel", "imc_[01]*/clockticks/", imcs);
	check_names("intel", "uncore_*/event=1/", all);
	check_names("intel", "clockticks", plain);
	check_names("intel", "imc/clockticks,name=x/", named);
}

static void test_hybrid(void **state)
{
	static const char *const cycles[] = {"cpu_atom/cycles/", "cpu_core/cycles/", NULL};
	static const char *const user[] = {"cpu_atom/cycles/u", "cpu_core/cycles/u", NULL};
	static const char *const group[] = {"cpu_atom/cycles/u",    "cs:u",
					    "cpu_atom/LLC-loads/u", "cpu_core/cycles/u",
					    "cpu_core/LLC-loads/u", NULL};
	static const size_t leaders[] = {0, 0, 0, 3, 3};
	struct tally_events *events;

	(void)state;
	check_names("hybrid", "cycles", cycles);
	check_names("hybrid", "cycles:u", user);
	check_names("hybrid", "{cycles,cs,LLC-loads}:u", group);
	events = parse("hybrid", "{cycles,cs,LLC-loads}:D");
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(tally_events_at(events, i)->leader, leaders[i]);
		assert_int_equal(tally_events_at(events, i)->attr->pinned, leaders[i] == i);
	}
	tally_events_free(events);
	events = parse("hybrid", "r1a2,cycles");
	assert_int_equal(tally_events_at(events, 0)->attr->type, 10);
	assert_int_equal(tally_events_at(events, 1)->attr->type, 4);
	assert_int_equal(tally_events_at(events, 1)->attr->config, 0x1a2);
	assert_int_equal(tally_events_at(events, 2)->attr->config, 0xa00000000);
	assert_int_equal(tally_events_at(events, 3)->attr->config, 0);
	assert_string_equal(tally_events_at(events, 3)->pmu, "cpu_core");
	tally_events_free(events);
}

static void test_kprobes(void **state)
{
	struct tally_events *events = parse(
		"intel", "kprobe:do_exit,kretprobe:do_exit:u,kprobe:f+0x10,kprobe:0xffff1000");
	const struct perf_event_attr *attr = tally_events_at(events, 0)->attr;

	(void)state;
	assert_int_equal(tally_events_count(events), 4);
	assert_int_equal(attr->type, 6);
	assert_int_equal(attr->config, 0);
	assert_string_equal((const char *)(uintptr_t)attr->kprobe_func, "do_exit");
	attr = tally_events_at(events, 1)->attr;
	assert_int_equal(attr->config, 1);
	assert_int_equal(attr->exclude_kernel, 1);
	attr = tally_events_at(events, 2)->attr;
	assert_string_equal((const char *)(uintptr_t)attr->kprobe_func, "f");
	assert_int_equal(attr->probe_offset, 0x10);
	attr = tally_events_at(events, 3)->attr;
	assert_int_equal(attr->kprobe_func, 0);
	assert_int_equal(attr->kprobe_addr, 0xffff1000);
	tally_events_free(events);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *machine, *text;
		int code;
		uint64_t offset;
		const char *what, *remedy;
	} rows[] = {
		{"intel", "cpux/event=1/", -ENOTSUP, 0, "no unit 'cpux'", "'cpu'"},
		{"arm", "cpu/cycles/", -ENOTSUP, 0, "no unit 'cpu'", "tally list sw"},
		{"intel", "../event=1/", -ENOTSUP, 0, "no unit '..'", ""},
		{"broken", "notype/x/", -ENOTSUP, 0, "no unit 'notype'", ""},
		{"intel", "cpu/umsk=1/", -ENOENT, 4, "no term or event 'umsk'", "'umask'"},
		{"intel", "cpu/cpu-cycels/", -ENOENT, 4, "no term or event", "'cpu-cycles'"},
		{"intel", "msr/zzzzzzzz/", -ENOENT, 4, "no term", "event, aperf, tsc"},
		{"intel", "cpu/..,event=1/", -ENOENT, 4, "no term or event '..'", ""},
		{"intel", "cpu/umask/", -EINVAL, 4, "number of 8 bits", ""},
		{"intel", "cpu/umask=x/", -EINVAL, 10, "number of 8 bits", ""},
		{"intel", "cpu/umask=0x100/", -EINVAL, 10, "0x100 is too large", ""},
		{"intel", "cpu/edge=2/", -EINVAL, 9, "1 bits", ""},
		{"intel", "cpu/energy-pkg/", -ENOENT, 4, "no term or event", ""},
		{"intel", "cpu/topdown-total-slots.scale/", -ENOENT, 4, "no term or event", ""},
		{"intel", "topdown-retirin", -ENOENT, 0, "no event", "cpu/topdown-retiring/"},
		{"intel", "msr", -ENOENT, 0, "is a unit", "msr/config=0/"},
		{"intel", "cpu/event=1", -EINVAL, 3, "not closed", ""},
		{"intel", "cpu/cpu-cycles/x", -EINVAL, 15, "not a modifier", ""},
		{"intel", "kprobe:", -EINVAL, 7, "kernel function", ""},
		{"intel", "kprobe:f+x", -EINVAL, 9, "not an offset", ""},
		{"hybrid", "kprobe:f", -ENOTSUP, 0, "no kprobes", "CONFIG_KPROBE_EVENTS"},
		{"powerpc", "hv_24x7/HPM_TLBIE/", -EINVAL, 8, "needs a value for 'core'", "core="},
		{"broken", "odd/far=1/", -EINVAL, 4, "cannot be understood", "format/far"},
		{"broken", "odd/back=1/", -EINVAL, 4, "cannot be understood", ""},
		{"broken", "odd/junk=1/", -EINVAL, 4, "cannot be understood", ""},
		{"broken", "odd/late=1/", -EINVAL, 4, "cannot be understood", ""},
		{"broken", "odd/four=1/", -EINVAL, 4, "cannot be understood", ""},
		{"broken", "odd/open=1/", -EINVAL, 4, "cannot be understood", ""},
		{"broken", "odd/bad-term/", -EINVAL, 4, "cannot be understood", "events/bad-term"},
		{"broken", "odd/bad-value/", -EINVAL, 4, "cannot be understood", ""},
		{"broken", "odd/bad-name/", -EINVAL, 4, "cannot be understood", ""},
		{"broken", "odd/bad-scale/", -EINVAL, 4, "cannot be understood", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_events *events = tally_events_new();
		struct tally_error err;

		print_message("# %s\n", rows[i].text);
		assert_int_equal(tly_events_parse(events, rows[i].text,
						  &machine(rows[i].machine)->roots, &err),
				 rows[i].code);
		if (!strstr(err.what, rows[i].what) || !strstr(err.remedy, rows[i].remedy))
			fail_msg("said: %s; %s", err.what, err.remedy);
		assert_int_equal(err.offset, rows[i].offset);
		assert_int_equal(tally_events_count(events), 0);
		tally_events_free(events);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),	      cmocka_unit_test(test_spreading),
		cmocka_unit_test(test_encodings),     cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_several_units), cmocka_unit_test(test_hybrid),
		cmocka_unit_test(test_kprobes),	      cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
