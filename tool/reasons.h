/* SPDX-License-Identifier: MIT */
/* Footnotes: why something is missing and what to type, each told once and numbered from 1. */
#ifndef TOOL_REASONS_H
#define TOOL_REASONS_H

#include <stddef.h>
#include <stdio.h>

#define TOOL_MAX_REASONS 64

/* Start from a zeroed struct. The strings stay the caller's. */
struct tool_reasons {
	struct {
		const char *what, *remedy;
	} list[TOOL_MAX_REASONS];
	size_t nr;
};

/* The number of this reason, which is new or has been seen; 0 when there are too many. */
size_t tool_reason(struct tool_reasons *reasons, const char *what, const char *remedy);

/*
 * Writes them all after @indent spaces, with numbers like "[1]" between @bold and @plain. Of a
 * remedy that names several ways ("a, or b") each gets a line, so that commands can be copied.
 */
void tool_reasons_write(const struct tool_reasons *reasons, FILE *out, int indent, const char *bold,
			const char *plain);

#endif
