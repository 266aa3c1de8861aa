// SPDX-License-Identifier: MIT
/*
 * Comma-separated values, in the order that scripts know from perf, and after it the source:
 *
 *	[time,] [place,] value, unit, event, [cgroup,] [deviation%,] running time, percent of the
 *	time running, metric, unit of the metric, source
 */
#include "tool/stat.h"

#include <inttypes.h>
#include <string.h>

#include "tool/stat_metric.h"

/* As RFC 4180 has it, but only where a reader could be misled. */
static void write_field(const struct stat_session *stat, const char *text)
{
	FILE *out = stat->options.out;

	if (!strstr(text, stat->options.separator) && !strpbrk(text, "\"\n")) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void write_text(const struct stat_session *stat, const char *text)
{
	write_field(stat, text);
	fputs(stat->options.separator, stat->options.out);
}

static void write_place(const struct stat_session *stat, const struct stat_place *place)
{
	char name[64];

	if (place->cpu >= 0)
		snprintf(name, sizeof(name), "CPU%d", place->cpu);
	else if (place->tid >= 0)
		snprintf(name, sizeof(name), "%s-%d", place->comm, place->tid);
	else
		return;
	write_text(stat, name);
}

static void write_value(const struct stat_session *stat, size_t place, size_t event)
{
	const struct stat_table *table = &stat->table;
	const struct stat_cell *cell = stat_cell(table, place, event);
	double scale = table->events[event].scale;
	char value[400];

	if (cell->value.state != TALLY_COUNTED)
		snprintf(value, sizeof(value), "<%s>", stat_state_name(cell->value.state));
	else if (scale != 1.0)
		snprintf(value, sizeof(value), "%.6f", stat_count(table, place, event) * scale);
	else if (table->runs > 1)
		snprintf(value, sizeof(value), "%.2f", stat_count(table, place, event));
	else
		snprintf(value, sizeof(value), "%" PRIu64, cell->value.scaled);
	write_text(stat, value);
}

static void write_cell(const struct stat_session *stat, size_t place, size_t event, double elapsed)
{
	const struct stat_table *table = &stat->table;
	const struct stat_event *e = &table->events[event];
	const struct stat_cell *cell = stat_cell(table, place, event);
	const char *separator = stat->options.separator;
	FILE *out = stat->options.out;
	struct stat_metric metric;

	write_place(stat, &table->places[place]);
	write_value(stat, place, event);
	write_text(stat, e->unit);
	write_text(stat, e->name);
	if (table->by_cgroup)
		write_text(stat, e->cgroup ? e->cgroup : "");
	if (table->runs > 1 && cell->spread.n)
		fprintf(out, "%.2f%%", spread_percent(&cell->spread));
	if (table->runs > 1)
		fputs(separator, out);
	if (cell->value.state == TALLY_COUNTED && !cell->value.time_running)
		fprintf(out, "%s%s", separator, separator);
	else
		fprintf(out, "%" PRIu64 "%s%.2f%s", cell->value.time_running, separator,
			stat_running(&cell->value), separator);
	if (stat_metric(table, place, event, elapsed, &metric))
		fprintf(out, "%.3f%s%s%s%s", metric.value, separator, metric.percent ? "% " : "",
			metric.unit, separator);
	else
		fprintf(out, "%s%s", separator, separator);
	fprintf(out, "%s\n", stat_source_name(cell->value.source));
}

/* @time: what stands before each line, or NULL. */
static void write_cells(const struct stat_session *stat, const char *time, double elapsed)
{
	for (size_t event = 0; event < stat->table.nr_events; event++) {
		for (size_t place = 0; place < stat->table.nr_places; place++) {
			if (stat_cell(&stat->table, place, event)->absent)
				continue;
			if (time)
				write_text(stat, time);
			write_cell(stat, place, event, elapsed);
		}
	}
}

static void csv_start(const struct stat_session *stat)
{
	(void)stat;
}

static void csv_interval(const struct stat_session *stat, double time, double elapsed)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9f", time);
	write_cells(stat, text, elapsed);
}

static void csv_finish(const struct stat_session *stat)
{
	if (!stat->options.interval)
		write_cells(stat, NULL, stat->table.elapsed.mean);
	else if (stat->options.summary)
		write_cells(stat, "summary", stat->table.elapsed.mean);
}

const struct stat_printer stat_csv = {csv_start, csv_interval, csv_finish};
