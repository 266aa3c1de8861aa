/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_BOOT_RELOCATE_H
#define RUNTIME_BOOT_RELOCATE_H

/* The first thing of all: makes addresses in initialized data be those where tally-rt lies. */
void relocate(void);

#endif
