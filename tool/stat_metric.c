// SPDX-License-Identifier: MIT
/*
 * Every derived number is a row: the event it stands beside, what that is divided by, and how.
 * Events are known by their encoding, since people rename them; both sides must have counted the
 * same modes, or the quotient would mean nothing. An event without a row gets its rate per second
 * of running time, unless it is a level: occupancy per second means nothing. Nor has it a rate if
 * it is counted in user mode, where programs take longer than they do elsewhere.
 */
#include "tool/stat_metric.h"

#include <linux/perf_event.h>
#include <string.h>

enum form {
	RATIO,	  /* event / base */
	PERCENT,  /* 100 * event / base */
	PER_NANO, /* event / nanoseconds of a clock */
	PARALLEL, /* a clock / the time elapsed */
};

struct id {
	uint32_t type;
	uint64_t config;
};

struct formula {
	struct id event, base;
	enum form form;
	const char *unit;
};

#define HW(name)                                                                                   \
	{                                                                                          \
		PERF_TYPE_HARDWARE, PERF_COUNT_HW_##name                                           \
	}
#define SW(name)                                                                                   \
	{                                                                                          \
		PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##name                                           \
	}
#define CACHE(name, op, result)                                                                    \
	{                                                                                          \
		PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_##name |                                   \
					    PERF_COUNT_HW_CACHE_OP_##op << 8 |                     \
					    PERF_COUNT_HW_CACHE_RESULT_##result << 16              \
	}
#define MISSES(name, op, unit)                                                                     \
	{                                                                                          \
		CACHE(name, op, MISS), CACHE(name, op, ACCESS), PERCENT, unit                      \
	}

static const struct formula formulas[] = {
	{SW(TASK_CLOCK), {0}, PARALLEL, "CPUs utilized"},
	{SW(CPU_CLOCK), {0}, PARALLEL, "CPUs utilized"},
	{HW(CPU_CYCLES), SW(TASK_CLOCK), PER_NANO, "GHz"},
	{HW(INSTRUCTIONS), HW(CPU_CYCLES), RATIO, "insn per cycle"},
	{HW(STALLED_CYCLES_FRONTEND), HW(CPU_CYCLES), PERCENT, "frontend cycles idle"},
	{HW(STALLED_CYCLES_BACKEND), HW(CPU_CYCLES), PERCENT, "backend cycles idle"},
	{HW(BRANCH_MISSES), HW(BRANCH_INSTRUCTIONS), PERCENT, "of all branches"},
	{HW(CACHE_MISSES), HW(CACHE_REFERENCES), PERCENT, "of all cache refs"},
	MISSES(L1D, READ, "of all L1-dcache loads"),
	MISSES(L1D, WRITE, "of all L1-dcache stores"),
	MISSES(L1D, PREFETCH, "of all L1-dcache prefetches"),
	MISSES(L1I, READ, "of all L1-icache loads"),
	MISSES(LL, READ, "of all LLC loads"),
	MISSES(LL, WRITE, "of all LLC stores"),
	MISSES(LL, PREFETCH, "of all LLC prefetches"),
	MISSES(DTLB, READ, "of all dTLB loads"),
	MISSES(DTLB, WRITE, "of all dTLB stores"),
	MISSES(ITLB, READ, "of all iTLB loads"),
	MISSES(BPU, READ, "of all branch predictions"),
	MISSES(NODE, READ, "of all node loads"),
	MISSES(NODE, WRITE, "of all node stores"),
};

/*
 * Where there are several kinds of core, the upper half of a generic event's config says which
 * (ABI: config.hw.extended-type), and a ratio is of counts of one kind.
 */
static uint32_t core_kind(const struct stat_event *event)
{
	return event->type == PERF_TYPE_HARDWARE || event->type == PERF_TYPE_HW_CACHE
		       ? (uint32_t)(event->config >> 32)
		       : 0;
}

static bool is(const struct stat_event *event, struct id id)
{
	return event->type == id.type &&
	       (event->config ^ (uint64_t)core_kind(event) << 32) == id.config;
}

static bool is_clock(const struct stat_event *event)
{
	return is(event, (struct id)SW(TASK_CLOCK)) || is(event, (struct id)SW(CPU_CLOCK));
}

static bool same_cgroup(const struct stat_event *a, const struct stat_event *b)
{
	return a->cgroup == b->cgroup || (a->cgroup && b->cgroup && !strcmp(a->cgroup, b->cgroup));
}

static bool counted(const struct stat_table *table, size_t place, size_t event)
{
	return stat_cell(table, place, event)->value.state == TALLY_COUNTED;
}

/* A count above zero to divide @event by, or 0. */
static double find_base(const struct stat_table *table, size_t place, size_t event, struct id id)
{
	const struct stat_event *of = &table->events[event];

	for (size_t i = 0; i < table->nr_events; i++) {
		const struct stat_event *base = &table->events[i];

		if (is(base, id) && core_kind(base) == core_kind(of) &&
		    base->excludes == of->excludes && same_cgroup(base, of) &&
		    counted(table, place, i))
			return stat_count(table, place, i);
	}
	return 0;
}

static bool in_user_mode(const struct stat_table *table, size_t place, size_t event)
{
	const enum tally_source source = stat_cell(table, place, event)->value.source;

	return source == TALLY_SOURCE_USER || source == TALLY_SOURCE_MODEL;
}

/* Clocks tick in every mode, whatever they exclude: any of them measures the time. */
static double find_nanoseconds(const struct stat_table *table, size_t place, size_t event)
{
	if (in_user_mode(table, place, event))
		return 0;
	for (size_t i = 0; i < table->nr_events; i++)
		if (is_clock(&table->events[i]) &&
		    same_cgroup(&table->events[i], &table->events[event]) &&
		    counted(table, place, i))
			return stat_count(table, place, i);
	return 0;
}

static const struct formula *find_formula(const struct stat_event *event)
{
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++)
		if (is(event, formulas[i].event))
			return &formulas[i];
	return NULL;
}

bool stat_metric(const struct stat_table *table, size_t place, size_t event, double elapsed,
		 struct stat_metric *metric)
{
	const struct formula *formula = find_formula(&table->events[event]);
	double count, base = 0;

	*metric = (struct stat_metric){0};
	if (!counted(table, place, event))
		return false;
	count = stat_count(table, place, event);
	if (formula) {
		metric->unit = formula->unit;
		metric->percent = formula->form == PERCENT;
		if (formula->form == PARALLEL)
			base = elapsed * 1e9;
		else if (formula->form == PER_NANO)
			base = find_nanoseconds(table, place, event);
		else
			base = find_base(table, place, event, formula->base);
		metric->value = formula->form == PERCENT ? 100 * count / base : count / base;
	}
	/* What has a unit of its own (Joules) is no number of occurrences. */
	if (base <= 0 && !(formula && formula->form == PARALLEL) && !*table->events[event].unit &&
	    !table->events[event].snapshot) {
		metric->unit = "/sec";
		metric->rate = true;
		metric->percent = false;
		base = find_nanoseconds(table, place, event);
		metric->value = count / base * 1e9;
	}
	return base > 0;
}
