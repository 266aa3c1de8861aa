// SPDX-License-Identifier: MIT
/* Samples and records as JSON, one object a line; tally-script(1) documents it. */
#include <string.h>

#include "tool/script.h"

static void put_name(struct buffer *buffer, const char *name)
{
	buffer_text(buffer, ", \"");
	buffer_text(buffer, name);
	buffer_text(buffer, "\": ");
}

static void put_text(struct buffer *buffer, const char *name, const char *text)
{
	put_name(buffer, name);
	buffer_json(buffer, text);
}

static void put_number(struct buffer *buffer, const char *name, uint64_t value)
{
	put_name(buffer, name);
	buffer_decimal(buffer, value, 0, ' ');
}

/* Addresses are strings: JSON's numbers lose the low bits of large ones. */
static void put_hex(struct buffer *buffer, const char *name, uint64_t value)
{
	put_name(buffer, name);
	buffer_text(buffer, "\"0x");
	buffer_hex(buffer, value, 0, ' ');
	buffer_char(buffer, '"');
}

static void put_id(struct buffer *buffer, const char *name, uint32_t id)
{
	put_name(buffer, name);
	if (id == UINT32_MAX)
		buffer_text(buffer, "-1");
	else
		buffer_decimal(buffer, id, 0, ' ');
}

static void put_frames(struct script *script, uint32_t index, unsigned int fields,
		       const char **between, struct buffer *buffer)
{
	struct places *places = script->session->places;
	size_t nr;
	uint32_t first = places_frames(places, index, &nr);
	const struct place *place = places_at(places, index);

	for (size_t i = 0; i < nr; i++) {
		const struct frame *frame = places_frame(places, first + i);
		const struct function *function = places_function(places, frame->function);

		buffer_text(buffer, *between);
		*between = ", ";
		buffer_text(buffer, "{\"ip\": \"0x");
		buffer_hex(buffer, place->ip, 0, ' ');
		buffer_char(buffer, '"');
		if (fields & FIELD_SYM) {
			put_name(buffer, "sym");
			if (strcmp(function->name, UNKNOWN))
				buffer_json(buffer, function->name);
			else
				buffer_text(buffer, "null");
		}
		if ((fields & FIELD_SYMOFF) && place->at.symbol && !function->inlined)
			put_number(buffer, "offset", place->at.address - place->at.symbol->start);
		if (fields & FIELD_DSO) {
			put_name(buffer, "dso");
			if (place->at.dso)
				buffer_json(buffer, tally_dso_name(place->at.dso));
			else
				buffer_text(buffer, "null");
			if (place->at.dso)
				put_hex(buffer, "address", place->at.address);
		}
		if ((fields & FIELD_SRCLINE) && frame->source)
			put_text(buffer, "srcline", places_source(places, frame->source));
		if (function->inlined) {
			put_name(buffer, "inlined");
			buffer_text(buffer, "true");
		}
		buffer_char(buffer, '}');
	}
}

void script_json_sample(struct script *script, const struct session_item *item,
			struct buffer *buffer)
{
	const struct script_event *event = &script->events[item->event];
	const struct tally_sample *sample = &item->record->sample;
	unsigned int fields = event->fields;

	buffer_text(buffer, "{\"type\": \"SAMPLE\"");
	put_text(buffer, "event", event->name);
	if (fields & FIELD_COMM)
		put_text(buffer, "comm", item->comm);
	if (fields & (FIELD_PID | FIELD_TID)) {
		put_id(buffer, "pid", item->pid);
		put_id(buffer, "tid", item->tid);
	}
	if (fields & FIELD_CPU)
		put_number(buffer, "cpu", item->record->id.cpu);
	if (fields & FIELD_TIME)
		put_number(buffer, "time_ns", item->time);
	if (fields & FIELD_PERIOD)
		put_number(buffer, "period", item->period);
	if (fields & FIELD_ADDR)
		put_hex(buffer, "addr", sample->addr);
	script_json_details(script, item, fields, buffer);
	if ((fields & FIELD_TRACE) && script->tracepoints) {
		struct buffer text = {.fd = -1};

		tracepoints_text(script->tracepoints, item, &text);
		buffer_char(&text, '\0');
		put_text(buffer, "trace", text.data);
		buffer_free(&text);
		put_name(buffer, "fields");
		tracepoints_json(script->tracepoints, item, buffer);
	}
	if (fields & (FIELD_IP | FIELD_SYM | FIELD_DSO | FIELD_SRCLINE)) {
		size_t nr = script_stack(script, item);
		const char *between = "";

		put_name(buffer, "stack");
		buffer_char(buffer, '[');
		for (size_t i = 0; i < nr; i++)
			put_frames(script, script->places[i], fields, &between, buffer);
		buffer_char(buffer, ']');
	}
	buffer_text(buffer, "}\n");
}

static void put_body(const struct tally_record *record, struct buffer *buffer)
{
	switch (record->type) {
	case PERF_RECORD_COMM:
		put_text(buffer, "name", record->comm.comm);
		put_name(buffer, "exec");
		buffer_text(buffer, record->misc & PERF_RECORD_MISC_COMM_EXEC ? "true" : "false");
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		put_id(buffer, "parent_pid", record->task.ppid);
		put_id(buffer, "parent_tid", record->task.ptid);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		put_hex(buffer, "start", record->mmap.start);
		put_hex(buffer, "length", record->mmap.len);
		put_hex(buffer, "offset", record->mmap.pgoff);
		put_text(buffer, "file", record->mmap.filename);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		put_text(buffer, "direction",
			 record->misc & PERF_RECORD_MISC_SWITCH_OUT ? "out" : "in");
		break;
	case PERF_RECORD_LOST:
		put_number(buffer, "lost", record->lost.lost);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		put_number(buffer, "lost", record->lost_samples.lost);
		break;
	case PERF_RECORD_CGROUP:
		put_number(buffer, "cgroup", record->cgroup.id);
		put_text(buffer, "path", record->cgroup.path);
		break;
	case PERF_RECORD_KSYMBOL:
		put_hex(buffer, "start", record->ksymbol.addr);
		put_number(buffer, "length", record->ksymbol.len);
		put_text(buffer, "name", record->ksymbol.name);
		break;
	case PERF_RECORD_BPF_EVENT:
		put_number(buffer, "id", record->bpf_event.id);
		break;
	}
}

void script_json_record(struct script *script, const struct session_item *item,
			struct buffer *buffer)
{
	const struct tally_record *record = item->record;
	const char *name = tally_record_type_name(record->type);

	uint32_t pid = item->pid, tid = item->tid;

	(void)script;
	session_subject(record, &pid, &tid);
	buffer_text(buffer, "{\"type\": ");
	if (name)
		buffer_json(buffer, name);
	else
		buffer_printf(buffer, "\"%u\"", record->type);
	put_text(buffer, "comm", item->comm);
	put_id(buffer, "pid", pid);
	put_id(buffer, "tid", tid);
	if (record->id.has & PERF_SAMPLE_CPU)
		put_number(buffer, "cpu", record->id.cpu);
	put_number(buffer, "time_ns", item->time);
	put_body(record, buffer);
	buffer_text(buffer, "}\n");
}
