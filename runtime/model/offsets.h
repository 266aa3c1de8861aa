/* SPDX-License-Identifier: MIT */
/* Members of struct model that enter.S and compiled blocks know (state.h holds it to them). */
#ifndef RUNTIME_MODEL_OFFSETS_H
#define RUNTIME_MODEL_OFFSETS_H

#define MODEL_LEAVE   0x00
#define MODEL_FETCH   0x08
#define MODEL_ACCESS  0x10
#define MODEL_TARGET  0x18
#define MODEL_TIME    0x20
#define MODEL_HISTORY 0x28
#define MODEL_SUMS    0x30
#define MODEL_FS      0x50
#define MODEL_LINE    0x58
#define MODEL_SLOTS   0x60

/* In the code of a block: the lower half of where that begins (struct block_head). */
#define MODEL_HEAD_PC 6

/* Slots for lines of data: a power of two. */
#define MODEL_DATA_SLOTS 8192

/* Of the shifted address of what is accessed, the place of its slot; and of conditions. */
#define MODEL_SLOT_MASK	   ((MODEL_DATA_SLOTS - 1) << 4)
#define MODEL_HISTORY_MASK 0x7fff

#endif
