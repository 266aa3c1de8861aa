// SPDX-License-Identifier: MIT
/* `tally list`: the events of this machine. */
#include "tool/list.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/attr.h>

#include "tool/command.h"
#include "tool/commands.h"
#include "tool/json.h"

enum {
	KEY_JSON = 0x100,
	KEY_ATTR,
	KEY_ALL_PMUS,
};

static const struct tool_option options[] = {
	{'v', "verbose", TOOL_NONE, false, NULL,
	 "show what names stand for, and tracepoints' fields"},
	{KEY_JSON, "json", TOOL_NONE, false, NULL, "write JSON (tally-list(1) has the schema)"},
	{KEY_ATTR, "attr", TOOL_NONE, false, NULL,
	 "show the perf_event_attr that each EVENT stands for"},
	{KEY_ALL_PMUS, "all-pmus", TOOL_NONE, false, NULL,
	 "show the events of processors that this machine has not, too"},
	{0},
};

const struct list_kind list_kinds[TALLY_EVENT_KINDS] = {
	[TALLY_EVENT_HARDWARE] = {"hw", "hardware", "Hardware events"},
	[TALLY_EVENT_SOFTWARE] = {"sw", "software", "Software events, counted by the kernel"},
	[TALLY_EVENT_CACHE] = {"cache", "cache", "Hardware cache events"},
	[TALLY_EVENT_PMU] = {"pmu", "pmu", "Events of units in /sys/bus/event_source/devices"},
	[TALLY_EVENT_TRACEPOINT] = {"tracepoint", "tracepoint", "Tracepoints"},
	[TALLY_EVENT_RAW] = {"raw", "raw", "Raw events"},
	[TALLY_EVENT_BREAKPOINT] = {"mem", "breakpoint", "Hardware breakpoints"},
	[TALLY_EVENT_PROBE] = {"probe", "probe", "Dynamic probes"},
	[TALLY_EVENT_VENDOR] = {"vendor", "vendor",
				"Events of this processor, as its vendor calls them"},
	[TALLY_EVENT_FOREIGN] = {"foreign", "foreign", "Events of other processors"},
};

/* What this machine may have. */
#define ALL_KINDS (((1u << TALLY_EVENT_KINDS) - 1) & ~(1u << TALLY_EVENT_FOREIGN))

struct query {
	unsigned int kinds;
	char **patterns;
	size_t nr_patterns;
	bool tracepoints; /* this machine has some that we may see */
	struct list *list;
};

/* Whether @word names a kind of events. */
static bool find_kind(const char *word, unsigned int *mask)
{
	for (unsigned int kind = 0; kind < TALLY_EVENT_KINDS; kind++)
		if (!strcmp(word, list_kinds[kind].word) || !strcmp(word, list_kinds[kind].full)) {
			*mask = 1u << kind;
			return true;
		}
	return false;
}

static bool matches(const char *pattern, const char *text)
{
	if (strpbrk(pattern, "*?["))
		return !fnmatch(pattern, text, FNM_CASEFOLD);
	return strcasestr(text, pattern);
}

static bool is_wanted(const struct query *query, const struct list_entry *entry)
{
	for (size_t i = 0; i < query->nr_patterns; i++) {
		const char *pattern = query->patterns[i];

		if (matches(pattern, entry->name) || matches(pattern, entry->alias) ||
		    matches(pattern, entry->desc))
			return true;
	}
	return !query->nr_patterns;
}

static void free_entry(struct list_entry *entry)
{
	for (size_t i = 0; i < entry->nr_fields; i++) {
		free(entry->fields[i].name);
		free(entry->fields[i].type);
	}
	free(entry->fields);
	free(entry->name);
	free(entry->alias);
	free(entry->pmu);
	free(entry->encoding);
	free(entry->unit);
	free(entry->desc);
}

static int add_field(const struct tally_tracepoint_field *field, void *ctx)
{
	struct list_entry *entry = ctx;
	struct list_field *grown =
		reallocarray(entry->fields, entry->nr_fields + 1, sizeof(*grown));

	if (!grown)
		return ENOMEM;
	entry->fields = grown;
	grown[entry->nr_fields++] = (struct list_field){
		.name = strdup(field->name),
		.type = strdup(field->type),
		.offset = field->offset,
		.size = field->size,
		.is_signed = field->is_signed,
	};
	return grown[entry->nr_fields - 1].name && grown[entry->nr_fields - 1].type ? 0 : ENOMEM;
}

