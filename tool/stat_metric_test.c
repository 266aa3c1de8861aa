// SPDX-License-Identifier: MIT
#include <linux/perf_event.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tool/stat_metric.h"

#define MAX_EVENTS 4

/* A table of one place that the rows below fill. */
struct fixture {
	struct stat_table table;
	struct stat_event events[MAX_EVENTS];
	struct stat_place place;
	struct stat_cell cells[MAX_EVENTS];
};

static void start(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->table.events = f->events;
	f->table.places = &f->place;
	f->table.nr_places = 1;
	f->table.cells = f->cells;
	f->table.runs = 1;
}

static void add(struct fixture *f, uint32_t type, uint64_t config, uint64_t count)
{
	size_t i = f->table.nr_events++;

	f->events[i] = (struct stat_event){.type = type, .config = config, .scale = 1, .unit = ""};
	f->cells[i].value = (struct tally_value){.raw = count,
						 .scaled = count,
						 .state = TALLY_COUNTED,
						 .source = TALLY_SOURCE_KERNEL};
}

static void assert_metric(const struct fixture *f, double elapsed, double value, const char *unit)
{
	struct stat_metric metric;

	assert_true(stat_metric(&f->table, 0, 0, elapsed, &metric));
	if (fabs(metric.value - value) > 1e-9 * fabs(value))
		fail_msg("%g %s, expected %g %s", metric.value, metric.unit, value, unit);
	assert_string_equal(metric.unit, unit);
}

static void assert_none(const struct fixture *f, double elapsed)
{
	struct stat_metric metric;

	assert_false(stat_metric(&f->table, 0, 0, elapsed, &metric));
}

#define CACHE(id, op, result)                                                                      \
	(PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 |                             \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static void test_formulas(void **state)
{
	static const struct {
		uint32_t type;
		uint64_t config, count;
		uint32_t base_type;
		uint64_t base_config, base_count;
		double value;
		const char *unit;
	} rows[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 300, PERF_TYPE_HARDWARE,
		 PERF_COUNT_HW_CPU_CYCLES, 200, 1.5, "insn per cycle"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 6000000, PERF_TYPE_SOFTWARE,
		 PERF_COUNT_SW_TASK_CLOCK, 2000000, 3, "GHz"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 5, PERF_TYPE_HARDWARE,
		 PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 200, 2.5, "of all branches"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1, PERF_TYPE_HARDWARE,
		 PERF_COUNT_HW_CACHE_REFERENCES, 4, 25, "of all cache refs"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 1, PERF_TYPE_HARDWARE,
		 PERF_COUNT_HW_CPU_CYCLES, 2, 50, "frontend cycles idle"},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), 3, PERF_TYPE_HW_CACHE,
		 CACHE(L1D, READ, ACCESS), 12, 25, "of all L1-dcache loads"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 3, PERF_TYPE_HARDWARE,
		 PERF_COUNT_HW_CPU_CYCLES, 4, 75, "backend cycles idle"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 50, PERF_TYPE_SOFTWARE,
		 PERF_COUNT_SW_TASK_CLOCK, 1000, 5e7, "/sec"},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS), 9, PERF_TYPE_SOFTWARE,
		 PERF_COUNT_SW_TASK_CLOCK, 1000, 9e6, "/sec"},
		{PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS), 1, PERF_TYPE_HW_CACHE,
		 CACHE(LL, READ, ACCESS), 8, 12.5, "of all LLC loads"},
		{PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS), 1, PERF_TYPE_HW_CACHE,
		 CACHE(L1I, READ, ACCESS), 50, 2, "of all L1-icache loads"},
		{PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS), 1, PERF_TYPE_HW_CACHE,
		 CACHE(ITLB, READ, ACCESS), 50, 2, "of all iTLB loads"},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, PREFETCH, MISS), 1, PERF_TYPE_HW_CACHE,
		 CACHE(L1D, PREFETCH, ACCESS), 50, 2, "of all L1-dcache prefetches"},
		{PERF_TYPE_HW_CACHE, CACHE(DTLB, WRITE, MISS), 3, PERF_TYPE_HW_CACHE,
		 CACHE(DTLB, WRITE, ACCESS), 300, 1, "of all dTLB stores"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 50, PERF_TYPE_SOFTWARE,
		 PERF_COUNT_SW_TASK_CLOCK, 2000000, 25000, "/sec"},
		{PERF_TYPE_TRACEPOINT, 42, 7, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK,
		 UINT64_C(1000000000), 7, "/sec"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f;

		start(&f);
		add(&f, rows[i].type, rows[i].config, rows[i].count);
		assert_none(&f, 1);
		add(&f, rows[i].base_type, rows[i].base_config, rows[i].base_count);
		assert_metric(&f, 1, rows[i].value, rows[i].unit);
		f.cells[1].value.scaled = 0;
		assert_none(&f, 1);
	}
}

