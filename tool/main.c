// SPDX-License-Identifier: MIT
/* tally: one table of commands, one file for each. */
#include <stdio.h>
#include <string.h>

#include "tool/command.h"
#include "tool/commands.h"
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

const struct tool_command *const tool_commands[] = {
	&doctor_command, &stat_command,	  &record_command,
	&report_command, &script_command, &list_command,
	&run_command,	 &help_command,	  NULL,
};

static const struct tool_command *find(const char *name)
{
	for (const struct tool_command *const *c = tool_commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

static int run_help(const struct tool_command *command, int argc, char **argv)
{
	(void)command;
	if (argc < 2) {
		tool_help(stdout);
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

int main(int argc, char **argv)
{
	if (argc < 2) {
		tool_help(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-v") ||
	    !strcmp(argv[1], "version")) {
		puts("tally " TALLY_VERSION);
		return TOOL_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		tool_help(stdout);
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
