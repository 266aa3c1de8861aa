/* SPDX-License-Identifier: MIT */
/* Members of struct model that enter.S and compiled blocks know (state.h holds it to them). */
#ifndef RUNTIME_MODEL_OFFSETS_H
#define RUNTIME_MODEL_OFFSETS_H

#define MODEL_TIME    0x00
#define MODEL_LEAVE   0x08
#define MODEL_FETCH   0x10
#define MODEL_ACCESS  0x18
#define MODEL_TARGET  0x20
#define MODEL_HISTORY 0x28
#define MODEL_SUMS    0x30
#define MODEL_FS      0x50
#define MODEL_LINE    0x58
#define MODEL_SLOTS   0x60

#define MODEL_INDIRECT 0x68
#define MODEL_ORDERED  0x70

/* Of the predictor. */
#define MODEL_PATH	    0x78
#define MODEL_SPREAD_BRANCH 0x80
#define MODEL_SPREAD_PATH   0x88
#define MODEL_DEPTH	    0x90
#define MODEL_TARGETS	    0x98
#define MODEL_LAST	    (MODEL_TARGETS + (8 << MODEL_TARGET_BITS))
#define MODEL_SURE	    (MODEL_LAST + (4 << MODEL_TARGET_BITS))
#define MODEL_BY_HISTORY    (MODEL_SURE + (1 << MODEL_TARGET_BITS))

#define MODEL_TARGET_BITS 10
#define MODEL_SURE_MOST	  3
#define MODEL_PATH_SHIFT  5

/* In the code of a block: the lower half of where that begins (struct block_head). */
#define MODEL_HEAD_PC 1

/* Slots for lines of data: a power of two. */
#define MODEL_DATA_SLOTS 8192

/* Of a slot: of where its time is. */
#define MODEL_PLACE_BITS 23

#define MODEL_TICK 32

/* Of the shifted address of what is accessed, the place of its slot. */
#define MODEL_SLOT_MASK ((MODEL_DATA_SLOTS - 1) << 3)

#endif
