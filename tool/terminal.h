/* SPDX-License-Identifier: MIT */
/* What the reader of a stream can show. */
#ifndef TOOL_TERMINAL_H
#define TOOL_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Colours go to terminals that have them, and never when NO_COLOR is set. */
bool tool_colours(FILE *out);

/* The user's locale writes UTF-8. Sets LC_CTYPE, and nothing else of the locale. */
bool tool_utf8(void);

/* Columns of the terminal that @out is, or @fallback where it is none. */
int tool_columns(FILE *out, int fallback);

/*
 * Writes @text in lines of at most @columns, broken at spaces; those after the first begin with
 * @indent spaces, and the first starts at column @indent already.
 */
void tool_wrap(FILE *out, const char *text, int indent, int columns);

#endif
