// SPDX-License-Identifier: MIT
/*
 * Samples as text, in the shape that perf script made common and the stack-collapse scripts read:
 *
 *	comm  tid [cpu] seconds: period event:
 *		address symbol+offset (file)
 *
 * A line of a stack depends on its address alone, so each is made once and copied from then on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/memory.h"
#include "tool/script.h"

struct place_text {
	uint32_t size; /* 0: not yet made */
	size_t first;
	unsigned int fields; /* that it was made for */
};

struct place_texts {
	struct place_text *places;
	size_t nr, room;
	struct buffer lines;
};

static void put_symbol(const struct place *place, const char *name, unsigned int fields,
		       struct buffer *buffer)
{
	const struct tally_symbol *symbol = place->at.symbol;

	buffer_text(buffer, name);
	if ((fields & FIELD_SYMOFF) && symbol) {
		buffer_text(buffer, "+0x");
		buffer_hex(buffer, place->at.address - symbol->start, 0, ' ');
	}
}

static void put_dso(const struct place *place, struct buffer *buffer)
{
	buffer_text(buffer, " (");
	buffer_text(buffer, place->at.dso ? tally_dso_name(place->at.dso) : UNKNOWN);
	buffer_char(buffer, ')');
}

/* The kernel's addresses are known as they are, others by their place in the file. */
static uint64_t shown_address(const struct place *place)
{
	return place->at.dso && place->at.level != 'k' ? place->at.address : place->ip;
}

static void make_lines(struct script *script, uint32_t index, unsigned int fields,
		       struct buffer *buffer)
{
	struct places *places = script->session->places;
	size_t nr;
	uint32_t first = places_frames(places, index, &nr);
	const struct place *place = places_at(places, index);

	for (size_t i = 0; i < nr; i++) {
		const struct frame *frame = places_frame(places, first + i);
		const struct function *function = places_function(places, frame->function);

		buffer_char(buffer, '\t');
		if (fields & FIELD_IP)
			buffer_hex(buffer, shown_address(place), 16, ' ');
		if (fields & FIELD_SYM) {
			buffer_char(buffer, ' ');
			put_symbol(place, function->name, fields, buffer);
		}
		if ((fields & FIELD_DSO) && !function->inlined)
			put_dso(place, buffer);
		if (fields & FIELD_SRCLINE) {
			buffer_text(buffer, "\n  ");
			buffer_text(buffer, places_source(places, frame->source));
		}
		if (function->inlined)
			buffer_text(buffer, " (inlined)");
		buffer_char(buffer, '\n');
	}
}

static void put_lines(struct script *script, uint32_t index, unsigned int fields,
		      struct buffer *buffer)
{
	struct place_texts *texts = script->texts;
	struct place_text *text;

	if (!texts) {
		texts = script->texts = tool_alloc(1, sizeof(*texts));
		texts->lines.fd = -1;
	}
	if (index >= texts->nr) {
		size_t nr = places_nr(script->session->places);

		texts->places = tool_grow(texts->places, &texts->room, nr, sizeof(*texts->places));
		memset(texts->places + texts->nr, 0, (nr - texts->nr) * sizeof(*texts->places));
		texts->nr = nr;
	}
	text = &texts->places[index];
	/* Events that show different fields rarely share addresses. */
	if (!text->size || text->fields != fields) {
		text->first = texts->lines.size;
		text->fields = fields;
		make_lines(script, index, fields, &texts->lines);
		text->size = texts->lines.size - text->first;
	}
	buffer_bytes(buffer, texts->lines.data + text->first, text->size);
}

void script_text_free(struct script *script)
{
	if (!script->texts)
		return;
	free(script->texts->places);
	buffer_free(&script->texts->lines);
	free(script->texts);
}

static void put_time(const struct script *script, uint64_t time, struct buffer *buffer)
{
	uint64_t seconds = time / 1000000000, rest = time % 1000000000;

	buffer_decimal(buffer, seconds, 5, ' ');
	buffer_char(buffer, '.');
	if (script->nanoseconds)
		buffer_decimal(buffer, rest, 9, '0');
	else
		buffer_decimal(buffer, rest / 1000, 6, '0');
	buffer_text(buffer, ": ");
}

/* When it was, by the clock on the wall. */
static void put_time_of_day(const struct script *script, uint64_t time, struct buffer *buffer)
{
	const struct tally_perfdata_info *info = tally_perfdata_info(script->session->reader);
	uint64_t now = info->wall_clock_ns + (time - info->clock_ns);
	time_t seconds = now / 1000000000;
	char text[32];
	struct tm tm;

	if (!info->wall_clock_ns || !localtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof(text), "%F %H:%M:%S.", &tm))
		return;
	buffer_text(buffer, text);
	if (script->nanoseconds)
		buffer_decimal(buffer, now % 1000000000, 9, '0');
	else
		buffer_decimal(buffer, now % 1000000000 / 1000, 6, '0');
	buffer_char(buffer, ' ');
}

