// SPDX-License-Identifier: MIT
/* Random choices, the same from the same seed everywhere. */
#ifndef CONFORMANCE_DRAW_H
#define CONFORMANCE_DRAW_H

#include <stdbool.h>
#include <stdint.h>

extern _Thread_local uint64_t draw_state; /* the seed, to begin with */

static inline uint64_t draw(void)
{
	uint64_t z = (draw_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline unsigned int below(unsigned int limit)
{
	return (unsigned int)(draw() % limit);
}

static inline bool one_in(unsigned int chances)
{
	return below(chances) == 0;
}

#define PICK(array) ((array)[below(sizeof(array) / sizeof((array)[0]))])

#endif
