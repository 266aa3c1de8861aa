/* SPDX-License-Identifier: MIT */
/* What needs breakpoints of the kernel skips where it can say nothing of them. */
#ifndef TESTS_BREAKPOINTS_H
#define TESTS_BREAKPOINTS_H

#include <stdbool.h>

#include "lib/probe/breakpoint.h"

#define BREAKPOINTS_FORGOTTEN "breakpoints are never hit, as in some virtual machines"

/* True, too, where none can be opened. */
static inline bool breakpoints_forgotten(void)
{
	return tly_try_breakpoint() != TLY_BREAKPOINTS_HIT;
}

#endif