static void test_clocks_against_the_time_elapsed(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 3000000000);
	f.events[0].unit = "msec";
	assert_metric(&f, 2, 1.5, "CPUs utilized");
	assert_none(&f, 0);
}

static void test_modes_must_agree(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 300);
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 200);
	f.events[0].excludes = 2;
	assert_none(&f, 1);
	/* The one of the same modes is found behind the other. */
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100);
	f.events[2].excludes = 2;
	assert_metric(&f, 1, 3, "insn per cycle");
}

/* Cycles of the small cores say nothing of the instructions of the large ones. */
static void test_kinds_of_core_must_agree(void **state)
{
	const uint64_t large = UINT64_C(4) << 32, small = UINT64_C(10) << 32;
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, PERF_TYPE_HARDWARE, large | PERF_COUNT_HW_INSTRUCTIONS, 300);
	add(&f, PERF_TYPE_HARDWARE, small | PERF_COUNT_HW_CPU_CYCLES, 200);
	assert_none(&f, 1);
	add(&f, PERF_TYPE_HARDWARE, large | PERF_COUNT_HW_CPU_CYCLES, 100);
	assert_metric(&f, 1, 3, "insn per cycle");
	/* The upper half of other configs is a part of the number. */
	start(&f);
	add(&f, PERF_TYPE_SOFTWARE, large | PERF_COUNT_SW_TASK_CLOCK, 1000);
	assert_none(&f, 1);
}

static void test_cgroups_must_agree(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 10);
	add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000);
	f.events[0].cgroup = "a";
	assert_none(&f, 1);
	f.events[1].cgroup = "b";
	assert_none(&f, 1);
	/* Named twice on the command line. */
	f.events[1].cgroup = (char[]){"a"};
	assert_metric(&f, 1, 1e7, "/sec");
}

static void test_not_counted(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 300);
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 200);
	f.cells[1].value.state = TALLY_NOT_COUNTED;
	assert_none(&f, 1);
	f.cells[1].value.state = TALLY_COUNTED;
	f.cells[0].value.state = TALLY_NOT_SUPPORTED;
	assert_none(&f, 1);
}

/* Without what a formula needs, an event is as good as one without a formula. */
static void test_rate_instead_of_formula(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 300);
	add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000);
	assert_metric(&f, 1, 3e8, "/sec");
}

/* Nor a frequency; what of it is divided by other counts is as anywhere. */
static void test_user_mode_has_no_rate(void **state)
{
	static const enum tally_source sources[] = {TALLY_SOURCE_USER, TALLY_SOURCE_MODEL};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
		start(&f);
		add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 300);
		add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000);
		f.cells[0].value.source = sources[i];
		assert_none(&f, 1);
		start(&f);
		add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 300);
		add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000);
		f.cells[0].value.source = sources[i];
		assert_none(&f, 1);
		add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 200);
		assert_metric(&f, 1, 1.5, "insn per cycle");
	}
}

static void test_units_have_no_rate(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, 17, 2, 300);
	f.events[0].unit = "Joules";
	add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000);
	assert_none(&f, 1);
}

static void test_mean_of_runs(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1);
	add(&f, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1);
	f.table.runs = 2;
	spread_add(&f.cells[0].spread, 10);
	spread_add(&f.cells[0].spread, 20);
	spread_add(&f.cells[1].spread, 5);
	spread_add(&f.cells[1].spread, 5);
	assert_metric(&f, 1, 3, "insn per cycle");
}

static void test_order(void **state)
{
	static const struct {
		uint64_t scaled;
		enum tally_state state;
	} rows[] = {
		{0, TALLY_NOT_COUNTED}, {5, TALLY_COUNTED},	{0, TALLY_COUNTED},
		{7, TALLY_COUNTED},	{0, TALLY_NOT_COUNTED}, {5, TALLY_COUNTED},
	};
	static const size_t expected[] = {3, 1, 5, 2, 0, 4};
	struct stat_event event = {0};
	struct stat_cell cells[6] = {0};
	struct stat_table table = {
		.events = &event, .nr_events = 1, .nr_places = 6, .cells = cells};
	size_t order[6];

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		cells[i].value.scaled = rows[i].scaled;
		cells[i].value.state = rows[i].state;
		assert_int_equal(stat_idle(&table, i), !rows[i].scaled);
	}
	stat_order(&table, 0, order);
	assert_memory_equal(order, expected, sizeof(expected));
}

