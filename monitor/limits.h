/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_LIMITS_H
#define MONITOR_LIMITS_H

#include <stdbool.h>

/*
 * In the child that is about to become the run's first process: limits on memory begin to count
 * what a run adds (abi/limits.h). Where they may not be raised as much, the program finds them
 * lower. False: tally-rt would have no room at all. To be called between vfork(2) and exec, too.
 */
bool monitor_raise_limits(void);

#endif
