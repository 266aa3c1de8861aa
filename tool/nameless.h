/* SPDX-License-Identifier: MIT */
/* Files whose functions have no names, or whose lines are not known, and in how many samples
 * that shows: told when all is said. */
#ifndef TOOL_NAMELESS_H
#define TOOL_NAMELESS_H

#include <stddef.h>
#include <stdint.h>

#include "tool/places.h"

struct nameless_dso {
	uint64_t samples;
	uint64_t stack; /* the last one that was counted */
};

/* Starts zeroed but for places. */
struct nameless {
	struct places *places;
	struct nameless_dso *dsos; /* by their number in places */
	size_t nr, room;
	uint64_t samples, stack;
	uint64_t weight; /* samples of the current stack */
	bool lines;	 /* they were asked for */
};

/* A stack that @samples samples have; its functions follow. */
void nameless_stack(struct nameless *nameless, uint64_t samples);
void nameless_function(struct nameless *nameless, uint32_t function);
/* The same where source lines are shown. */
void nameless_line(struct nameless *nameless, const struct frame *frame);
/* Says on stderr, a line for each of the files that matter most, why and what to change. */
void nameless_tell(const struct nameless *nameless);
void nameless_free(struct nameless *nameless);

#endif
