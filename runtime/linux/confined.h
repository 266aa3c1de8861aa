/* SPDX-License-Identifier: MIT */
/*
 * Programs that confine themselves by seccomp(2): a system call that they do not need themselves may
 * be their end. The runtime makes none then that it can do without.
 */
#ifndef RUNTIME_LINUX_CONFINED_H
#define RUNTIME_LINUX_CONFINED_H

#include <stdbool.h>

/* Whether any thread of the process has done so, or the image before, since the run began. */
bool confined(void);

/* Boot: whether the image before was (abi/handover.h). The mode of seccomp(2) does not tell where the
 * run has begun under a filter, as in a container. */
void confined_boot(bool before);

#endif
