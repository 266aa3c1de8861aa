/* SPDX-License-Identifier: MIT */
/*
 * Under filters of seccomp(2) that know nothing of the runtime's calls (seccomp.h has those that
 * do) a call that the program does not need itself may be its end. The runtime makes none then that
 * it can do without.
 */
#ifndef RUNTIME_LINUX_CONFINED_H
#define RUNTIME_LINUX_CONFINED_H

#include <stdbool.h>

/* Whether any thread of the process is, by such a filter that was not there when the run began. */
bool confined(void);

void confined_now(void);

/* Boot: whether the image before was, or was under any filter of its own (abi/handover.h). The mode
 * of seccomp(2) does not tell where the run has begun under a filter, as in a container. */
void confined_boot(bool before);

#endif
