// SPDX-License-Identifier: MIT
/* The report as a table for people: comment lines, a heading, rows, and trees below the rows. */
#include <string.h>

#include "tool/report.h"

#define PERCENT_WIDTH 7 /* "100.00%" */
#define TREE_INDENT   10
#define WIDEST_COLUMN 60

#define RED   "\033[31m"
#define GREEN "\033[32m"
#define RESET "\033[m"

struct column {
	enum key key;
	const char *heading;
	int width;
};

static const char *heading(enum key key)
{
	static const char *const headings[NR_KEYS] = {
		[KEY_COMM] = "Command", [KEY_PID] = "PID",
		[KEY_TID] = "TID",	[KEY_CPU] = "CPU",
		[KEY_EVENT] = "Event",	[KEY_DSO] = "Shared object",
		[KEY_SYM] = "Symbol",	[KEY_SRCLINE] = "Source line",
	};

	return headings[key];
}

static bool is_number(enum key key)
{
	return key == KEY_PID || key == KEY_TID || key == KEY_CPU;
}

static void put_percent(struct output *output, uint64_t part, uint64_t whole)
{
	struct buffer *buffer = &output->buffer;
	double percent = whole ? 100.0 * part / whole : 0;
	const char *colour = percent >= 5 ? RED : percent >= 0.5 ? GREEN : "";

	if (!output->colour)
		colour = "";
	buffer_text(buffer, colour);
	buffer_percent(buffer, part, whole, PERCENT_WIDTH - 1);
	buffer_char(buffer, '%');
	if (*colour)
		buffer_text(buffer, RESET);
}

/* ---- what stands above the tables ---- */

static void put_seconds(struct buffer *buffer, uint64_t nanoseconds)
{
	buffer_decimal(buffer, nanoseconds / 1000000000, 0, ' ');
	buffer_char(buffer, '.');
	buffer_decimal(buffer, nanoseconds % 1000000000 / 1000, 6, '0');
}

/* Arguments may have several lines, a comment has one. */
static void put_line(struct buffer *buffer, const char *text)
{
	for (; *text; text++)
		if (*text == '\n')
			buffer_text(buffer, "\\n");
		else
			buffer_char(buffer, *text);
}

static void put_head(const struct report *report, struct buffer *buffer)
{
	const struct tally_perfdata_info *info = tally_perfdata_info(report->session->reader);
	const struct session_totals *totals = &report->session->totals;

	if (info->cmdline) {
		buffer_text(buffer, "# recorded by: ");
		put_line(buffer, info->cmdline);
		buffer_char(buffer, '\n');
	}
	if (info->hostname)
		buffer_printf(buffer, "# recorded on: %s%s%s%s%s\n", info->hostname,
			      info->osrelease ? ", Linux " : "",
			      info->osrelease ? info->osrelease : "", info->arch ? ", " : "",
			      info->arch ? info->arch : "");
	if (totals->timed && totals->samples) {
		buffer_text(buffer, "# time span:   ");
		put_seconds(buffer, totals->last - totals->first);
		buffer_text(buffer, " s, from ");
		put_seconds(buffer, totals->first);
		buffer_text(buffer, " to ");
		put_seconds(buffer, totals->last);
		buffer_char(buffer, '\n');
	}
	buffer_text(buffer, "# lost:        ");
	buffer_grouped(buffer, totals->lost);
	buffer_text(buffer, " samples");
	if (totals->throttled) {
		buffer_text(buffer, ", throttled ");
		buffer_grouped(buffer, totals->throttled);
		buffer_text(buffer, " times");
	}
	buffer_char(buffer, '\n');
}

static void put_section_head(const struct report *report, const struct report_section *section,
			     struct buffer *buffer)
{
	buffer_text(buffer, "#\n# event:       ");
	if (section->event == SIZE_MAX) {
		buffer_text(buffer, "all, see the column; ");
	} else {
		const struct tally_perfdata_event *event =
			tally_perfdata_event(report->session->reader, section->event);

		buffer_text(buffer, event->name);
		buffer_text(buffer, ", ");
		report_source(buffer, event);
		buffer_text(buffer, "\n# samples:     ");
	}
	buffer_grouped(buffer, section->total.samples);
	buffer_text(buffer, ", worth ");
	buffer_grouped(buffer, section->total.period);
	if (section->event != SIZE_MAX) {
		const struct tally_perfdata_event *event =
			tally_perfdata_event(report->session->reader, section->event);
		const char *unit = report_unit(event);

		buffer_printf(buffer, " %s", *unit ? unit : "events");
	}
	buffer_char(buffer, '\n');
	if (section->table->strays) {
		buffer_text(buffer, "# call chains: ");
		buffer_percent(buffer, section->table->strays, section->total.samples, 0);
		buffer_text(
			buffer,
			"% of the samples have callers that are not known: code\n"
			"#              without frame pointers; --call-graph dwarf records them\n");
	}
	buffer_text(buffer, "#\n");
}

