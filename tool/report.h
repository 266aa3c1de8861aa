/* SPDX-License-Identifier: MIT */
/* What the forms of `tally report` have in common. */
#ifndef TOOL_REPORT_H
#define TOOL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/calltree.h"
#include "tool/output.h"
#include "tool/profile.h"
#include "tool/session.h"

enum report_form {
	REPORT_TEXT,
	REPORT_JSON,
	REPORT_FOLDED,
};

enum report_tree {
	REPORT_NO_TREE,
	REPORT_GRAPH,	/* per cent of all */
	REPORT_FRACTAL, /* per cent of the line above */
};

struct report_options {
	struct session_options session;
	enum report_form form;
	struct keys keys;
	enum report_tree tree;
	enum calltree_order order;
	bool order_chosen;
	bool no_children;
	bool show_samples, show_period;
	double percent_limit; /* of rows; negative: the form's own default */
	double threshold;     /* of lines of a tree */
};

/* One event's part of the report, or that of all events with KEY_EVENT. */
struct report_section {
	size_t event; /* SIZE_MAX: all */
	struct profile_total total;
	bool children; /* rows have totals */
	enum calltree_order order;
	struct table *table;
};

struct report {
	const struct report_options *options;
	struct session *session;
	struct profile *profile;
	struct report_section *sections;
	size_t nr_sections;
};

/* Whether a row is to be shown: percent limit, --dso and --sym. */
bool report_shows(const struct report *report, const struct report_section *section,
		  const struct row *row);
/* Whether a line of a tree is; @parent is the line above's total. */
bool report_shows_node(const struct report *report, const struct report_section *section,
		       uint64_t total, uint64_t parent);
/* The tree of a row. Free with calltree_free(). */
struct calltree *report_tree(const struct report *report, const struct report_section *section,
			     const struct row *row);
/* Where the tree begins: below the row's own function when that is all there is on top. */
uint32_t report_tree_top(const struct report *report, const struct calltree *tree,
			 const struct row *row);

/* What the numbers of an event are and where they come from: "timer of the kernel, 999 Hz". */
void report_source(struct buffer *buffer, const struct tally_perfdata_event *event);
/* "ns" for the clocks and for time off the processor, else "" */
const char *report_unit(const struct tally_perfdata_event *event);

void report_text(struct report *report, struct output *output);
void report_json(struct report *report, struct output *output);
void report_folded(struct report *report, struct output *output);

#endif