/* What the flag means that several types of records share. */
static const char *type_misc(const struct tally_record *record)
{
	uint16_t misc = record->misc;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return misc & PERF_RECORD_MISC_MMAP_DATA ? "M" : "";
	case PERF_RECORD_COMM:
		return misc & PERF_RECORD_MISC_COMM_EXEC ? "E" : "";
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (!(misc & PERF_RECORD_MISC_SWITCH_OUT))
			return "";
		return misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? "Sp" : "S";
	default:
		return "";
	}
}

/* The mode of the processor as a letter, then the flags. */
static void put_misc(const struct tally_record *record, struct buffer *buffer)
{
	/* By PERF_RECORD_MISC_CPUMODE_MASK. */
	static const char *const modes[8] = {"", "K", "U", "H", "G", "g", "", ""};
	char text[8];

	snprintf(text, sizeof(text), "%s%s", modes[record->misc & PERF_RECORD_MISC_CPUMODE_MASK],
		 type_misc(record));
	buffer_field(buffer, text, 6);
}

/* A task's number as a signed one: -1 is nobody. */
static void put_id(struct buffer *buffer, uint32_t id, int width)
{
	if (id == UINT32_MAX)
		buffer_field(buffer, "-1", -width);
	else
		buffer_decimal(buffer, id, width, ' ');
}

static void put_start(const struct script *script, const struct session_item *item,
		      unsigned int fields, bool has_chain, struct buffer *buffer)
{
	if (fields & FIELD_COMM) {
		buffer_field(buffer, item->comm, (fields & FIELD_IP) && has_chain ? 0 : -16);
		buffer_char(buffer, ' ');
	}
	if (fields & FIELD_PID)
		put_id(buffer, item->pid, 5);
	if ((fields & FIELD_PID) && (fields & FIELD_TID)) {
		char text[16];

		snprintf(text, sizeof(text), "/%d", (int)item->tid);
		buffer_field(buffer, text, 6);
	} else if (fields & FIELD_TID) {
		put_id(buffer, item->tid, 5);
	}
	if (fields & (FIELD_PID | FIELD_TID))
		buffer_char(buffer, ' ');
	if (fields & FIELD_CPU) {
		buffer_char(buffer, '[');
		buffer_decimal(buffer, item->record->id.cpu, 3, '0');
		buffer_text(buffer, "] ");
	}
	if (fields & FIELD_MISC)
		put_misc(item->record, buffer);
	if (fields & FIELD_TOD)
		put_time_of_day(script, item->time, buffer);
	if (fields & FIELD_TIME)
		put_time(script, item->time, buffer);
}

/* The data address, with the file that it lies in where the event is about such a place. */
static void put_address(struct script *script, const struct session_item *item,
			const struct script_event *event, struct buffer *buffer)
{
	const uint64_t address = item->record->sample.addr;
	struct places *places = script->session->places;
	const struct place *place;

	buffer_hex(buffer, address, 16, ' ');
	if (!event->is_fault || !(event->fields & (FIELD_SYM | FIELD_DSO)))
		return;
	place = places_at(places, places_find(places, item->pid, item->space, item->time,
					      item->record->misc & PERF_RECORD_MISC_CPUMODE_MASK,
					      address, false));
	if (event->fields & FIELD_SYM) {
		buffer_char(buffer, ' ');
		put_symbol(place, place->at.symbol ? place->at.symbol->name : UNKNOWN,
			   event->fields, buffer);
	}
	if (event->fields & FIELD_DSO)
		put_dso(place, buffer);
}

void script_text_sample(struct script *script, const struct session_item *item,
			struct buffer *buffer)
{
	const struct script_event *event = &script->events[item->event];
	unsigned int fields = event->fields;

	put_start(script, item, fields, event->has_chain, buffer);
	if (fields & FIELD_PERIOD) {
		buffer_decimal(buffer, item->period, 10, ' ');
		buffer_char(buffer, ' ');
	}
	if (fields & FIELD_EVENT) {
		buffer_field(buffer, event->name, -script->name_width);
		buffer_text(buffer, ": ");
	}
	if ((fields & FIELD_TRACE) && script->tracepoints)
		tracepoints_text(script->tracepoints, item, buffer);
	if (fields & FIELD_ADDR)
		put_address(script, item, event, buffer);
	script_text_before_stack(script, item, fields, buffer);
	if (fields & (FIELD_IP | FIELD_SYM | FIELD_DSO | FIELD_SRCLINE)) {
		size_t nr = script_stack(script, item);

		buffer_char(buffer, event->has_chain ? '\n' : ' ');
		if (event->has_chain) {
			for (size_t i = 0; i < nr; i++)
				put_lines(script, script->places[i], fields, buffer);
		} else if (nr) {
			const struct place *place =
				places_at(script->session->places, script->places[0]);
			size_t nr_frames;
			uint32_t frame = places_frames(script->session->places, script->places[0],
						       &nr_frames);

			/* The address as the sample has it, on the line itself. */
			if (fields & FIELD_IP)
				buffer_hex(buffer, place->ip, 16, ' ');
			if (fields & FIELD_SYM) {
				buffer_char(buffer, ' ');
				put_symbol(place,
					   place->at.symbol ? place->at.symbol->name : UNKNOWN,
					   fields, buffer);
			}
			if (fields & FIELD_DSO)
				put_dso(place, buffer);
			if (fields & FIELD_SRCLINE) {
				buffer_text(buffer, "\n  ");
				buffer_text(
					buffer,
					places_source(script->session->places,
						      places_frame(script->session->places, frame)
							      ->source));
			}
		}
	}
	script_text_after_stack(script, item, fields, buffer);
	buffer_char(buffer, '\n');
}

