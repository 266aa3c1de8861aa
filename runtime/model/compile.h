/* SPDX-License-Identifier: MIT */
/*
 * Code that takes a record of a trace in: made once for each block, so that all that is known of
 * the block is constants in it.
 */
#ifndef RUNTIME_MODEL_COMPILE_H
#define RUNTIME_MODEL_COMPILE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/model/block.h"

/*
 * Where the code goes: what is executed nearly always from one end on, what is not from the other.
 *
 *	start	| hot ... |	...	| ... cold |	end
 */
struct compiled {
	uint8_t *hot, *cold;
};

/* The most that a block may take: so many bytes, and so many for each access. */
enum { COMPILED_BLOCK = 320, COMPILED_ACCESS = 128 };

static inline bool compiled_room(const struct compiled *c, uint64_t bytes)
{
	return (uint64_t)(c->cold - c->hot) >= bytes;
}

/* Returns the code of @block, which is complete. Any model can run it. */
uint64_t model_compile(struct compiled *c, const struct block *block);

/* Where a trace ends: what its last record finds behind itself, at a place that can be executed. */
struct compiled_end {
	uint8_t code[16];
};

void model_compile_end(struct compiled_end *end);

#endif
