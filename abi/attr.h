/* SPDX-License-Identifier: MIT */
/*
 * The layout of struct perf_event_attr as one table: a row for each field, each bit of the flag
 * word and each bit of the masks. Printing an attr, finding out which part of it a kernel lacks and
 * validating it all read these rows. Fields newer than the <linux/perf_event.h> in use are in it
 * too: an attr is as long as its size field says, whatever the header says.
 */
#ifndef ABI_ATTR_H
#define ABI_ATTR_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The flag word of disabled, inherit, ... sigtrap. */
#define TLY_ATTR_BITS_OFFSET 40

/* When a field that shares its storage has this meaning. */
enum tly_attr_when {
	TLY_ATTR_ALWAYS,
	TLY_ATTR_IF_FREQ,
	TLY_ATTR_IF_PERIOD,
	TLY_ATTR_IF_WATERMARK,
	TLY_ATTR_IF_WAKEUP,
	TLY_ATTR_IF_BREAKPOINT,
	TLY_ATTR_IF_CONFIG,
};

enum tly_attr_style { TLY_ATTR_DECIMAL, TLY_ATTR_SIGNED, TLY_ATTR_HEX, TLY_ATTR_MASK };

struct tly_attr_item {
	const char *name;
	const char *of; /* the mask whose bit this is, "sample_type"; NULL for fields and flags */
	const char *since; /* first kernel, "5.5" */
	uint16_t offset;
	uint8_t bytes;
	uint8_t shift, width; /* within the bytes; width 0 is all of them */
	uint8_t when;	      /* enum tly_attr_when */
	uint8_t style;	      /* enum tly_attr_style */
};

/* In the order in which the struct has them; the bits of a mask follow its field. */
extern const struct tly_attr_item tly_attr_items[];
extern const size_t tly_attr_nr_items;

/* The row called @name (of mask @of, or NULL), or NULL. */
const struct tly_attr_item *tly_attr_find(const char *name, const char *of);

/* How much of the struct there is: attr->size, or VER0's when it is 0. */
uint32_t tly_attr_size(const struct perf_event_attr *attr);

/* The published size of the struct in which @item first appeared. */
uint32_t tly_attr_item_size(const struct tly_attr_item *item);

/* 0 when the item lies behind attr->size, or has another meaning in this attr. */
uint64_t tly_attr_get(const struct perf_event_attr *attr, const struct tly_attr_item *item);
/* Returns false when the item lies behind attr->size. */
bool tly_attr_set(struct perf_event_attr *attr, const struct tly_attr_item *item, uint64_t value);

/* Whether all of the attr's bytes from @offset to its size are zero. */
bool tly_attr_zero_after(const struct perf_event_attr *attr, uint32_t offset);

/* Whether it counts what only the kernel does: of user mode alone it is 0, however often that is.
 */
bool tly_attr_is_kernels_own(const struct perf_event_attr *attr);

#endif
