// SPDX-License-Identifier: MIT
/* `tally report`: where the time, or whatever was sampled, went. */
#include "tool/report.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tool/commands.h"
#include "tool/memory.h"
#include "tool/nameless.h"

#define DEFAULT_KEYS  "comm,dso,sym"
#define DEFAULT_LIMIT 0.1 /* per cent; of tables for people */
#define DEFAULT_TREE  0.5

enum option {
	OPT_CHILDREN = 256,
	OPT_NO_CHILDREN,
	OPT_PERCENT_LIMIT,
	OPT_PERIOD,
	OPT_FOLDED,
	OPT_STDIO,
};

static const struct tool_option options[] = {
	{'s', "sort", TOOL_TEXT, false, "KEYS",
	 "a row for each comm,dso,sym; also pid, tid, cpu, event, srcline"},
	{OPT_CHILDREN, "children", TOOL_NONE, false, NULL,
	 "rows for callers, too, with what they called (default with call chains)"},
	{OPT_NO_CHILDREN, "no-children", TOOL_NONE, false, NULL, "rows for what was hit alone"},
	{'g', "call-graph", TOOL_TEXT, true, "HOW",
	 "a tree below each row: graph, fractal or none, caller or callee, least per cent"},
	{'G', "inverted", TOOL_NONE, false, NULL, "the same as --call-graph=caller"},
	{OPT_PERCENT_LIMIT, "percent-limit", TOOL_TEXT, false, "N",
	 "leave out rows below N per cent (0.1; 0 for JSON)"},
	{'n', "show-nr-samples", TOOL_NONE, false, NULL, "a column with the number of samples"},
	{OPT_PERIOD, "show-total-period", TOOL_NONE, false, NULL, "a column with the period"},
	{'j', "json", TOOL_NONE, false, NULL, "JSON, see tally-report(1)"},
	{OPT_FOLDED, "folded", TOOL_NONE, false, NULL, "one line a stack, for flame graphs"},
	{OPT_STDIO, "stdio", TOOL_NONE, false, NULL, "the only way there is: accepted as perf's"},
	SESSION_OPTIONS,
	{0},
};

/* ---- what the forms ask ---- */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

bool report_shows(const struct report *report, const struct report_section *section,
		  const struct row *row)
{
	const struct report_options *o = report->options;
	const struct filter *filter = &report->session->filter;
	const struct places *places = profile_places(report->profile);
	uint64_t weight = section->children ? row->total : row->self;

	if (percent(weight, section->total.period) < o->percent_limit)
		return false;
	if (filter->dsos.nr && keys_have(&o->keys, KEY_DSO) &&
	    !filter_has_dso(filter, places_dso(places, row->value[KEY_DSO])))
		return false;
	return !keys_have(&o->keys, KEY_SYM) ||
	       words_have(&filter->symbols, places_function(places, row->value[KEY_SYM])->name);
}

bool report_shows_node(const struct report *report, const struct report_section *section,
		       uint64_t total, uint64_t parent)
{
	const struct report_options *o = report->options;

	return percent(total, o->tree == REPORT_FRACTAL ? parent : section->total.period) >=
	       o->threshold;
}

struct calltree *report_tree(const struct report *report, const struct report_section *section,
			     const struct row *row)
{
	const struct report_options *o = report->options;
	/* What no line will be shown of. Per cent of the line above are not known beforehand. */
	uint64_t least = o->tree == REPORT_FRACTAL ? 0 : o->threshold / 100 * section->total.period;

	return calltree_of_row(report->profile, section->table, row, section->order,
			       !section->children, least);
}

uint32_t report_tree_top(const struct report *report, const struct calltree *tree,
			 const struct row *row)
{
	uint32_t child = calltree_node(tree, CALLTREE_ROOT)->child;

	if (child && !calltree_node(tree, child)->next &&
	    keys_have(&report->options->keys, KEY_SYM) &&
	    calltree_node(tree, child)->function == row->value[KEY_SYM])
		return child;
	return CALLTREE_ROOT;
}

/* ---- flow ---- */

static int gather(struct report *report)
{
	const struct report_options *o = report->options;
	bool dso = !keys_have(&o->keys, KEY_DSO), symbol = !keys_have(&o->keys, KEY_SYM);
	bool chains = o->form == REPORT_FOLDED || o->tree || !o->no_children;
	struct session_item item;
	struct tally_error err;
	int result;

	while ((result = session_next(report->session, &item, &err)) > 0)
		/* What is no column of the table can only be asked of the samples. */
		if (session_hit_passes(report->session, &item, dso, symbol))
			profile_add(report->profile, &item, chains);
	return result < 0 ? tool_error(&err) : TOOL_OK;
}

