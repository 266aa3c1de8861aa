// SPDX-License-Identifier: MIT
/*
 * The table for people. A line is
 *
 *	[time] [place] value unit event # metric unit (deviation) (where it comes from)
 *
 * and what has no number has a footnote instead of the metric.
 */
#include "tool/stat.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>

#include "tool/reasons.h"
#include "tool/stat_metric.h"
#include "tool/terminal.h"

#define MIN_NAME 17
#define MAX_NAME 48

struct text {
	const struct stat_session *stat;
	FILE *out;
	int place_width, name_width, cgroup_width;
	int metric_width; /* 0: nothing stands behind it */
	int pad;	  /* spaces between the names and what follows, if anything does */
	const char *bold, *dim, *plain;
	struct tool_reasons *reasons;
};

static void name_place(const struct stat_place *place, char *name, size_t size)
{
	if (place->cpu >= 0)
		snprintf(name, size, "CPU%d", place->cpu);
	else if (place->tid >= 0)
		snprintf(name, size, "%s-%d", place->comm, place->tid);
	else
		*name = '\0';
}

static void widen(int *width, const char *name)
{
	size_t length = strlen(name);

	if (length > MAX_NAME)
		length = MAX_NAME;
	if ((int)length > *width)
		*width = (int)length;
}

static void start_text(struct text *text, const struct stat_session *stat)
{
	*text = (struct text){.stat = stat,
			      .out = stat->options.out,
			      .reasons = stat->reasons,
			      .name_width = MIN_NAME,
			      .bold = "",
			      .dim = "",
			      .plain = ""};
	if (tool_colours(text->out)) {
		text->bold = "\033[1m";
		text->dim = "\033[2m";
		text->plain = "\033[0m";
	}
	for (size_t i = 0; i < stat->table.nr_events; i++) {
		const struct stat_event *event = &stat->table.events[i];

		widen(&text->name_width, event->name);
		if (event->cgroup)
			widen(&text->cgroup_width, event->cgroup);
	}
	for (size_t i = 0; i < stat->table.nr_places; i++) {
		char name[64];

		name_place(&stat->table.places[i], name, sizeof(name));
		widen(&text->place_width, name);
	}
}

/* Puts a comma before every third digit of the integer part. */
static void group_digits(const char *number, char *grouped, size_t size)
{
	const char *digits = number + (*number == '-');
	size_t before_point = strspn(digits, "0123456789"), used = 0;

	if (*number == '-' && size > 1)
		grouped[used++] = '-';
	for (size_t i = 0; digits[i] && used + 2 < size; i++) {
		if (i && i < before_point && (before_point - i) % 3 == 0)
			grouped[used++] = ',';
		grouped[used++] = digits[i];
	}
	grouped[used] = '\0';
}

/* A sum of whole events is shown whole; a mean of few keeps two digits of its fraction. */
static void format_value(const struct text *text, size_t place, size_t event, char *buf,
			 size_t size)
{
	const struct stat_table *table = &text->stat->table;
	double scale = table->events[event].scale;
	double count = stat_count(table, place, event);
	char number[400];

	if (scale != 1.0)
		snprintf(number, sizeof(number), "%.2f", count * scale);
	else if (table->runs > 1)
		snprintf(number, sizeof(number), "%.*f",
			 count < 100 && fabs(count - round(count)) > 1e-9 ? 2 : 0, count);
	else
		snprintf(number, sizeof(number), "%" PRIu64,
			 stat_cell(table, place, event)->value.scaled);
	if (text->stat->options.big_numbers)
		group_digits(number, buf, size);
	else
		snprintf(buf, size, "%s", number);
}

/* @all: the line is of all places alike. */
static void write_place(const struct text *text, const struct stat_place *place, bool all)
{
	char name[64];

	name_place(place, name, sizeof(name));
	if (*name)
		fprintf(text->out, "%-*s ", text->place_width, all ? "" : name);
}

static void pad(struct text *text)
{
	fprintf(text->out, "%*s", text->pad, "");
	text->pad = 0;
}

/* In columns, but with no spaces at the end of a line. */
static void write_column(struct text *text, const char *name, int width)
{
	int rest = width - (int)strlen(name);

	pad(text);
	fputs(name, text->out);
	text->pad = rest > 0 ? rest : 0;
}

static void write_names(struct text *text, const struct stat_event *event)
{
	write_column(text, event->name, text->name_width);
	if (!text->cgroup_width)
		return;
	text->pad++;
	if (event->cgroup)
		write_column(text, event->cgroup, text->cgroup_width);
	else
		text->pad += text->cgroup_width;
}

