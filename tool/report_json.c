// SPDX-License-Identifier: MIT
/* The report as one JSON object; tally-report(1) documents it. */
#include <string.h>

#include "tool/report.h"

#define SCHEMA 1

/* Writes `, "name": ` or, at the start of an object, `"name": `. */
static void put_name(struct buffer *buffer, const char *name, bool *first)
{
	buffer_text(buffer, *first ? "\"" : ", \"");
	buffer_text(buffer, name);
	buffer_text(buffer, "\": ");
	*first = false;
}

static void put_text(struct buffer *buffer, const char *name, const char *text, bool *first)
{
	put_name(buffer, name, first);
	buffer_json(buffer, text);
}

static void put_number(struct buffer *buffer, const char *name, uint64_t value, bool *first)
{
	put_name(buffer, name, first);
	buffer_decimal(buffer, value, 0, ' ');
}

static void put_percent(struct buffer *buffer, const char *name, uint64_t part, uint64_t whole,
			bool *first)
{
	put_name(buffer, name, first);
	buffer_percent(buffer, part, whole, 0);
}

static void put_dso(const struct report *report, struct buffer *buffer, uint32_t dso, bool *first)
{
	const struct places *places = profile_places(report->profile);

	put_text(buffer, "dso", places_dso_name(places, dso), first);
	if (places_dso(places, dso))
		put_text(buffer, "path", tally_dso_name(places_dso(places, dso)), first);
}

static void put_function(const struct report *report, struct buffer *buffer, uint32_t function,
			 bool *first)
{
	const struct function *f = places_function(profile_places(report->profile), function);
	char level[2] = {f->level, '\0'};

	put_text(buffer, "sym", f->name, first);
	put_text(buffer, "level", level, first);
	if (f->inlined) {
		put_name(buffer, "inlined", first);
		buffer_text(buffer, "true");
	}
}

static void put_nodes(const struct report *report, const struct report_section *section,
		      const struct calltree *tree, uint32_t parent, struct buffer *buffer)
{
	uint64_t above = calltree_node(tree, parent)->total;
	bool any = false;

	buffer_char(buffer, '[');
	for (uint32_t i = calltree_node(tree, parent)->child; i; i = calltree_node(tree, i)->next) {
		const struct calltree_node *node = calltree_node(tree, i);
		bool first = true;

		if (!report_shows_node(report, section, node->total, above))
			continue;
		buffer_text(buffer, any ? ", {" : "{");
		any = true;
		put_function(report, buffer, node->function, &first);
		put_dso(report, buffer,
			places_function(profile_places(report->profile), node->function)->dso,
			&first);
		put_number(buffer, "period", node->total, &first);
		put_number(buffer, "samples", node->total_nr, &first);
		if (node->child) {
			put_name(buffer, "tree", &first);
			put_nodes(report, section, tree, i, buffer);
		}
		buffer_char(buffer, '}');
	}
	buffer_char(buffer, ']');
}

static void put_key(const struct report *report, const struct row *row, enum key key,
		    struct buffer *buffer, bool *first)
{
	char scratch[KEY_TEXT_SIZE];
	const char *text = profile_key_text(report->profile, key, row->value[key], scratch);

	switch (key) {
	case KEY_PID:
	case KEY_TID:
	case KEY_CPU:
		put_name(buffer, key_name(key), first);
		buffer_text(buffer, text);
		break;
	case KEY_DSO:
		put_dso(report, buffer, row->value[key], first);
		break;
	case KEY_SYM:
		put_function(report, buffer, row->value[key], first);
		break;
	default:
		put_text(buffer, key_name(key), text, first);
	}
}