/* ---- trees ---- */

struct painter {
	const struct report *report;
	const struct report_section *section;
	const struct calltree *tree;
	struct output *output;
	struct buffer prefix;
};

static void put_name(const struct painter *painter, uint32_t function)
{
	const struct places *places = profile_places(painter->report->profile);
	const struct function *f = places_function(places, function);
	struct buffer *buffer = &painter->output->buffer;

	buffer_text(buffer, f->name);
	if (!strcmp(f->name, UNKNOWN))
		buffer_printf(buffer, " (%s)", places_dso_name(places, f->dso));
	if (f->inlined)
		buffer_text(buffer, " (inlined)");
	buffer_char(buffer, '\n');
}

static uint32_t next_shown(const struct painter *painter, uint32_t child, uint64_t parent)
{
	while (child && !report_shows_node(painter->report, painter->section,
					   calltree_node(painter->tree, child)->total, parent))
		child = calltree_node(painter->tree, child)->next;
	return child;
}

static void put_children(struct painter *painter, uint32_t index);

static void put_branch(struct painter *painter, uint32_t index, uint64_t parent, bool last)
{
	const struct calltree_node *node = calltree_node(painter->tree, index);
	struct buffer *buffer = &painter->output->buffer;
	size_t length = painter->prefix.size;
	uint64_t whole = painter->report->options->tree == REPORT_FRACTAL
				 ? parent
				 : painter->section->total.period;

	buffer_repeat(buffer, ' ', TREE_INDENT);
	buffer_bytes(buffer, painter->prefix.data, painter->prefix.size);
	buffer_text(buffer, last ? "`-" : "|-");
	put_percent(painter->output, node->total, whole);
	buffer_char(buffer, ' ');
	put_name(painter, node->function);
	buffer_text(&painter->prefix, last ? "  " : "| ");
	put_children(painter, index);
	painter->prefix.size = length;
}

/*
 * A chain of single calls is one branch with a line for each function: only where ways part does a
 * line need a number.
 */
static void put_children(struct painter *painter, uint32_t index)
{
	struct buffer *buffer = &painter->output->buffer;

	for (;;) {
		const struct calltree_node *node = calltree_node(painter->tree, index);
		uint32_t child = next_shown(painter, node->child, node->total);

		if (!child || calltree_node(painter->tree, child)->total != node->total ||
		    index == CALLTREE_ROOT)
			break;
		buffer_repeat(buffer, ' ', TREE_INDENT);
		buffer_bytes(buffer, painter->prefix.data, painter->prefix.size);
		buffer_repeat(buffer, ' ', PERCENT_WIDTH + 1);
		put_name(painter, calltree_node(painter->tree, child)->function);
		index = child;
	}
	uint64_t parent = calltree_node(painter->tree, index)->total;
	uint32_t child = next_shown(painter, calltree_node(painter->tree, index)->child, parent);

	while (child) {
		uint32_t next =
			next_shown(painter, calltree_node(painter->tree, child)->next, parent);

		put_branch(painter, child, parent, !next);
		child = next;
	}
}

static void put_tree(const struct report *report, const struct report_section *section,
		     const struct row *row, struct output *output)
{
	struct calltree *tree = report_tree(report, section, row);
	struct painter painter = {report, section, tree, output, {.fd = -1}};
	uint32_t top = report_tree_top(report, tree, row);

	const struct calltree_node *node = calltree_node(tree, top);
	uint32_t child = next_shown(&painter, node->child, node->total);
	bool any = child;

	while (child) {
		uint32_t next = next_shown(&painter, calltree_node(tree, child)->next, node->total);

		put_branch(&painter, child, node->total, !next);
		child = next;
	}
	if (any)
		buffer_char(&output->buffer, '\n');
	buffer_free(&painter.prefix);
	calltree_free(tree);
}

/* ---- tables ---- */

static size_t make_columns(const struct report *report, const struct report_section *section,
			   struct column columns[NR_KEYS])
{
	const struct keys *keys = &report->options->keys;

	for (size_t i = 0; i < keys->nr; i++)
		columns[i] = (struct column){keys->key[i], heading(keys->key[i]),
					     strlen(heading(keys->key[i]))};
	for (size_t r = 0; r < section->table->nr; r++) {
		const struct row *row = &section->table->rows[r];

		if (!report_shows(report, section, row))
			continue;
		for (size_t i = 0; i < keys->nr; i++) {
			char scratch[KEY_TEXT_SIZE];
			int width = strlen(profile_key_text(report->profile, columns[i].key,
							    row->value[columns[i].key], scratch));

			if (width > WIDEST_COLUMN)
				width = WIDEST_COLUMN;
			if (width > columns[i].width)
				columns[i].width = width;
		}
	}
	return keys->nr;
}