static bool format_metric(const struct stat_table *table, size_t place, size_t event,
			  double elapsed, char *buf, size_t size)
{
	static const char prefixes[] = " KMGT";
	struct stat_metric metric;
	size_t prefix = 0;

	if (!stat_metric(table, place, event, elapsed, &metric))
		return false;
	while (metric.rate && metric.value >= 1000 && prefix < strlen(prefixes) - 1) {
		metric.value /= 1000;
		prefix++;
	}
	if (metric.percent)
		snprintf(buf, size, " # %8.2f%% %s", metric.value, metric.unit);
	else
		snprintf(buf, size, " # %9.3f %.*s%s", metric.value, prefix > 0, &prefixes[prefix],
			 metric.unit);
	return true;
}

/* Nothing for what the kernel counted all the time: that is what everybody expects. */
static void write_source(struct text *text, const struct tally_value *value)
{
	if (value->source > TALLY_SOURCE_KERNEL)
		pad(text);
	switch (value->source) {
	case TALLY_SOURCE_NONE:
	case TALLY_SOURCE_KERNEL:
		break;
	case TALLY_SOURCE_SCALED:
		fprintf(text->out, "  (scaled: counted %.1f%% of the time)", stat_running(value));
		break;
	case TALLY_SOURCE_USER:
		fputs("  (counted in user mode)", text->out);
		break;
	case TALLY_SOURCE_MODEL:
		fputs("  (computed by the model)", text->out);
		break;
	}
}

/* Without a deviation where there is nothing that could deviate. */
static void write_spread(struct text *text, const struct spread *spread)
{
	if (spread->mean != 0) {
		pad(text);
		fprintf(text->out, "  ( +- %6.2f%% )", spread_percent(spread));
	}
	if (spread->n < text->stat->table.runs) {
		pad(text);
		fprintf(text->out, "  (counted in %" PRIu64 " of %zu runs)", spread->n,
			text->stat->table.runs);
	}
}

static void write_cell(struct text *text, size_t place, size_t event, double elapsed)
{
	const struct stat_table *table = &text->stat->table;
	const struct stat_event *e = &table->events[event];
	const struct stat_cell *cell = stat_cell(table, place, event);
	char value[448], metric[96] = "";

	write_place(text, &table->places[place], e->error.code);
	if (cell->value.state != TALLY_COUNTED) {
		const char *what, *remedy;
		char state[32];

		stat_reason(table, place, event, &what, &remedy);
		snprintf(state, sizeof(state), "<%s>", stat_state_name(cell->value.state));
		fprintf(text->out, "%18s %-5s%s", state, "", text->dim);
		write_names(text, e);
		pad(text);
		fprintf(text->out, " # [%zu]%s", tool_reason(text->reasons, what, remedy),
			text->plain);
	} else {
		format_value(text, place, event, value, sizeof(value));
		fprintf(text->out, "%s%18s%s %-5s", text->bold, value, text->plain, e->unit);
		write_names(text, e);
		if (format_metric(table, place, event, elapsed, metric, sizeof(metric)))
			write_column(text, metric, text->metric_width);
		else
			text->pad += text->metric_width;
		if (table->runs > 1)
			write_spread(text, &cell->spread);
		write_source(text, &cell->value);
	}
	fputc('\n', text->out);
	text->pad = 0;
}

static void write_line(struct text *text, size_t place, size_t event, double time, double elapsed)
{
	if (time >= 0)
		fprintf(text->out, "%15.9f ", time);
	write_cell(text, place, event, elapsed);
}

static bool by_thread(const struct stat_table *table)
{
	return table->places[0].tid >= 0;
}

/* Of threads there may be hundreds: the busiest first, and none that did nothing. */
static void write_threads(struct text *text, size_t event, double time, double elapsed)
{
	const struct stat_table *table = &text->stat->table;
	size_t *order = text->stat->order;

	stat_order(table, event, order);
	for (size_t i = 0; i < table->nr_places; i++)
		if (!stat_idle(table, order[i]))
			write_line(text, order[i], event, time, elapsed);
}

/*
 * By event, so that the places of one stand below each other. One that did not open is the same in
 * all of them.
 */
static void write_cells(struct text *text, double time, double elapsed)
{
	const struct stat_table *table = &text->stat->table;

	for (size_t event = 0; event < table->nr_events; event++) {
		if (table->events[event].error.code) {
			write_line(text, 0, event, time, elapsed);
			continue;
		}
		if (by_thread(table)) {
			write_threads(text, event, time, elapsed);
			continue;
		}
		for (size_t place = 0; place < table->nr_places; place++)
			if (!stat_cell(table, place, event)->absent)
				write_line(text, place, event, time, elapsed);
	}
}

