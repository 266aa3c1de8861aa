// SPDX-License-Identifier: MIT
/* One object, or with intervals one a line and the whole last; tally-stat(1) has the schema. */
#include "tool/stat.h"

#include <math.h>
#include <sys/wait.h>

#include "tool/json.h"
#include "tool/stat_metric.h"

static void write_place(struct tool_json *json, const struct stat_place *place)
{
	if (place->cpu >= 0)
		tool_json_int(json, "cpu", place->cpu);
	if (place->tid >= 0) {
		tool_json_int(json, "tid", place->tid);
		tool_json_text(json, "comm", place->comm);
	}
}

static void write_spread(struct tool_json *json, const struct spread *spread, double scale,
			 size_t runs)
{
	tool_json_double(json, "stddev", spread_deviation(spread) * scale);
	tool_json_double(json, "min", spread->min * scale);
	tool_json_double(json, "max", spread->max * scale);
	if (spread->n < runs)
		tool_json_uint(json, "runs", spread->n);
}

static void write_number(struct tool_json *json, const struct stat_table *table, size_t place,
			 size_t event, double elapsed)
{
	const struct stat_event *e = &table->events[event];
	const struct stat_cell *cell = stat_cell(table, place, event);
	struct stat_metric metric;

	/* Whole counts stay whole, also above what a double can hold. */
	if (e->scale == 1.0 && table->runs <= 1)
		tool_json_uint(json, "value", cell->value.scaled);
	else
		tool_json_double(json, "value", stat_count(table, place, event) * e->scale);
	if (table->runs > 1)
		write_spread(json, &cell->spread, e->scale, table->runs);
	if (stat_metric(table, place, event, elapsed, &metric)) {
		char unit[64];

		snprintf(unit, sizeof(unit), "%s%s", metric.percent ? "% " : "", metric.unit);
		tool_json_double(json, "metric", metric.value);
		tool_json_text(json, "metric_unit", unit);
	}
}

/* What was counted took some time, even where the kernel does not say which. */
static void write_nanoseconds(struct tool_json *json, const char *key, uint64_t nanoseconds)
{
	if (nanoseconds)
		tool_json_uint(json, key, nanoseconds);
	else
		tool_json_null(json, key);
}

static void write_cell(struct tool_json *json, const struct stat_table *table, size_t place,
		       size_t event, double elapsed)
{
	const struct stat_event *e = &table->events[event];
	const struct tally_value *value = &stat_cell(table, place, event)->value;

	tool_json_object(json, NULL);
	write_place(json, &table->places[place]);
	tool_json_text(json, "event", e->name);
	if (e->cgroup)
		tool_json_text(json, "cgroup", e->cgroup);
	tool_json_text(json, "unit", e->unit);
	tool_json_text(json, "state", stat_state_name(value->state));
	tool_json_text(json, "source", stat_source_name(value->source));
	if (value->state == TALLY_COUNTED) {
		write_number(json, table, place, event, elapsed);
		tool_json_uint(json, "raw", value->raw);
		write_nanoseconds(json, "time_enabled", value->time_enabled);
		write_nanoseconds(json, "time_running", value->time_running);
	} else {
		const char *what, *remedy;

		stat_reason(table, place, event, &what, &remedy);
		tool_json_null(json, "value");
		tool_json_text(json, "reason", what);
		tool_json_text(json, "remedy", *remedy ? remedy : NULL);
	}
	if (e->snapshot)
		tool_json_bool(json, "snapshot", true);
	if (e->user_only)
		tool_json_bool(json, "user_only", true);
	tool_json_end(json);
}

static void write_cells(struct tool_json *json, const struct stat_table *table, double elapsed)
{
	tool_json_array(json, "counts");
	for (size_t event = 0; event < table->nr_events; event++)
		for (size_t place = 0; place < table->nr_places; place++)
			if (!stat_cell(table, place, event)->absent)
				write_cell(json, table, place, event, elapsed);
	tool_json_end(json);
}

/* The clock has nanoseconds; what is behind them is the rounding of doubles. */
static void write_seconds(struct tool_json *json, const char *key, double seconds)
{
	tool_json_double(json, key, round(seconds * 1e9) / 1e9);
}

static void write_time(struct tool_json *json, const char *key, const struct spread *time,
		       size_t runs)
{
	tool_json_object(json, key);
	write_seconds(json, "seconds", time->mean);
	if (runs > 1)
		write_spread(json, time, 1, runs);
	tool_json_end(json);
}

static void write_numbers(struct tool_json *json, const char *key, const int *numbers, size_t nr)
{
	tool_json_array(json, key);
	for (size_t i = 0; i < nr; i++)
		tool_json_int(json, NULL, numbers[i]);
	tool_json_end(json);
}

static void write_target(struct tool_json *json, const struct stat_session *stat)
{
	static const char *const kinds[] = {
		[TALLY_TARGET_SELF] = "self",	      [TALLY_TARGET_THREADS] = "threads",
		[TALLY_TARGET_PROCESS] = "processes", [TALLY_TARGET_SYSTEM] = "system",
		[TALLY_TARGET_CGROUP] = "cgroups",
	};
	const struct stat_options *options = &stat->options;
	const struct tally_target *target = &options->target.target;

	tool_json_text(json, "target", options->measure_command ? "command" : kinds[target->kind]);
	if (target->nr_ids)
		write_numbers(json, "ids", target->ids, target->nr_ids);
	if (options->target.nr_cpus)
		write_numbers(json, "cpus", target->cpus, target->nr_cpus);
	if (!options->command)
		return;
	tool_json_array(json, "command");
	for (char **word = options->command; *word; word++)
		tool_json_text(json, NULL, *word);
	tool_json_end(json);
	if (WIFEXITED(stat->wait_status))
		tool_json_int(json, "exit_status", WEXITSTATUS(stat->wait_status));
	else
		tool_json_int(json, "signal", WTERMSIG(stat->wait_status));
}

static void json_start(const struct stat_session *stat)
{
	(void)stat;
}

static void json_interval(const struct stat_session *stat, double time, double elapsed)
{
	struct tool_json json;

	tool_json_start(&json, stat->options.out, false);
	tool_json_object(&json, NULL);
	write_seconds(&json, "time", time);
	write_seconds(&json, "interval", elapsed);
	write_cells(&json, &stat->table, elapsed);
	tool_json_end(&json);
	tool_json_finish(&json);
}

static void json_finish(const struct stat_session *stat)
{
	const struct stat_table *table = &stat->table;
	struct tool_json json;

	tool_json_start(&json, stat->options.out, !stat->options.interval);
	tool_json_object(&json, NULL);
	write_target(&json, stat);
	tool_json_uint(&json, "runs", table->runs);
	tool_json_bool(&json, "interrupted", stat->interrupted);
	if (stat->options.delay)
		tool_json_double(&json, "delay", 1e-3 * stat->options.delay);
	write_time(&json, "elapsed", &table->elapsed, table->runs);
	if (table->has_command) {
		write_time(&json, "user", &table->user, table->runs);
		write_time(&json, "sys", &table->sys, table->runs);
	}
	write_cells(&json, table, table->elapsed.mean);
	tool_json_end(&json);
	tool_json_finish(&json);
}

const struct stat_printer stat_json = {json_start, json_interval, json_finish};
