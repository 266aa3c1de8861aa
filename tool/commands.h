/* SPDX-License-Identifier: MIT */
/* The subcommands; commands.c puts them in order. */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

#include "tool/command.h"

extern const struct tool_command doctor_command;
extern const struct tool_command list_command;
extern const struct tool_command record_command;
extern const struct tool_command report_command;
extern const struct tool_command script_command;
extern const struct tool_command stat_command;

/* The one that the program has in itself. */
extern const struct tool_command run_command;

/* What the program calls of the shared object with all the others: main(), for which it has
 * @run. */
typedef int tool_main_function(const struct tool_command *run, int argc, char **argv);
__attribute__((visibility("default"))) tool_main_function tool_main;

#endif