/* The kernel describes a tracepoint by its fields alone: so do we. */
static bool describe_tracepoint(struct list_entry *entry)
{
	size_t size = 1;
	char *p;

	if (tally_tracepoint_fields(entry->name, add_field, entry, NULL) == ENOMEM)
		return false;
	for (size_t i = 0; i < entry->nr_fields; i++)
		size += strlen(entry->fields[i].name) + strlen(", ");
	free(entry->desc);
	entry->desc = p = malloc(size);
	if (!p)
		return false;
	*p = '\0';
	for (size_t i = 0; i < entry->nr_fields; i++)
		p += sprintf(p, "%s%s", i ? ", " : "", entry->fields[i].name);
	return true;
}

static int add_entry(const struct tally_event_info *info, void *ctx)
{
	struct query *query = ctx;
	struct list *list = query->list;
	struct list_entry entry = {
		.kind = info->kind,
		.name = strdup(info->name),
		.alias = strdup(info->alias),
		.pmu = strdup(info->pmu),
		.encoding = strdup(info->encoding),
		.unit = strdup(info->unit),
		.desc = strdup(info->desc),
	};
	struct list_entry *grown;

	if (!entry.name || !entry.alias || !entry.pmu || !entry.encoding || !entry.unit ||
	    !entry.desc)
		goto no_memory;
	if (entry.kind == TALLY_EVENT_TRACEPOINT) {
		query->tracepoints = true;
		if (!describe_tracepoint(&entry))
			goto no_memory;
	}
	if (!is_wanted(query, &entry)) {
		free_entry(&entry);
		return 0;
	}
	grown = reallocarray(list->entries, list->nr + 1, sizeof(*grown));
	if (!grown)
		goto no_memory;
	if (entry.kind <= TALLY_EVENT_PMU || entry.kind == TALLY_EVENT_VENDOR)
		entry.state = list_try(entry.name);
	list->entries = grown;
	list->entries[list->nr++] = entry;
	return 0;

no_memory:
	free_entry(&entry);
	return ENOMEM;
}

static int ignore_field(const struct tally_tracepoint_field *field, void *ctx)
{
	(void)field;
	(void)ctx;
	return 1;
}

/* Why there are no tracepoints, when they are kept from us; false when they are not. */
static bool keeps_tracepoints(const struct query *query, struct tally_error *why)
{
	return !query->tracepoints && query->kinds & 1u << TALLY_EVENT_TRACEPOINT &&
	       tally_tracepoint_fields("sched:sched_switch", ignore_field, NULL, why) < 0 &&
	       (why->code == -EACCES || why->code == -ENOTSUP);
}

static bool explain_tracepoints(const struct query *query)
{
	struct tally_error why;
	const bool kept = keeps_tracepoints(query, &why);

	if (kept)
		tool_error(&why);
	return kept;
}

/* Nothing is called so: the parser's suggestions are the best remedy there is. */
static int nothing_found(const struct query *query)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err = {.remedy = ""}, hidden;

	if (!query->nr_patterns) {
		tally_events_free(events);
		if (explain_tracepoints(query))
			return TOOL_FAILED;
		return tool_fail("this machine has no such events: 'tally doctor' says why");
	}
	if (events && strpbrk(query->patterns[0], "*?[,{}/ ") == NULL)
		tally_events_parse(events, query->patterns[0], 0, &err);
	tally_events_free(events);
	snprintf(err.what, sizeof(err.what), "no event%s matches '%s'",
		 query->kinds == ALL_KINDS ? "" : " of that kind", query->patterns[0]);
	/* What was looked for may be one of those that are kept from us. */
	if (keeps_tracepoints(query, &hidden)) {
		err.remedy[0] = '\0';
		tool_error(&err);
		return tool_error(&hidden);
	}
	if (strncmp(err.remedy, "did you mean", strlen("did you mean")) != 0)
		snprintf(err.remedy, sizeof(err.remedy), "'tally list' shows them all");
	return tool_error(&err);
}

