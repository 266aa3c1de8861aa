/* SPDX-License-Identifier: MIT */
/* The region that the clients of this folder measure: two instructions and a branch a turn, so that
 * twice the turns are exactly so much more, whatever is around it. */
#ifndef REGION_H
#define REGION_H

#include <stdint.h>

static inline void region(uint64_t turns)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns) : : "cc");
}

#endif