static void put_row(const struct report *report, const struct report_section *section,
		    const struct row *row, struct buffer *buffer)
{
	const struct keys *keys = &report->options->keys;
	bool first = true;

	buffer_char(buffer, '{');
	put_percent(buffer, "percent", row->self, section->total.period, &first);
	put_number(buffer, "period", row->self, &first);
	put_number(buffer, "samples", row->self_nr, &first);
	if (section->children) {
		put_percent(buffer, "children_percent", row->total, section->total.period, &first);
		put_number(buffer, "children_period", row->total, &first);
		put_number(buffer, "children_samples", row->total_nr, &first);
	}
	for (size_t i = 0; i < keys->nr; i++)
		put_key(report, row, keys->key[i], buffer, &first);
	if (report->options->tree) {
		struct calltree *tree = report_tree(report, section, row);

		put_name(buffer, "tree", &first);
		put_nodes(report, section, tree, report_tree_top(report, tree, row), buffer);
		calltree_free(tree);
	}
	buffer_char(buffer, '}');
}

static void put_section(const struct report *report, const struct report_section *section,
			struct buffer *buffer)
{
	bool first = true, any = false;

	buffer_text(buffer, "  {");
	if (section->event == SIZE_MAX) {
		put_name(buffer, "event", &first);
		buffer_text(buffer, "null");
	} else {
		const struct tally_perfdata_event *event =
			tally_perfdata_event(report->session->reader, section->event);
		struct buffer source = {.fd = -1};

		put_text(buffer, "event", event->name, &first);
		report_source(&source, event);
		buffer_char(&source, '\0');
		put_text(buffer, "source", source.data, &first);
		put_text(buffer, "unit", report_unit(event), &first);
		buffer_free(&source);
	}
	put_number(buffer, "samples", section->total.samples, &first);
	put_number(buffer, "period", section->total.period, &first);
	put_number(buffer, "strays", section->table->strays, &first);
	if (report->options->tree)
		put_text(buffer, "tree_order",
			 section->order == CALLTREE_CALLERS ? "callee" : "caller", &first);
	put_name(buffer, "rows", &first);
	buffer_text(buffer, "[");
	for (size_t i = 0; i < section->table->nr; i++) {
		if (!report_shows(report, section, &section->table->rows[i]))
			continue;
		buffer_text(buffer, any ? ",\n   " : "\n   ");
		any = true;
		put_row(report, section, &section->table->rows[i], buffer);
	}
	buffer_text(buffer, "]}");
}

void report_json(struct report *report, struct output *output)
{
	const struct tally_perfdata_info *info = tally_perfdata_info(report->session->reader);
	const struct session_totals *totals = &report->session->totals;
	struct buffer *buffer = &output->buffer;
	bool first = true;

	buffer_char(buffer, '{');
	put_number(buffer, "schema", SCHEMA, &first);
	if (info->cmdline)
		put_text(buffer, "recorded_by", info->cmdline, &first);
	if (info->hostname)
		put_text(buffer, "hostname", info->hostname, &first);
	if (info->osrelease)
		put_text(buffer, "osrelease", info->osrelease, &first);
	if (info->arch)
		put_text(buffer, "arch", info->arch, &first);
	if (totals->timed && totals->samples) {
		put_number(buffer, "first_ns", totals->first, &first);
		put_number(buffer, "last_ns", totals->last, &first);
	}
	put_number(buffer, "lost", totals->lost, &first);
	put_number(buffer, "throttled", totals->throttled, &first);
	put_name(buffer, "sort", &first);
	buffer_char(buffer, '[');
	for (size_t i = 0; i < report->options->keys.nr; i++) {
		buffer_text(buffer, i ? ", " : "");
		buffer_json(buffer, key_name(report->options->keys.key[i]));
	}
	buffer_char(buffer, ']');
	if (report->session->damage.code)
		put_text(buffer, "damage", report->session->damage.what, &first);
	put_name(buffer, "events", &first);
	buffer_char(buffer, '[');
	for (size_t i = 0; i < report->nr_sections; i++) {
		buffer_text(buffer, i ? ",\n" : "\n");
		put_section(report, &report->sections[i], buffer);
	}
	buffer_text(buffer, "]}\n");
}
