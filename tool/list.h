/* SPDX-License-Identifier: MIT */
/* What `tally list` found, for its text and its JSON. */
#ifndef TOOL_LIST_H
#define TOOL_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <tally/event.h>

/* Whether an event opens here; patterns and tracepoints are not tried. */
enum list_state {
	LIST_UNTRIED,
	LIST_AVAILABLE,
	LIST_UNSUPPORTED,
	LIST_FORBIDDEN,
};

struct list_field {
	char *name, *type;
	unsigned int offset, size;
	bool is_signed;
};

struct list_entry {
	enum tally_event_kind kind;
	char *name, *alias, *pmu, *encoding, *unit, *desc;
	enum list_state state;
	struct list_field *fields;
	size_t nr_fields;
};

struct list {
	struct list_entry *entries;
	size_t nr;
	bool verbose;
};

/* "hw" and "hardware" of TALLY_EVENT_HARDWARE, and so on for each kind. */
struct list_kind {
	const char *word, *full, *title;
};
extern const struct list_kind list_kinds[TALLY_EVENT_KINDS];

enum list_state list_try(const char *name);

void list_text(const struct list *list);
void list_json(const struct list *list);

#endif
