/* SPDX-License-Identifier: MIT */
/* The files that belong to the program and are found from where it lies. */
#ifndef TOOL_PARTS_H
#define TOOL_PARTS_H

#include <limits.h>
#include <stdbool.h>

/* Beside the program where it was built, in libexec where it was installed or moved to. */
bool tool_find_part(const char *name, char path[PATH_MAX]);

#endif
