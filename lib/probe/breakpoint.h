/* SPDX-License-Identifier: MIT */
#ifndef LIB_PROBE_BREAKPOINT_H
#define LIB_PROBE_BREAKPOINT_H

#include <stdbool.h>

#define TLY_BREAKPOINT_NEVER_HIT     "a breakpoint opens, but is never hit"
#define TLY_BREAKPOINT_NEVER_HIT_WHY "this machine or its hypervisor has no working debug registers"

/*
 * False where breakpoints open and are never hit, as on some virtual machines; true, too, where
 * none can be opened to find out. Opens and closes one on the calling thread.
 */
bool tly_breakpoints_are_hit(void);

#endif
