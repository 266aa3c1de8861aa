// SPDX-License-Identifier: MIT
/* `tally help COMMAND`: what the table of options says, for people. */
#include "tool/help.h"

#include <string.h>

#define COLUMN 30 /* where the descriptions are */
#define WIDTH  79

/* How much of @text, which is more, goes onto a line: to a space, or else, in a list, behind a
 * comma. */
static size_t line_length(const char *text)
{
	for (size_t n = WIDTH - COLUMN; n > 0; n--)
		if (text[n] == ' ')
			return n;
	for (size_t n = WIDTH - COLUMN; n > 0; n--)
		if (text[n - 1] == ',')
			return n;
	return strlen(text);
}

static void describe(const char *text, FILE *out)
{
	while (strlen(text) > WIDTH - COLUMN) {
		size_t n = line_length(text);

		fprintf(out, "%.*s\n", (int)n, text);
		text += n;
		text += strspn(text, " ");
		if (!*text)
			return;
		fprintf(out, "%*s", COLUMN, "");
	}
	fprintf(out, "%s\n", text);
}

void tool_help_command(const struct tool_command *command, FILE *out)
{
	fprintf(out, "usage: tally %s %s\n\n%s\n", command->name, command->usage, command->summary);
	if (command->options->key)
		fputc('\n', out);
	for (const struct tool_option *o = command->options; o->key; o++) {
		char left[80] = "  ";
		size_t used = 2;

		if (o->key < 256)
			used += snprintf(left + used, sizeof(left) - used, "-%c%s", o->key,
					 o->name ? ", " : "");
		else
			used += snprintf(left + used, sizeof(left) - used, "    ");
		if (o->name)
			used += snprintf(left + used, sizeof(left) - used, "--%s", o->name);
		if (o->argument != TOOL_NONE)
			snprintf(left + used, sizeof(left) - used, "%s%s%s%s",
				 o->optional ? "[" : " ", o->optional ? "=" : "", o->metavar,
				 o->optional ? "]" : "");
		if (strlen(left) > COLUMN - 2)
			fprintf(out, "%s\n%*s", left, COLUMN, "");
		else
			fprintf(out, "%-*s", COLUMN, left);
		describe(o->help, out);
	}
}
