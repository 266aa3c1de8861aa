/* SPDX-License-Identifier: MIT */
/* What the forms of `tally script` have in common. */
#ifndef TOOL_SCRIPT_H
#define TOOL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/buffer.h"
#include "tool/nameless.h"
#include "tool/session.h"
#include "tool/tracepoints.h"

enum field {
	FIELD_COMM = 1 << 0,
	FIELD_PID = 1 << 1,
	FIELD_TID = 1 << 2,
	FIELD_CPU = 1 << 3,
	FIELD_TIME = 1 << 4,
	FIELD_PERIOD = 1 << 5,
	FIELD_EVENT = 1 << 6,
	FIELD_TRACE = 1 << 7,
	FIELD_ADDR = 1 << 8,
	FIELD_WEIGHT = 1 << 9,
	FIELD_PHYS_ADDR = 1 << 10,
	FIELD_IP = 1 << 11,
	FIELD_SYM = 1 << 12,
	FIELD_SYMOFF = 1 << 13,
	FIELD_DSO = 1 << 14,
	FIELD_SRCLINE = 1 << 15,
	FIELD_DATA_SRC = 1 << 16,
	FIELD_INS_LAT = 1 << 17,
	FIELD_RETIRE_LAT = 1 << 18,
	FIELD_TRANSACTION = 1 << 19,
	FIELD_CGROUP = 1 << 20,
	FIELD_IREGS = 1 << 21,
	FIELD_UREGS = 1 << 22,
	FIELD_BRSTACK = 1 << 23,
	FIELD_BRSTACKSYM = 1 << 24,
	FIELD_BPF_OUTPUT = 1 << 25,
	FIELD_DATA_PAGE_SIZE = 1 << 26,
	FIELD_CODE_PAGE_SIZE = 1 << 27,
	FIELD_MISC = 1 << 28,
	FIELD_TOD = 1 << 29,
};

/*
 * Applies "comm,tid,ip" to a set, which it replaces, or "+srcline,-cpu", which change it. On
 * failure *@bad is the word that is no field.
 */
struct field_change {
	bool replaces;
	unsigned int add, remove;
};
bool fields_parse(struct field_change *change, const char *text, const char **bad,
		  size_t *bad_length);
unsigned int fields_apply(const struct field_change *change, unsigned int fields);
/* What @event can show, and what it shows when nothing is said, as text or as JSON. */
unsigned int fields_recorded(const struct tally_perfdata_event *event);
unsigned int fields_default(const struct tally_perfdata_event *event, bool json);

struct script_event {
	const char *name;
	unsigned int fields;
	bool has_chain;
	bool is_fault; /* its addresses are of memory that was touched for the first time */
};

struct script {
	struct session *session;
	struct tracepoints *tracepoints; /* or NULL */
	struct script_event *events;
	size_t nr_events;
	int name_width;
	size_t data_source_width;
	bool nanoseconds;
	uint32_t *places; /* of the current stack */
	size_t places_room;
	struct nameless nameless;
	struct place_texts *texts;
};

/* The places of an item's stack, markers left out; valid until the next call. Names are counted. */
size_t script_stack(struct script *script, const struct session_item *item);

void script_text_sample(struct script *script, const struct session_item *item,
			struct buffer *buffer);
void script_text_record(struct script *script, const struct session_item *item,
			struct buffer *buffer);
void script_text_free(struct script *script);
/* script_details.c: what stands before and behind the address or the call chain. */
void script_text_before_stack(struct script *script, const struct session_item *item,
			      unsigned int fields, struct buffer *buffer);
void script_text_after_stack(struct script *script, const struct session_item *item,
			     unsigned int fields, struct buffer *buffer);
void script_json_details(struct script *script, const struct session_item *item,
			 unsigned int fields, struct buffer *buffer);
void script_json_sample(struct script *script, const struct session_item *item,
			struct buffer *buffer);
void script_json_record(struct script *script, const struct session_item *item,
			struct buffer *buffer);

#endif