static void put_headings(const struct report *report, const struct report_section *section,
			 const struct column *columns, size_t nr, struct buffer *buffer)
{
	buffer_text(buffer, section->children ? "# Children     Self" : "# Overhead");
	if (report->options->show_samples)
		buffer_text(buffer, "     Samples");
	if (report->options->show_period)
		buffer_text(buffer, "            Period");
	for (size_t i = 0; i < nr; i++) {
		buffer_text(buffer, "  ");
		if (is_number(columns[i].key))
			buffer_field(buffer, columns[i].heading, -columns[i].width);
		else
			buffer_field(buffer, columns[i].heading, i + 1 < nr ? columns[i].width : 0);
	}
	buffer_char(buffer, '\n');
}

static void put_value(const struct report *report, const struct row *row,
		      const struct column *column, bool last, struct buffer *buffer)
{
	const struct places *places = profile_places(report->profile);
	char scratch[KEY_TEXT_SIZE];
	const char *text =
		profile_key_text(report->profile, column->key, row->value[column->key], scratch);

	buffer_text(buffer, "  ");
	if (is_number(column->key)) {
		buffer_field(buffer, text, -column->width);
		return;
	}
	if (column->key == KEY_SYM) {
		const struct function *f = places_function(places, row->value[KEY_SYM]);

		buffer_char(buffer, '[');
		buffer_char(buffer, f->level);
		buffer_text(buffer, "] ");
		buffer_field(buffer, text, last || f->inlined ? 0 : column->width);
		if (f->inlined) {
			int fill = column->width - (int)strlen(text) - 10;

			buffer_text(buffer, " (inlined)");
			buffer_repeat(buffer, ' ', last || fill < 0 ? 0 : fill);
		}
		return;
	}
	buffer_field(buffer, text, last ? 0 : column->width);
}

static void put_row(const struct report *report, const struct report_section *section,
		    const struct row *row, const struct column *columns, size_t nr,
		    struct output *output)
{
	struct buffer *buffer = &output->buffer;

	buffer_repeat(buffer, ' ', 3);
	if (section->children) {
		put_percent(output, row->total, section->total.period);
		buffer_repeat(buffer, ' ', 2);
	}
	put_percent(output, row->self, section->total.period);
	if (report->options->show_samples)
		buffer_decimal(buffer, row->self_nr, 12, ' ');
	if (report->options->show_period)
		buffer_decimal(buffer, row->self, 18, ' ');
	for (size_t i = 0; i < nr; i++)
		put_value(report, row, &columns[i], i + 1 == nr, buffer);
	buffer_char(buffer, '\n');
}

static void put_why_hidden(const struct report *report, struct buffer *buffer)
{
	const struct filter *filter = &report->session->filter;
	bool filtered = filter->dsos.nr || filter->symbols.nr;

	if (filtered)
		buffer_text(buffer, " of other files or functions");
	if (report->options->percent_limit > 0)
		buffer_printf(buffer, "%s below %g%% (see --percent-limit)", filtered ? ", or" : "",
			      report->options->percent_limit);
}

static void put_section(const struct report *report, const struct report_section *section,
			struct output *output)
{
	struct buffer *buffer = &output->buffer;
	struct column columns[NR_KEYS];
	size_t hidden = 0;
	size_t nr = make_columns(report, section, columns);

	put_section_head(report, section, buffer);
	put_headings(report, section, columns, nr, buffer);
	for (size_t i = 0; i < section->table->nr; i++) {
		const struct row *row = &section->table->rows[i];

		if (!report_shows(report, section, row)) {
			hidden++;
			continue;
		}
		put_row(report, section, row, columns, nr, output);
		if (report->options->tree)
			put_tree(report, section, row, output);
	}
	if (hidden) {
		buffer_text(buffer, "# not shown: ");
		buffer_grouped(buffer, hidden);
		buffer_text(buffer, hidden == 1 ? " row" : " rows");
		put_why_hidden(report, buffer);
		buffer_char(buffer, '\n');
	}
}

static void put_nothing(const struct report *report, struct buffer *buffer)
{
	buffer_text(buffer, "#\n# no samples\n");
	if (report->session->totals.traces)
		buffer_text(buffer, "# there is a trace of branches: perf script --itrace=b or "
				    "perf report --itrace=b shows it\n");
}

void report_text(struct report *report, struct output *output)
{
	put_head(report, &output->buffer);
	if (!report->nr_sections)
		put_nothing(report, &output->buffer);
	for (size_t i = 0; i < report->nr_sections; i++) {
		if (i)
			buffer_char(&output->buffer, '\n');
		put_section(report, &report->sections[i], output);
	}
}
