// SPDX-License-Identifier: MIT
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tool/list.h"
#include "tool/terminal.h"

/* Room for names at most, on terminals and in pipes; longer ones push their description. */
#define NAME_COLUMNS	  34
#define NAME_COLUMNS_PIPE 60

struct text {
	const struct list *list;
	int columns;
	bool colours;
	bool all_missing; /* no event of this kind opens here: the title says so */
};

static const char *note_of(enum list_state state)
{
	return state == LIST_UNSUPPORTED ? "not supported here"
	       : state == LIST_FORBIDDEN ? "not permitted here"
					 : NULL;
}

static int name_length(const struct list_entry *entry)
{
	int alias = strlen(entry->alias);

	return (int)strlen(entry->name) + (alias ? alias + 3 : 0);
}

static void write_entry(const struct text *text, const struct list_entry *entry, int width)
{
	const char *note = text->all_missing ? NULL : note_of(entry->state);
	int used = 2 + name_length(entry), indent = width + 4;
	char line[1024];

	printf("  %s%s%s", text->colours ? "\033[1m" : "", entry->name,
	       text->colours ? "\033[0m" : "");
	if (*entry->alias)
		printf(" (%s)", entry->alias);
	snprintf(line, sizeof(line), "%s%s%s%s", entry->desc, note ? " (" : "", note ? note : "",
		 note ? ")" : "");
	if (!*line) {
		putchar('\n');
	} else if (used + 2 <= indent) {
		printf("%*s", indent - used, "");
		tool_wrap(stdout, line, indent, text->columns);
	} else if (text->columns == INT_MAX) {
		printf("  %s\n", line);
	} else {
		printf("\n%*s", indent, "");
		tool_wrap(stdout, line, indent, text->columns);
	}
	if (!text->list->verbose)
		return;
	if (*entry->encoding)
		printf("      %s\n", entry->encoding);
	for (size_t i = 0; i < entry->nr_fields; i++)
		printf("      %-24s %s\n", entry->fields[i].name, entry->fields[i].type);
}

/* The entries of one kind, from @first to before @end. */
static void write_kind(struct text *text, size_t first, size_t end)
{
	const struct list_entry *entries = text->list->entries;
	enum list_state state = entries[first].state;
	int width = 0;
	int room = text->columns == INT_MAX ? NAME_COLUMNS_PIPE : NAME_COLUMNS;

	for (size_t i = first; i < end; i++) {
		int length = name_length(&entries[i]);

		if (length <= room && length > width)
			width = length;
		if (entries[i].state != state)
			state = LIST_AVAILABLE;
	}
	text->all_missing = note_of(state) && end > first + 1;
	printf("%s%s%s%s", first ? "\n" : "", text->colours ? "\033[1;4m" : "",
	       list_kinds[entries[first].kind].title, text->colours ? "\033[0m" : "");
	if (text->all_missing)
		printf(" (%s: 'tally doctor' says why)", note_of(state));
	putchar('\n');
	for (size_t i = first; i < end; i++)
		write_entry(text, &entries[i], width);
}

void list_text(const struct list *list)
{
	struct text text = {
		.list = list,
		/* A pipe gets one line for each event: that is what grep and wc want. */
		.columns = isatty(STDOUT_FILENO) ? tool_columns(stdout, 80) : INT_MAX,
		.colours = tool_colours(stdout),
	};

	for (size_t first = 0, end; first < list->nr; first = end) {
		for (end = first + 1;
		     end < list->nr && list->entries[end].kind == list->entries[first].kind; end++)
			;
		write_kind(&text, first, end);
	}
}
