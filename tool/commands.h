/* SPDX-License-Identifier: MIT */
/* The subcommands; tool/main.c puts them in order. */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

#include "tool/command.h"

extern const struct tool_command doctor_command;
extern const struct tool_command list_command;
extern const struct tool_command record_command;
extern const struct tool_command report_command;
extern const struct tool_command run_command;
extern const struct tool_command script_command;
extern const struct tool_command stat_command;

#endif
