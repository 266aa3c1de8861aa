// SPDX-License-Identifier: MIT
/* `tally help COMMAND`: what the table of options says, for people. */
#include "tool/help.h"

#include <string.h>

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
		if (strlen(left) > 28)
			fprintf(out, "%s\n%30s%s\n", left, "", o->help);
		else
			fprintf(out, "%-30s%s\n", left, o->help);
	}
}
