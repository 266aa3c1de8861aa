/* SPDX-License-Identifier: MIT */
#ifndef RUNTIME_BOOT_MOVE_H
#define RUNTIME_BOOT_MOVE_H

#include <stdint.h>

/*
 * From start.S, before anything else: maps tally-rt, with @top the program's stack, where the rest
 * of the runtime's memory will lie (apart.h). Returns how far that is from here; 0: it stays.
 */
uint64_t move(uint64_t *top);

/* In what move() has mapped, so far from where it was: unmaps what the kernel had mapped. */
void move_end(uint64_t distance);

#endif
