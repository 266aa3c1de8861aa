/* SPDX-License-Identifier: MIT */
#ifndef TOOL_OWN_PATH_H
#define TOOL_OWN_PATH_H

#include <limits.h>
#include <stdbool.h>

/* The file of the program that this is. False where nothing tells. */
bool tool_own_path(char path[PATH_MAX]);

#endif
