// SPDX-License-Identifier: MIT
/* `tally script`: a recording's samples one after another. */
#include "tool/script.h"

#include <stdlib.h>
#include <string.h>

#include "tool/commands.h"
#include "tool/memory.h"
#include "tool/output.h"
#include "tool/spool.h"

enum option {
	OPT_NS = 256,
	OPT_RECORDS,
	OPT_TASK,
	OPT_MMAP,
	OPT_SWITCH,
	OPT_LOST,
	OPT_CGROUP,
	OPT_BPF,
	OPT_NAMESPACE,
};

static const struct tool_option options[] = {
	{'F', "fields", TOOL_TEXT, false, "FIELDS",
	 "what to show: comm,pid,tid,cpu,misc,tod,time,period,event,trace,addr,data_src,weight,"
	 "ins_lat,retire_lat,transaction,cgroup,ip,sym,symoff,dso,srcline,iregs,uregs,brstack,"
	 "brstacksym,bpf-output,phys_addr,data_page_size,code_page_size; +srcline adds, -cpu leaves "
	 "out"},
	{'j', "json", TOOL_NONE, false, NULL, "a JSON object a line, see tally-script(1)"},
	{OPT_NS, "ns", TOOL_NONE, false, NULL, "times to the nanosecond"},
	{OPT_TASK, "show-task-events", TOOL_NONE, false, NULL, "fork, exit and comm records, too"},
	{OPT_MMAP, "show-mmap-events", TOOL_NONE, false, NULL, "mmap records, too"},
	{OPT_SWITCH, "show-switch-events", TOOL_NONE, false, NULL, "context switches, too"},
	{OPT_LOST, "show-lost-events", TOOL_NONE, false, NULL, "what was lost, too"},
	{OPT_CGROUP, "show-cgroup-events", TOOL_NONE, false, NULL, "cgroup records, too"},
	{OPT_BPF, "show-bpf-events", TOOL_NONE, false, NULL, "BPF programs and their symbols, too"},
	{OPT_NAMESPACE, "show-namespace-events", TOOL_NONE, false, NULL, "namespaces, too"},
	{OPT_RECORDS, "records", TOOL_NONE, false, NULL, "every record of the kernel's, too"},
	SESSION_OPTIONS,
	{0},
};

struct script_options {
	struct session_options session;
	struct field_change fields;
	bool fields_given;
	bool json;
	bool nanoseconds;
	uint64_t records; /* a bit for each type below 64 */
};

static void note_names(struct script *script, size_t nr)
{
	struct places *places = script->session->places;

	nameless_stack(&script->nameless, 1);
	for (size_t i = 0; i < nr; i++) {
		size_t nr_frames;
		uint32_t first = places_frames(places, script->places[i], &nr_frames);

		nameless_function(&script->nameless,
				  places_frame(places, first + nr_frames - 1)->function);
	}
}

size_t script_stack(struct script *script, const struct session_item *item)
{
	const uint64_t *words;
	size_t nr = session_stack(script->session, item, false, &words);
	size_t kept = 0;

	script->places =
		tool_grow(script->places, &script->places_room, nr + 1, sizeof(*script->places));
	session_resolve(script->session, item, words, nr, script->places);
	for (size_t i = 0; i < nr; i++)
		if (!session_is_marker(script->places[i]))
			script->places[kept++] = script->places[i];
	if (script->events[item->event].fields & FIELD_SYM)
		note_names(script, kept);
	return kept;
}

/* Says which of the fields asked for no event of the recording has. */
static void warn_missing(const struct script_options *o, unsigned int recorded)
{
	static const struct {
		unsigned int field;
		const char *what;
	} missing[] = {
		{FIELD_CPU, "cpu: record with --sample-cpu or -a"},
		{FIELD_TIME, "time"},
		{FIELD_ADDR, "addr: record with -d"},
		{FIELD_WEIGHT, "weight: record with -W"},
		{FIELD_PHYS_ADDR, "phys_addr: record with --phys-data"},
		{FIELD_TRACE, "trace: no event is a tracepoint"},
		{FIELD_BPF_OUTPUT, "bpf-output: no event is bpf-output"},
		{FIELD_DATA_SRC, "data_src: record memory accesses with -d"},
		{FIELD_INS_LAT, "ins_lat: record with -W"},
		{FIELD_RETIRE_LAT, "retire_lat: record with -W"},
		{FIELD_TRANSACTION, "transaction: record with --transaction"},
		{FIELD_CGROUP, "cgroup: record with --all-cgroups"},
		{FIELD_IREGS, "iregs: record with -I"},
		{FIELD_UREGS, "uregs: record with --user-regs"},
		{FIELD_BRSTACK | FIELD_BRSTACKSYM, "branch stacks: record with -b"},
		{FIELD_DATA_PAGE_SIZE, "data_page_size: record with --data-page-size"},
		{FIELD_CODE_PAGE_SIZE, "code_page_size: record with --code-page-size"},
	};

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		if (o->fields.add & missing[i].field & ~recorded)
			tool_fail("the recording has no %s", missing[i].what);
}

