/* SPDX-License-Identifier: MIT */
/* From what read(2) of an event returns to struct tally_value. Pure. */
#ifndef LIB_COUNTER_VALUE_H
#define LIB_COUNTER_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/counter.h>

/* The kernel refuses members with which a group's read would exceed this. */
#define TLY_READ_MAX (16 * 1024)

/* raw * enabled / running to the nearest, UINT64_MAX when it does not fit; 0 when running is 0. */
uint64_t tly_scale(uint64_t raw, uint64_t enabled, uint64_t running);

/* Sets scaled, state and source from raw and the times, which @read_format says are there. */
void tly_value_judge(struct tally_value *value, uint64_t read_format);

/*
 * Where the parts of a read are, as indices of 64-bit words: ready for a decoder without branches,
 * as reads of one's own counters are made in hot loops. A part that is not there has mask 0.
 */
struct tly_read_layout {
	uint64_t enabled_mask, running_mask, id_mask, lost_mask;
	uint8_t enabled, running, value; /* from the start; value is the first entry's */
	uint8_t id, lost, stride;	 /* within an entry, and from one to the next */
	uint8_t fixed;			 /* words besides the entries */
	bool group;
	uint64_t read_format;
};

void tly_read_layout_init(struct tly_read_layout *layout, uint64_t read_format);

/*
 * Decodes @size bytes into at most @max values. No bytes are a pinned event in error: one value
 * that was not counted. Returns how many values there are, -ENOSPC if more than @max, -EBADMSG when
 * @size does not fit the layout.
 */
int tly_value_decode(const struct tly_read_layout *layout, const uint64_t *words, size_t size,
		     struct tally_value *values, size_t max);

/*
 * The same for one event of a group's read: the leader's when @id is 0, else the one with that id
 * (-EINVAL when the layout has no ids, -ENOENT when it is not among them).
 */
int tly_value_decode_member(const struct tly_read_layout *layout, const uint64_t *words,
			    size_t size, uint64_t id, struct tally_value *value);

#endif
