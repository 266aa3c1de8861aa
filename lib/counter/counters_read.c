// SPDX-License-Identifier: MIT
#include <string.h>

#include "lib/counter/counter.h"
#include "lib/counter/counters.h"
#include "lib/counter/value.h"

static void set_absent(const struct tally_counters *counters, size_t event,
		       struct tally_value *value)
{
	const struct tally_error *error = counters->plans[event].error;

	memset(value, 0, sizeof(*value));
	value->source = TALLY_SOURCE_NONE;
	value->state = !error				? TALLY_NOT_COUNTED
		       : tly_is_permission(error->code) ? TALLY_NOT_PERMITTED
							: TALLY_NOT_SUPPORTED;
}

/*
 * The time enabled of a task's event that is bound to one processor goes on while the task runs on
 * another: that is no multiplexing and nothing to scale up for.
 */
static bool cell_may_scale(const struct tally_counters *counters, size_t cpu)
{
	return !counters->axes.task_bound || counters->axes.cpus[cpu] < 0;
}

int tally_counters_read(struct tally_counters *counters, size_t event, size_t task, size_t cpu,
			struct tally_value *value)
{
	struct tally_counter *c = *tly_cell(counters, event, task, cpu);
	int code;

	if (!c) {
		set_absent(counters, event, value);
		return 0;
	}
	code = tally_counter_read(c, value);
	if (code == 0 && value->source == TALLY_SOURCE_SCALED && !cell_may_scale(counters, cpu)) {
		value->scaled = value->raw;
		value->source = c->source;
	}
	return code;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

static void accumulate(struct tally_value *sum, const struct tally_value *value)
{
	sum->raw += value->raw;
	sum->scaled = add(sum->scaled, value->scaled);
	sum->time_enabled += value->time_enabled;
	sum->time_running += value->time_running;
	sum->lost += value->lost;
	if (value->state != TALLY_COUNTED)
		return;
	sum->state = TALLY_COUNTED;
	if (sum->source != TALLY_SOURCE_SCALED)
		sum->source = value->source;
}

/*
 * One task over all of its processors. Bound to every one of them, the times running add up to the
 * time enabled, unless the event was multiplexed; bound to some, nobody can tell. The cells are
 * enabled and read one after the other: the least of their times enabled is what all of them have.
 */
static int sum_task(struct tally_counters *counters, size_t event, size_t task,
		    struct tally_value *sum)
{
	const bool bound = counters->axes.task_bound && counters->axes.cpus[0] >= 0;
	uint64_t enabled = UINT64_MAX;

	set_absent(counters, event, sum);
	for (size_t cpu = 0; cpu < counters->axes.nr_cpus; cpu++) {
		struct tally_value value;
		int code = tally_counters_read(counters, event, task, cpu, &value);

		if (code < 0)
			return code;
		accumulate(sum, &value);
		if (value.time_enabled < enabled)
			enabled = value.time_enabled;
	}
	if (!bound)
		return 0;
	sum->time_enabled = enabled;
	if (counters->axes.all_cpus && sum->state == TALLY_COUNTED &&
	    sum->time_running < sum->time_enabled) {
		sum->scaled = tly_scale(sum->raw, sum->time_enabled, sum->time_running);
		sum->source = TALLY_SOURCE_SCALED;
	}
	return 0;
}

int tally_counters_sum(struct tally_counters *counters, size_t event, struct tally_value *value)
{
	set_absent(counters, event, value);
	for (size_t task = 0; task < counters->axes.nr_tasks; task++) {
		struct tally_value one;
		int code = sum_task(counters, event, task, &one);

		if (code < 0)
			return code;
		accumulate(value, &one);
	}
	return 0;
}