static int list_events(struct query *query, bool json)
{
	struct tally_error err;
	int ret, status = TOOL_OK;

	ret = tally_events_enumerate(query->kinds, add_entry, query, &err);
	if (ret)
		status = tool_fail("out of memory");
	else if (json)
		list_json(query->list);
	else if (!query->list->nr)
		status = nothing_found(query);
	else
		list_text(query->list);
	if (status == TOOL_OK && query->list->nr && !query->nr_patterns) {
		fflush(stdout);
		explain_tracepoints(query);
	}
	for (size_t i = 0; i < query->list->nr; i++)
		free_entry(&query->list->entries[i]);
	free(query->list->entries);
	return status;
}

/* --attr */

static void show_attr(const struct tally_event *event)
{
	char text[2048];

	tally_attr_format(event->attr, text, sizeof(text));
	printf("%s: %s\n", event->name, text);
}

static void show_attr_json(struct tool_json *json, const struct tally_event *event)
{
	const struct perf_event_attr *attr = event->attr;
	char text[2048];

	tally_attr_format(attr, text, sizeof(text));
	tool_json_object(json, NULL);
	tool_json_text(json, "name", event->name);
	tool_json_uint(json, "leader", event->leader);
	tool_json_text(json, "pmu", event->pmu);
	tool_json_text(json, "unit", event->unit);
	tool_json_double(json, "scale", event->scale);
	tool_json_text(json, "cpus", event->cpus);
	tool_json_object(json, "attr");
	/* "field=value field=value": the numbers as the text has them, so that none is rounded. */
	for (char *save, *field = strtok_r(text, " \n", &save); field;
	     field = strtok_r(NULL, " \n", &save)) {
		char *value = strchr(field, '=');

		if (value) {
			*value++ = '\0';
			tool_json_text(json, field, value);
		}
	}
	tool_json_end(json);
	tool_json_end(json);
}

static int show_attrs(const struct tool_command *command, char **names, size_t nr, bool as_json)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;
	struct tool_json json;
	int status = TOOL_OK;

	if (!events)
		return tool_fail("out of memory");
	if (!nr)
		status = tool_usage(command, "--attr wants an EVENT");
	for (size_t i = 0; i < nr && status == TOOL_OK; i++)
		if (tally_events_parse(events, names[i], 0, &err))
			status = tool_error(&err);
	if (status == TOOL_OK && as_json) {
		tool_json_start(&json, stdout, true);
		tool_json_array(&json, NULL);
	}
	for (size_t i = 0; status == TOOL_OK && i < tally_events_count(events); i++)
		if (as_json)
			show_attr_json(&json, tally_events_at(events, i));
		else
			show_attr(tally_events_at(events, i));
	if (status == TOOL_OK && as_json) {
		tool_json_end(&json);
		tool_json_finish(&json);
	}
	tally_events_free(events);
	return status;
}

/* A list that did not reach its reader is not a success. */
static int written(int status)
{
	if (status == TOOL_OK && (fflush(stdout) || ferror(stdout)))
		return tool_fail("cannot write to standard output");
	return status;
}

static int run(const struct tool_command *command, int argc, char **argv)
{
	struct tool_parse parse = {.command = command, .argc = argc, .argv = argv};
	bool json = false, attr = false, all_pmus = false;
	struct list list = {0};
	struct query query = {.list = &list};
	unsigned int kind;
	int key;

	while ((key = tool_next_option(&parse)) > 0) {
		if (key == 'v')
			list.verbose = true;
		else if (key == KEY_JSON)
			json = true;
		else if (key == KEY_ALL_PMUS)
			all_pmus = true;
		else
			attr = true;
	}
	if (key < 0)
		return key == -1 ? TOOL_USAGE : TOOL_OK;
	query.patterns = argv + parse.index;
	if (attr)
		return written(show_attrs(command, query.patterns, argc - parse.index, json));
	/* The words that name a kind go; what is left are patterns. */
	for (int i = parse.index; i < argc; i++)
		if (find_kind(argv[i], &kind))
			query.kinds |= kind;
		else
			query.patterns[query.nr_patterns++] = argv[i];
	if (all_pmus)
		query.kinds |= 1u << TALLY_EVENT_VENDOR | 1u << TALLY_EVENT_FOREIGN;
	if (!query.kinds)
		query.kinds = ALL_KINDS;
	return written(list_events(&query, json));
}

const struct tool_command list_command = {
	.name = "list",
	.summary = "list the events of this machine, and search them",
	.usage = "[-v] [--json] [hw|sw|cache|pmu|tracepoint|raw|mem|probe|vendor]... [PATTERN...]",
	.options = options,
	.run = run,
};
