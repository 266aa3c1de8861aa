/* SPDX-License-Identifier: MIT */
/* Vector registers, from xmm15 down, that emitted code has for itself: see vectors.c. */
#ifndef RUNTIME_TRANSLATE_VECTORS_H
#define RUNTIME_TRANSLATE_VECTORS_H

#include <stdint.h>

#include "runtime/translate/count.h"

struct builder;

enum { VECTORS_MAX = COUNT_PAIRS, VECTOR_MOVE_BYTES = 10 };

/* Each is a bit, xmm15 the lowest. */
#define for_each_vector(n, mask)                                                                   \
	for (unsigned int n = 0; n < VECTORS_MAX; n++)                                             \
		if ((mask) >> n & 1)

/* Those that the instruction at hand may touch. */
uint8_t vectors_asked(const struct builder *b);

/* The program gets them, and the code what it has lent. */
void vectors_lend(struct builder *b, uint8_t vectors);
void vectors_take_back(struct builder *b);

/* What they have goes home, too. */
void vectors_store(struct builder *b, uint8_t vectors);

#endif
