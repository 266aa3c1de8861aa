/* SPDX-License-Identifier: MIT */
#ifndef TOOL_HELP_H
#define TOOL_HELP_H

#include <stdio.h>

#include "tool/command.h"

void tool_help_command(const struct tool_command *command, FILE *out);

#endif