static struct tally_value value(uint64_t raw, uint64_t enabled, uint64_t running)
{
	struct tally_value v = {
		.raw = raw,
		.scaled = running ? raw * enabled / running : 0,
		.time_enabled = enabled,
		.time_running = running,
		.state = running ? TALLY_COUNTED : TALLY_NOT_COUNTED,
		.source = !running	      ? TALLY_SOURCE_NONE
			  : running < enabled ? TALLY_SOURCE_SCALED
					      : TALLY_SOURCE_KERNEL,
	};

	return v;
}

static void test_differences(void **state)
{
	static const struct {
		uint64_t before[3], now[3]; /* raw, enabled, running */
		enum tally_state state;
		enum tally_source source;
		uint64_t scaled;
	} rows[] = {
		{{0, 0, 0}, {10, 5, 5}, TALLY_COUNTED, TALLY_SOURCE_KERNEL, 10},
		{{10, 5, 5}, {15, 9, 9}, TALLY_COUNTED, TALLY_SOURCE_KERNEL, 5},
		{{10, 5, 5}, {10, 5, 5}, TALLY_NOT_COUNTED, TALLY_SOURCE_NONE, 0},
		{{10, 4, 4}, {14, 12, 8}, TALLY_COUNTED, TALLY_SOURCE_SCALED, 8},
		{{10, 8, 4}, {14, 12, 8}, TALLY_COUNTED, TALLY_SOURCE_KERNEL, 4},
		{{10, 8, 4}, {10, 12, 4}, TALLY_NOT_COUNTED, TALLY_SOURCE_NONE, 0},
		{{10, 8, 8}, {15, 8, 8}, TALLY_COUNTED, TALLY_SOURCE_KERNEL, 5},
		{{10, 8, 4}, {15, 8, 4}, TALLY_COUNTED, TALLY_SOURCE_KERNEL, 5},
		{{0, 0, 0}, {0, 0, 0}, TALLY_NOT_COUNTED, TALLY_SOURCE_NONE, 0},
	};

	const struct stat_event event = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_value before =
			value(rows[i].before[0], rows[i].before[1], rows[i].before[2]);
		struct tally_value now = value(rows[i].now[0], rows[i].now[1], rows[i].now[2]);
		struct tally_value difference;

		stat_difference(&event, &now, &before, &difference);
		assert_int_equal(difference.state, rows[i].state);
		assert_int_equal(difference.source, rows[i].source);
		assert_int_equal(difference.scaled, rows[i].scaled);
	}
}

static void test_times_that_cannot_be(void **state)
{
	struct tally_value good = value(8, 100, 50), enabled = value(8, 101, 50),
			   running = value(8, 100, 101);

	(void)state;
	stat_check_times(&good, 100);
	assert_int_equal(good.time_running, 50);
	assert_int_equal(good.scaled, 16);
	assert_int_equal(good.source, TALLY_SOURCE_SCALED);
	stat_check_times(&enabled, 100);
	assert_int_equal(enabled.time_enabled, 0);
	assert_int_equal(enabled.time_running, 0);
	assert_int_equal(enabled.scaled, 8);
	assert_int_equal(enabled.source, TALLY_SOURCE_KERNEL);
	assert_int_equal(enabled.state, TALLY_COUNTED);
	stat_check_times(&running, 100);
	assert_int_equal(running.time_running, 0);
}

/* The level falls from 8 to 6; it was seen for half of the time, and is 6 all the same. */
static void test_snapshots(void **state)
{
	const struct stat_event event = {.snapshot = true};
	struct tally_value before = value(8, 8, 4), now = value(6, 16, 8), difference;
	struct fixture f;

	(void)state;
	stat_unscale_snapshot(&event, &now);
	assert_int_equal(now.scaled, 6);
	assert_int_equal(now.source, TALLY_SOURCE_KERNEL);
	stat_difference(&event, &now, &before, &difference);
	assert_int_equal(difference.state, TALLY_COUNTED);
	assert_int_equal(difference.scaled, 6);
	start(&f);
	add(&f, PERF_TYPE_MAX, 1, 6);
	add(&f, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000);
	assert_metric(&f, 1, 6e6, "/sec");
	f.events[0].snapshot = true;
	assert_none(&f, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_clocks_against_the_time_elapsed),
		cmocka_unit_test(test_modes_must_agree),
		cmocka_unit_test(test_kinds_of_core_must_agree),
		cmocka_unit_test(test_cgroups_must_agree),
		cmocka_unit_test(test_not_counted),
		cmocka_unit_test(test_rate_instead_of_formula),
		cmocka_unit_test(test_user_mode_has_no_rate),
		cmocka_unit_test(test_units_have_no_rate),
		cmocka_unit_test(test_mean_of_runs),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_times_that_cannot_be),
		cmocka_unit_test(test_snapshots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