/* ---- records other than samples ---- */

static void put_mmap(const struct tally_record *record, struct buffer *buffer)
{
	const struct tally_mmap *mmap = &record->mmap;

	buffer_printf(buffer, " %d/%d: [%#llx(%#llx) @ %#llx", (int)mmap->pid, (int)mmap->tid,
		      (unsigned long long)mmap->start, (unsigned long long)mmap->len,
		      (unsigned long long)mmap->pgoff);
	if (!mmap->is_mmap2) {
		buffer_printf(buffer, "]: %c %s",
			      record->misc & PERF_RECORD_MISC_MMAP_DATA ? 'r' : 'x',
			      mmap->filename);
		return;
	}
	if (mmap->has_build_id) {
		buffer_text(buffer, " <");
		for (size_t i = 0; i < mmap->build_id_size && i < sizeof(mmap->build_id); i++)
			buffer_hex(buffer, mmap->build_id[i], 2, '0');
		buffer_char(buffer, '>');
	} else {
		buffer_printf(buffer, " %02x:%02x %llu %llu", mmap->maj, mmap->min,
			      (unsigned long long)mmap->ino,
			      (unsigned long long)mmap->ino_generation);
	}
	/* PROT_READ, PROT_WRITE, PROT_EXEC and MAP_SHARED of Linux on any machine. */
	buffer_printf(buffer, "]: %c%c%c%c %s", mmap->prot & 1 ? 'r' : '-',
		      mmap->prot & 2 ? 'w' : '-', mmap->prot & 4 ? 'x' : '-',
		      mmap->flags & 1 ? 's' : 'p', mmap->filename);
}

static void put_switch(const struct tally_record *record, struct buffer *buffer)
{
	bool out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
	bool preempted = record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;

	buffer_char(buffer, ' ');
	buffer_field(buffer, !out ? "IN" : preempted ? "OUT preempt" : "OUT", 11);
	if (record->type == PERF_RECORD_SWITCH_CPU_WIDE)
		buffer_printf(buffer, "  %s pid/tid: %5d/%-5d", out ? "next" : "prev",
			      (int)record->context_switch.pid, (int)record->context_switch.tid);
}

static void put_body(const struct tally_record *record, struct buffer *buffer)
{
	switch (record->type) {
	case PERF_RECORD_COMM:
		buffer_printf(buffer, "%s: %s:%d/%d",
			      record->misc & PERF_RECORD_MISC_COMM_EXEC ? " exec" : "",
			      record->comm.comm, (int)record->comm.pid, (int)record->comm.tid);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		buffer_printf(buffer, "(%d:%d):(%d:%d)", (int)record->task.pid,
			      (int)record->task.tid, (int)record->task.ppid,
			      (int)record->task.ptid);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		put_mmap(record, buffer);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		put_switch(record, buffer);
		break;
	case PERF_RECORD_LOST:
		buffer_printf(buffer, " lost %llu", (unsigned long long)record->lost.lost);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		buffer_printf(buffer, " lost %llu", (unsigned long long)record->lost_samples.lost);
		break;
	case PERF_RECORD_CGROUP:
		buffer_printf(buffer, " cgroup: %llu %s", (unsigned long long)record->cgroup.id,
			      record->cgroup.path);
		break;
	case PERF_RECORD_KSYMBOL:
		buffer_printf(buffer, " addr %llx len %u type %u flags 0x%x name %s",
			      (unsigned long long)record->ksymbol.addr, record->ksymbol.len,
			      record->ksymbol.ksym_type, record->ksymbol.flags,
			      record->ksymbol.name);
		break;
	case PERF_RECORD_BPF_EVENT:
		buffer_printf(buffer, " type %u, flags %u, id %u", record->bpf_event.type,
			      record->bpf_event.flags, record->bpf_event.id);
		break;
	}
}

void script_text_record(struct script *script, const struct session_item *item,
			struct buffer *buffer)
{
	const struct tally_record *record = item->record;
	const char *name = tally_record_type_name(record->type);
	unsigned int fields = FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME;

	if (script->nr_events)
		fields &= script->events[0].fields;
	put_start(script, item, fields, script->nr_events && script->events[0].has_chain, buffer);
	buffer_text(buffer, "PERF_RECORD_");
	if (name)
		buffer_text(buffer, name);
	else
		buffer_decimal(buffer, record->type, 0, ' ');
	put_body(record, buffer);
	buffer_char(buffer, '\n');
}
