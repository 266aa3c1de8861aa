// SPDX-License-Identifier: MIT
/* One table of commands, one file for each. What `tally run` does is with the program, tally.c. */
#include "tool/commands.h"

#include <stdio.h>
#include <string.h>

#include "tool/command.h"
#include "tool/complete.h"
#include "tool/help.h"

static int run_help(const struct tool_command *command, int argc, char **argv);

static const struct tool_option no_options[] = {{0}};

static const struct tool_command help_command = {
	.name = "help",
	.summary = "show the commands, or the options of one",
	.usage = "[COMMAND]",
	.options = no_options,
	.run = run_help,
};

enum { RUN = 6 };

const struct tool_command *tool_commands[] = {
	&doctor_command, &stat_command,	  &record_command,
	&report_command, &script_command, &list_command,
	[RUN] = NULL,	 &help_command,	  NULL,
};

static void help(FILE *out)
{
	fputs("usage: tally COMMAND [options]\n\n", out);
	for (const struct tool_command **c = tool_commands; *c; c++)
		fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
	fputs("\n'tally help COMMAND' describes its options; 'tally doctor' says what this machine can "
	      "measure.\n",
	      out);
}

static const struct tool_command *find(const char *name)
{
	for (const struct tool_command **c = tool_commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

static int run_help(const struct tool_command *command, int argc, char **argv)
{
	(void)command;
	if (argc < 2) {
		help(stdout);
		return TOOL_OK;
	}
	const struct tool_command *about = find(argv[1]);

	if (!about) {
		tool_fail("no command '%s': 'tally help' lists them", argv[1]);
		return TOOL_USAGE;
	}
	tool_help_command(about, stdout);
	return TOOL_OK;
}

int tool_main(const struct tool_command *run, int argc, char **argv)
{
	tool_commands[RUN] = run;
	if (argc < 2) {
		help(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-v") ||
	    !strcmp(argv[1], "version")) {
		puts("tally " TALLY_VERSION);
		return TOOL_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		help(stdout);
		return TOOL_OK;
	}
	if (!strcmp(argv[1], "__complete"))
		return tool_complete(argc - 2, argv + 2);
	const struct tool_command *command = find(argv[1]);

	if (!command) {
		tool_fail("no command '%s': 'tally help' lists them", argv[1]);
		return TOOL_USAGE;
	}
	return command->run(command, argc - 1, argv + 1);
}
