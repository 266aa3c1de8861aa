// SPDX-License-Identifier: MIT
/*
 * The formats blob is what the kernel's tracefs said at the time of the recording:
 *
 *	23 8 68 "tracing"  "0.6\0"  endian:1  long size:1  page size:4
 *	"header_page\0" size:8 text   "header_event\0" size:8 text
 *	ftrace events:4, each  size:8 text
 *	systems:4, each  "name\0" events:4, each  size:8 text
 *	kallsyms size:4 text   printk formats size:4 text   [saved command lines size:8 text]
 */
#include "tool/tracepoints.h"

#include <stdlib.h>
#include <string.h>

#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "tool/memory.h"

struct tracepoints {
	struct session *session;
	struct tep_handle *tep;
	struct trace_seq line;
	const struct session_item *item; /* being printed: for addresses in it */
};

/* A place in the blob; reads past its end give zeros and are remembered. */
struct cursor {
	const unsigned char *at, *end;
	bool overrun;
};

static const void *take(struct cursor *cursor, uint64_t size)
{
	const void *at = cursor->at;

	if (cursor->overrun || size > (uint64_t)(cursor->end - cursor->at)) {
		cursor->overrun = true;
		return NULL;
	}
	cursor->at += size;
	return at;
}

static uint64_t take_number(struct cursor *cursor, size_t size)
{
	const void *bytes = take(cursor, size);
	uint64_t value = 0;

	if (bytes)
		memcpy(&value, bytes, size); /* of this machine's order: checked before */
	return value;
}

static const char *take_string(struct cursor *cursor)
{
	const void *end = memchr(cursor->at, '\0', cursor->end - cursor->at);

	if (!end) {
		cursor->overrun = true;
		return NULL;
	}
	return take(cursor, (const unsigned char *)end - cursor->at + 1);
}

/* A sized text as a terminated copy, for parsers that write into it; NULL at the end. */
static char *take_text(struct cursor *cursor, size_t size_size, uint64_t *size)
{
	const char *text;

	*size = take_number(cursor, size_size);
	text = take(cursor, *size);
	return text ? tool_copy(text, *size) : NULL;
}

static void parse_event(struct tep_handle *tep, struct cursor *cursor, const char *system)
{
	uint64_t size;
	char *text = take_text(cursor, 8, &size);

	/* An event that cannot be parsed prints as such; the others do not suffer. */
	if (text)
		tep_parse_event(tep, text, size, system);
	free(text);
}

static bool parse_head(struct tep_handle *tep, struct cursor *cursor)
{
	static const char magic[] = "\027\010\104tracing";
	const char *start = take(cursor, sizeof(magic) - 1);
	uint64_t size;
	char *text;

	if (!start || memcmp(start, magic, sizeof(magic) - 1) || !take_string(cursor))
		return false;
	if (take_number(cursor, 1) != 0) /* big-endian */
		return false;
	tep_set_long_size(tep, (int)take_number(cursor, 1));
	tep_set_page_size(tep, (int)take_number(cursor, 4));
	if (!take_string(cursor))
		return false;
	text = take_text(cursor, 8, &size);
	if (text)
		tep_parse_header_page(tep, text, size, tep_get_long_size(tep));
	free(text);
	if (!take_string(cursor))
		return false;
	take(cursor, take_number(cursor, 8));
	return !cursor->overrun;
}

static void parse_formats(struct tep_handle *tep, struct cursor *cursor)
{
	uint64_t size;
	char *text;

	if (!parse_head(tep, cursor))
		return;
	for (uint64_t i = take_number(cursor, 4); i && !cursor->overrun; i--)
		parse_event(tep, cursor, "ftrace");
	for (uint64_t i = take_number(cursor, 4); i && !cursor->overrun; i--) {
		const char *system = take_string(cursor);

		for (uint64_t j = take_number(cursor, 4); j && !cursor->overrun; j--)
			parse_event(tep, cursor, system);
	}
	take(cursor, take_number(cursor, 4));
	text = take_text(cursor, 4, &size);
	if (text && size)
		tep_parse_printk_formats(tep, text);
	free(text);
}

/* Names a kernel address in a payload, as the format's %pS asks for. */
static char *name_address(void *context, unsigned long long *address, char **module)
{
	struct tracepoints *tracepoints = context;
	struct tally_location at;

	tally_machine_resolve(tracepoints->session->machine, tracepoints->item->pid,
			      tracepoints->item->time, PERF_RECORD_MISC_KERNEL, *address, &at);
	*module = NULL;
	if (!at.symbol)
		return NULL;
	*address -= at.address - at.symbol->start;
	return (char *)at.symbol->name;
}

struct tracepoints *tracepoints_new(struct session *session)
{
	const struct tally_perfdata_info *info = tally_perfdata_info(session->reader);
	struct cursor cursor = {info->tracing_data, NULL, false};
	struct tracepoints *tracepoints;

	if (!info->tracing_data)
		return NULL;
	cursor.end = cursor.at + info->tracing_data_size;
	tracepoints = tool_alloc(1, sizeof(*tracepoints));
	tracepoints->session = session;
	tracepoints->tep = tep_alloc();
	if (!tracepoints->tep)
		exit(tool_fail("out of memory"));
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_local_bigendian(tracepoints->tep, TEP_LITTLE_ENDIAN);
	tep_set_file_bigendian(tracepoints->tep, TEP_LITTLE_ENDIAN);
	tep_set_function_resolver(tracepoints->tep, name_address, tracepoints);
	parse_formats(tracepoints->tep, &cursor);
	trace_seq_init(&tracepoints->line);
	return tracepoints;
}