static void make_section(struct report *report, size_t event, bool chains)
{
	const struct report_options *o = report->options;
	struct report_section *section = &report->sections[report->nr_sections++];
	bool places = keys_have(&o->keys, KEY_DSO) || keys_have(&o->keys, KEY_SYM) ||
		      keys_have(&o->keys, KEY_SRCLINE);
	unsigned int flags = o->tree ? TABLE_USES : 0;

	section->event = event;
	section->total = profile_total(report->profile, event);
	section->children = chains && places && !o->no_children;
	section->order = o->order_chosen     ? o->order
			 : section->children ? CALLTREE_CALLEES
					     : CALLTREE_CALLERS;
	if (section->children)
		flags |= TABLE_CHILDREN;
	if (section->order == CALLTREE_CALLEES)
		flags |= TABLE_OUTERMOST;
	section->table = profile_table(report->profile, event, flags);
}

static void make_sections(struct report *report)
{
	size_t nr = tally_perfdata_events(report->session->reader);
	bool any_chain = false, together = keys_have(&report->options->keys, KEY_EVENT);

	report->sections = tool_alloc(nr + 1, sizeof(*report->sections));
	for (size_t i = 0; i < nr; i++) {
		bool chain = session_event_has_chain(report->session, i);

		any_chain |= chain;
		if (!together && profile_total(report->profile, i).samples)
			make_section(report, i, chain);
	}
	if (together && profile_total(report->profile, SIZE_MAX).samples)
		make_section(report, SIZE_MAX, any_chain);
}

/* Says of which files names or lines are missing, unless the table has neither. */
static void tell_nameless(const struct report *report)
{
	const struct report_options *o = report->options;
	struct nameless nameless = {.places = report->session->places};
	const bool lines = o->form != REPORT_FOLDED && keys_have(&o->keys, KEY_SRCLINE);

	if (o->form != REPORT_FOLDED && !lines && !keys_have(&o->keys, KEY_SYM))
		return;
	for (size_t i = 0; i < profile_buckets(report->profile); i++) {
		struct bucket_view bucket = profile_bucket(report->profile, i);

		nameless_stack(&nameless, bucket.samples);
		for (size_t j = 0; j < bucket.nr_frames; j++) {
			const struct frame *frame = places_frame(nameless.places, bucket.frames[j]);

			if (lines)
				nameless_line(&nameless, frame);
			else
				nameless_function(&nameless, frame->function);
		}
	}
	nameless_tell(&nameless);
	nameless_free(&nameless);
}

static void print(struct report *report, struct output *output)
{
	switch (report->options->form) {
	case REPORT_TEXT:
		report_text(report, output);
		break;
	case REPORT_JSON:
		report_json(report, output);
		break;
	case REPORT_FOLDED:
		report_folded(report, output);
		break;
	}
}

static unsigned int wanted_places(const struct report_options *o)
{
	unsigned int flags = keys_have(&o->keys, KEY_SRCLINE) ? PLACES_SOURCE : 0;

	/* Inlined calls are seen in call chains only. */
	if (!o->session.no_inline && (o->form == REPORT_FOLDED || o->tree || !o->no_children))
		flags |= PLACES_INLINE;
	return flags;
}

static int run_report(const struct report_options *o)
{
	struct session session;
	struct report report = {.options = o, .session = &session};
	struct output output;
	struct tally_error err;
	int status, closed;
	bool chains = false;

	if (session_open(&session, &o->session, &err) < 0)
		return tool_error(&err);
	for (size_t i = 0; i < tally_perfdata_events(session.reader); i++)
		chains |= session_event_has_chain(&session, i);
	places_want(session.places, chains ? wanted_places(o) : wanted_places(o) & ~PLACES_INLINE);
	report.profile = profile_new(&session, &o->keys);
	status = gather(&report);
	output_open(&output, true);
	make_sections(&report);
	print(&report, &output);
	closed = output_close(&output);
	tell_nameless(&report);
	if (status == TOOL_OK)
		status = closed;
	if (session_verdict(&session) != TOOL_OK)
		status = TOOL_FAILED;

	for (size_t i = 0; i < report.nr_sections; i++)
		table_free(report.sections[i].table);
	free(report.sections);
	profile_free(report.profile);
	session_close(&session);
	return status;
}

