/* SPDX-License-Identifier: MIT */
/* Standard output as people look at it: through their pager when it is a terminal, in colour. */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

#include <stdbool.h>

#include "tool/buffer.h"

struct output {
	struct buffer buffer;
	bool colour; /* a terminal, and NO_COLOR is not set */
	int pager;   /* pid, or 0 */
};

/* @pager: long output, so start $PAGER (less) on a terminal. */
void output_open(struct output *output, bool pager);

/* Writes the rest, waits for the pager. TOOL_OK, or says why not and TOOL_FAILED. */
int output_close(struct output *output);

#endif