static bool is_fault(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_PAGE_FAULTS ||
						    attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
						    attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

static void make_events(struct script *script, const struct script_options *o)
{
	struct tally_perfdata *reader = script->session->reader;
	unsigned int recorded = 0, flags = 0;

	script->nr_events = tally_perfdata_events(reader);
	script->events = tool_alloc(script->nr_events, sizeof(*script->events));
	for (size_t i = 0; i < script->nr_events; i++) {
		const struct tally_perfdata_event *event = tally_perfdata_event(reader, i);
		struct script_event *e = &script->events[i];
		int width = (int)strlen(event->name);

		e->name = event->name;
		e->is_fault = is_fault(event->attr);
		e->has_chain = session_event_has_chain(script->session, i);
		e->fields = fields_default(event, o->json);
		if (o->fields_given)
			e->fields = fields_apply(&o->fields, e->fields) & fields_recorded(event);
		recorded |= fields_recorded(event);
		if (width > script->name_width)
			script->name_width = width;
		if (e->has_chain && (e->fields & FIELD_SYM) && !o->session.no_inline)
			flags |= PLACES_INLINE;
		if (e->fields & FIELD_SRCLINE)
			flags |= PLACES_SOURCE;
	}
	places_want(script->session->places, flags);
	if (o->fields_given)
		warn_missing(o, recorded);
	if ((o->fields.add & FIELD_TOD) && !tally_perfdata_info(reader)->wall_clock_ns)
		tool_fail("the recording has no tod: record with -k monotonic");
}

static void print(struct script *script, const struct script_options *o,
		  const struct session_item *item, struct buffer *buffer)
{
	uint32_t type = item->record->type;

	if (item->is_sample) {
		if (!session_hit_passes(script->session, item, true, true))
			return;
		if (o->json)
			script_json_sample(script, item, buffer);
		else
			script_text_sample(script, item, buffer);
	} else if (type < 64 && o->records >> type & 1) {
		if (o->json)
			script_json_record(script, item, buffer);
		else
			script_text_record(script, item, buffer);
	}
}

static int run_script(const struct script_options *o)
{
	struct session session;
	struct script script = {.session = &session, .nanoseconds = o->nanoseconds};
	struct session_item item;
	struct output output;
	struct tally_error err;
	int result, status, closed;

	if (session_open(&session, &o->session, &err) < 0)
		return tool_error(&err);
	script.nameless.places = session.places;
	make_events(&script, o);
	script.tracepoints = tracepoints_new(&session);
	/* A pager would wait for a page before it shows the first line. */
	output_open(&output, !session.follows);
	while ((result = session_next(&session, &item, &err)) > 0 && !output.buffer.error) {
		print(&script, o, &item, &output.buffer);
		if (session.follows && !spool_has_more())
			buffer_flush(&output.buffer);
	}
	closed = output_close(&output);
	nameless_tell(&script.nameless);
	nameless_free(&script.nameless);
	status = result < 0 ? tool_error(&err) : session_verdict(&session);
	if (status == TOOL_OK)
		status = closed;
	script_text_free(&script);
	tracepoints_free(script.tracepoints);
	free(script.events);
	free(script.places);
	session_close(&session);
	return status;
}

static uint64_t record_bits(int key)
{
	switch (key) {
	case OPT_TASK:
		return 1ull << PERF_RECORD_FORK | 1ull << PERF_RECORD_EXIT |
		       1ull << PERF_RECORD_COMM;
	case OPT_MMAP:
		return 1ull << PERF_RECORD_MMAP | 1ull << PERF_RECORD_MMAP2;
	case OPT_SWITCH:
		return 1ull << PERF_RECORD_SWITCH | 1ull << PERF_RECORD_SWITCH_CPU_WIDE;
	case OPT_LOST:
		return 1ull << PERF_RECORD_LOST | 1ull << PERF_RECORD_LOST_SAMPLES;
	case OPT_CGROUP:
		return 1ull << PERF_RECORD_CGROUP;
	case OPT_BPF:
		return 1ull << PERF_RECORD_KSYMBOL | 1ull << PERF_RECORD_BPF_EVENT;
	case OPT_NAMESPACE:
		return 1ull << PERF_RECORD_NAMESPACES;
	case OPT_RECORDS:
		return UINT64_MAX;
	default:
		return 0;
	}
}

/* 1: done, -1: wrong, and said so */
static int take_option(struct script_options *o, const struct tool_command *command, int key,
		       const char *argument)
{
	uint64_t records = record_bits(key);
	const char *bad;
	size_t length;

	if (records) {
		o->records |= records;
		o->session.others = true;
		return 1;
	}
	switch (key) {
	case 'F':
		if (!fields_parse(&o->fields, argument, &bad, &length)) {
			tool_usage(command, "'%.*s' is no field", (int)length, bad);
			return -1;
		}
		o->fields_given = true;
		return 1;
	case 'j':
		o->json = true;
		return 1;
	case OPT_NS:
		o->nanoseconds = true;
		return 1;
	default:
		return session_option(&o->session, command, key, argument);
	}
}

static int run(const struct tool_command *command, int argc, char **argv)
{
	struct tool_parse parse = {command, argc, argv};
	struct script_options o = {.session = {.ordered = true, .follow = true}};
	int key, status = TOOL_USAGE;

	while ((key = tool_next_option(&parse)) > 0)
		if (take_option(&o, command, key, parse.argument) < 0)
			goto out;
	if (key == -2)
		status = TOOL_OK;
	else if (key == 0 && parse.index < argc)
		tool_usage(command, "unexpected '%s': name the recording with -i",
			   argv[parse.index]);
	else if (key == 0)
		status = run_script(&o);
out:
	tool_end_options(&parse);
	filter_free(&o.session.filter);
	return status;
}

const struct tool_command script_command = {
	.name = "script",
	.summary = "show a recording's samples one by one",
	.usage = "[options]",
	.options = options,
	.no_operands = true,
	.run = run,
};