/* ---- options ---- */

static bool parse_percent(const char *text, double *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*value = strtod(text, &end);
	return !*end && *value <= 100;
}

/* perf's words: caller begins with the callers, callee with what was hit. */
static bool parse_call_graph(struct report_options *o, const char *text)
{
	struct words words = {0};
	bool good = true;

	words_parse(&words, text);
	for (size_t i = 0; i < words.nr && good; i++) {
		const char *word = words.items[i];

		if (!strcmp(word, "graph")) {
			o->tree = REPORT_GRAPH;
		} else if (!strcmp(word, "fractal")) {
			o->tree = REPORT_FRACTAL;
		} else if (!strcmp(word, "none")) {
			o->tree = REPORT_NO_TREE;
		} else if (!strcmp(word, "caller")) {
			o->order = CALLTREE_CALLEES;
			o->order_chosen = true;
		} else if (!strcmp(word, "callee")) {
			o->order = CALLTREE_CALLERS;
			o->order_chosen = true;
		} else {
			good = parse_percent(word, &o->threshold);
		}
	}
	words_free(&words);
	return good;
}

static bool parse_keys(struct report_options *o, const struct tool_command *command,
		       const char *text)
{
	const char *bad;
	size_t length;

	if (keys_parse(&o->keys, text, &bad, &length))
		return true;
	tool_usage(command,
		   "'%.*s' is no sort key: there are comm, pid, tid, cpu, event, dso, sym, srcline",
		   (int)length, bad);
	return false;
}

/* 1: done, -1: wrong, and said so */
static int take_option(struct report_options *o, const struct tool_command *command, int key,
		       const char *argument)
{
	switch (key) {
	case 's':
		return parse_keys(o, command, argument) ? 1 : -1;
	case OPT_CHILDREN:
		o->no_children = false;
		return 1;
	case OPT_NO_CHILDREN:
		o->no_children = true;
		return 1;
	case 'G':
		argument = "caller";
		/* fall through */
	case 'g':
		o->tree = REPORT_GRAPH;
		if (argument && !parse_call_graph(o, argument)) {
			tool_usage(command,
				   "--call-graph takes graph, fractal, none, caller, callee and a "
				   "per cent, not '%s'",
				   argument);
			return -1;
		}
		return 1;
	case OPT_PERCENT_LIMIT:
		if (!parse_percent(argument, &o->percent_limit)) {
			tool_usage(command, "--percent-limit takes 0 to 100, not '%s'", argument);
			return -1;
		}
		return 1;
	case 'n':
		o->show_samples = true;
		return 1;
	case OPT_PERIOD:
		o->show_period = true;
		return 1;
	case 'j':
		o->form = REPORT_JSON;
		return 1;
	case OPT_FOLDED:
		o->form = REPORT_FOLDED;
		return 1;
	case OPT_STDIO:
		return 1;
	default:
		return session_option(&o->session, command, key, argument);
	}
}

static int run(const struct tool_command *command, int argc, char **argv)
{
	struct tool_parse parse = {command, argc, argv};
	struct report_options o = {.percent_limit = -1, .threshold = DEFAULT_TREE};
	const char *bad;
	size_t length;
	int key, status;

	keys_parse(&o.keys, DEFAULT_KEYS, &bad, &length);
	while ((key = tool_next_option(&parse)) > 0)
		if (take_option(&o, command, key, parse.argument) < 0) {
			status = TOOL_USAGE;
			goto out;
		}
	status = key == -2 ? TOOL_OK : TOOL_USAGE;
	if (key < 0)
		goto out;
	if (parse.index < argc) {
		tool_usage(command, "unexpected '%s': name the recording with -i",
			   argv[parse.index]);
		goto out;
	}
	if (o.percent_limit < 0)
		o.percent_limit = o.form == REPORT_TEXT ? DEFAULT_LIMIT : 0;
	/* Stacks are told apart by command and by nothing else that could be a column. */
	if (o.form == REPORT_FOLDED)
		keys_parse(&o.keys, "comm", &bad, &length);
	status = run_report(&o);
out:
	tool_end_options(&parse);
	filter_free(&o.session.filter);
	return status;
}

const struct tool_command report_command = {
	.name = "report",
	.summary = "show where a recording's samples fell",
	.usage = "[options]",
	.options = options,
	.no_operands = true,
	.run = run,
};