void tracepoints_free(struct tracepoints *tracepoints)
{
	if (!tracepoints)
		return;
	trace_seq_destroy(&tracepoints->line);
	tep_free(tracepoints->tep);
	free(tracepoints);
}

/* The event's format, when the payload is long enough for all its fixed fields. */
static struct tep_event *find_format(struct tracepoints *tracepoints,
				     const struct session_item *item)
{
	const struct perf_event_attr *attr =
		tally_perfdata_event(tracepoints->session->reader, item->event)->attr;
	const struct tally_sample *sample = &item->record->sample;
	struct tep_event *event = tep_find_event(tracepoints->tep, (int)attr->config);
	struct tep_format_field *lists[2];

	if (!event || !(sample->has & PERF_SAMPLE_RAW))
		return NULL;
	lists[0] = event->format.common_fields;
	lists[1] = event->format.fields;
	for (size_t i = 0; i < 2; i++)
		for (struct tep_format_field *f = lists[i]; f; f = f->next)
			if (f->offset < 0 || f->size < 0 ||
			    (uint64_t)f->offset + f->size > sample->raw_size)
				return NULL;
	return event;
}

/* Where the bytes of a field are, for those that keep them at the end as well. */
static bool find_bytes(struct tracepoints *tracepoints, const struct tep_format_field *field,
		       const struct tally_sample *sample, uint64_t *offset, uint64_t *size)
{
	uint64_t where;

	*offset = field->offset;
	*size = field->size;
	if (field->flags & TEP_FIELD_IS_DYNAMIC) {
		where = tep_read_number(tracepoints->tep, (const char *)sample->raw + field->offset,
					field->size);
		*offset = where & 0xffff;
		*size = where >> 16 & 0xffff;
		if (field->flags & TEP_FIELD_IS_RELATIVE)
			*offset += field->offset + field->size;
	}
	return *offset + *size <= sample->raw_size;
}

static bool dynamic_fields_fit(struct tracepoints *tracepoints, const struct tep_event *event,
			       const struct tally_sample *sample)
{
	uint64_t offset, size;

	for (struct tep_format_field *f = event->format.fields; f; f = f->next)
		if (!find_bytes(tracepoints, f, sample, &offset, &size))
			return false;
	return true;
}

void tracepoints_text(struct tracepoints *tracepoints, const struct session_item *item,
		      struct buffer *buffer)
{
	const struct tally_sample *sample = &item->record->sample;
	struct tep_event *event = find_format(tracepoints, item);
	struct tep_record record = {
		.cpu = (int)item->record->id.cpu,
		.size = (int)sample->raw_size,
		.data = (void *)sample->raw,
	};

	if (!event || !dynamic_fields_fit(tracepoints, event, sample))
		return;
	tracepoints->item = item;
	trace_seq_reset(&tracepoints->line);
	tep_print_event(tracepoints->tep, &tracepoints->line, &record, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&tracepoints->line);
	buffer_bytes(buffer, tracepoints->line.buffer, tracepoints->line.len);
}

static void put_field(struct tracepoints *tracepoints, struct tep_format_field *field,
		      const struct tally_sample *sample, struct buffer *buffer)
{
	const char *raw = sample->raw;
	unsigned long long number;
	uint64_t offset, size;

	if (!find_bytes(tracepoints, field, sample, &offset, &size)) {
		buffer_text(buffer, "null");
		return;
	}
	if (field->flags & TEP_FIELD_IS_STRING) {
		char *text = tool_copy(raw + offset, strnlen(raw + offset, size));

		buffer_json(buffer, text);
		free(text);
		return;
	}
	if (field->flags & TEP_FIELD_IS_ARRAY ||
	    tep_read_number_field(field, sample->raw, &number)) {
		/* Bytes of no known meaning. */
		buffer_char(buffer, '"');
		for (uint64_t i = 0; i < size; i++)
			buffer_hex(buffer, (unsigned char)raw[offset + i], 2, '0');
		buffer_char(buffer, '"');
		return;
	}
	if (field->flags & TEP_FIELD_IS_SIGNED) {
		int unused = field->size < 8 ? 64 - 8 * field->size : 0;
		int64_t value = (int64_t)((uint64_t)number << unused) >> unused;

		buffer_text(buffer, value < 0 ? "-" : "");
		buffer_decimal(buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 0, ' ');
		return;
	}
	buffer_decimal(buffer, number, 0, ' ');
}

void tracepoints_json(struct tracepoints *tracepoints, const struct session_item *item,
		      struct buffer *buffer)
{
	const struct tally_sample *sample = &item->record->sample;
	struct tep_event *event = find_format(tracepoints, item);
	const char *between = "";

	buffer_char(buffer, '{');
	for (struct tep_format_field *f = event ? event->format.fields : NULL; f; f = f->next) {
		buffer_text(buffer, between);
		buffer_json(buffer, f->name);
		buffer_text(buffer, ": ");
		put_field(tracepoints, f, sample, buffer);
		between = ", ";
	}
	buffer_char(buffer, '}');
}