static void write_time(const struct text *text, const struct spread *time, const char *what)
{
	if (text->stat->table.runs > 1)
		fprintf(text->out, "%18.6f +- %.6f seconds %s  ( +- %.2f%% )\n", time->mean,
			spread_deviation(time), what, spread_percent(time));
	else
		fprintf(text->out, "%18.9f seconds %s\n", time->mean, what);
}

static void write_idle(const struct text *text)
{
	const struct stat_table *table = &text->stat->table;
	size_t idle = 0;

	if (!by_thread(table) || !table->nr_events)
		return;
	for (size_t i = 0; i < table->nr_places; i++)
		idle += stat_idle(table, i);
	if (idle)
		fprintf(text->out, " %zu %s that counted nothing %s left out\n\n", idle,
			idle == 1 ? "thread" : "threads", idle == 1 ? "is" : "are");
}

static void write_notes(struct text *text)
{
	const struct stat_table *table = &text->stat->table;
	bool user_only = false;

	for (size_t i = 0; i < table->nr_events; i++)
		user_only |= table->events[i].user_only && !table->events[i].error.code;
	if (!text->reasons->nr && !user_only)
		return;
	tool_reasons_write(text->reasons, text->out, 1, text->bold, text->plain);
	if (text->reasons->nr && text->stat->options.out_of_reach) {
		fputs("     ", text->out);
		tool_wrap(text->out,
			  "or start it by 'tally run -- COMMAND': user mode counts there what the "
			  "kernel cannot",
			  5, 80);
	}
	if (user_only) {
		fputs(" :u  ", text->out);
		tool_wrap(text->out,
			  "was added where this user may not count what the kernel does; 'tally "
			  "doctor' says how to allow it",
			  5, 80);
	}
	fputc('\n', text->out);
}

/* So that the deviations stand below each other. */
static void measure_metrics(struct text *text)
{
	const struct stat_table *table = &text->stat->table;
	char metric[96];

	for (size_t place = 0; place < table->nr_places; place++)
		for (size_t event = 0; event < table->nr_events; event++)
			if (format_metric(table, place, event, table->elapsed.mean, metric,
					  sizeof(metric)))
				widen(&text->metric_width, metric);
}

static void text_start(const struct stat_session *stat)
{
	struct text text;

	if (!stat->options.interval)
		return;
	start_text(&text, stat);
	if (by_thread(&stat->table))
		fputs("# threads are left out of intervals in which they counted nothing\n",
		      text.out);
	fprintf(text.out, "#%14s %*s%18s %-5sevent\n", "time",
		text.place_width + !!text.place_width, "", "count", "unit");
}

static void text_interval(const struct stat_session *stat, double time, double elapsed)
{
	struct text text;

	start_text(&text, stat);
	write_cells(&text, time, elapsed);
}

static void write_death(const struct text *text)
{
	const struct stat_session *stat = text->stat;

	if (stat->table.has_command && WIFSIGNALED(stat->wait_status))
		fprintf(text->out, " The command was ended by signal %d (%s)\n\n",
			WTERMSIG(stat->wait_status), strsignal(WTERMSIG(stat->wait_status)));
}

static void text_finish(const struct stat_session *stat)
{
	const struct stat_table *table = &stat->table;
	struct text text;

	start_text(&text, stat);
	if (stat->options.interval && !stat->options.summary) {
		if (text.reasons->nr)
			fputc('\n', text.out);
		write_notes(&text);
		return;
	}
	fputs("\n Counted for ", text.out);
	stat_describe(stat, text.out);
	if (table->runs > 1) {
		measure_metrics(&text);
		fprintf(text.out, " (%zu runs, mean +- standard deviation)", table->runs);
	}
	if (stat->options.delay)
		fprintf(text.out, ", from %u ms after the start", stat->options.delay);
	fputs(":\n\n", text.out);
	write_cells(&text, -1, table->elapsed.mean);
	if (table->nr_events)
		fputc('\n', text.out);
	write_time(&text, &table->elapsed, "time elapsed");
	fputc('\n', text.out);
	if (table->has_command) {
		write_time(&text, &table->user,
			   stat->options.delay ? "user, from the start" : "user");
		write_time(&text, &table->sys, stat->options.delay ? "sys, from the start" : "sys");
		fputc('\n', text.out);
	}
	write_death(&text);
	write_idle(&text);
	write_notes(&text);
}

const struct stat_printer stat_text = {text_start, text_interval, text_finish};
