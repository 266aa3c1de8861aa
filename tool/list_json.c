// SPDX-License-Identifier: MIT
/* The schema is in tally-list(1). */
#include <stdio.h>

#include "tool/json.h"
#include "tool/list.h"

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void write_entry(struct tool_json *json, const struct list_entry *entry)
{
	tool_json_object(json, NULL);
	tool_json_text(json, "name", entry->name);
	tool_json_text(json, "alias", or_null(entry->alias));
	tool_json_text(json, "kind", list_kinds[entry->kind].full);
	tool_json_text(json, "pmu", or_null(entry->pmu));
	tool_json_text(json, "encoding", or_null(entry->encoding));
	tool_json_text(json, "unit", or_null(entry->unit));
	tool_json_text(json, "description", entry->desc);
	if (entry->state == LIST_UNTRIED)
		tool_json_null(json, "available");
	else
		tool_json_bool(json, "available", entry->state == LIST_AVAILABLE);
	tool_json_text(json, "reason",
		       entry->state == LIST_UNSUPPORTED ? "not supported"
		       : entry->state == LIST_FORBIDDEN ? "not permitted"
							: NULL);
	if (entry->kind == TALLY_EVENT_TRACEPOINT) {
		tool_json_array(json, "fields");
		for (size_t i = 0; i < entry->nr_fields; i++) {
			const struct list_field *field = &entry->fields[i];

			tool_json_object(json, NULL);
			tool_json_text(json, "name", field->name);
			tool_json_text(json, "type", field->type);
			tool_json_uint(json, "offset", field->offset);
			tool_json_uint(json, "size", field->size);
			tool_json_bool(json, "signed", field->is_signed);
			tool_json_end(json);
		}
		tool_json_end(json);
	}
	tool_json_end(json);
}

void list_json(const struct list *list)
{
	struct tool_json json;

	tool_json_start(&json, stdout, true);
	tool_json_array(&json, NULL);
	for (size_t i = 0; i < list->nr; i++)
		write_entry(&json, &list->entries[i]);
	tool_json_end(&json);
	tool_json_finish(&json);
}
