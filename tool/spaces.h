/* SPDX-License-Identifier: MIT */
/*
 * Address spaces: a process between two moments at which its addresses change their meaning. Within
 * one, an address means the same at any time, so whole call chains can be compared as numbers.
 *
 * A process gets a new one when it begins, at exec(2), and when something else is mapped where
 * something was. Mappings of new ranges change no meaning and open none.
 */
#ifndef TOOL_SPACES_H
#define TOOL_SPACES_H

#include <stdint.h>

#include <tally/record.h>

struct spaces;

struct spaces *spaces_new(void);
void spaces_free(struct spaces *spaces);

/* Takes in a side-band record of any type, in any order. */
void spaces_feed(struct spaces *spaces, const struct tally_record *record, uint64_t time);
/* After the last one, before the first spaces_at(). */
void spaces_seal(struct spaces *spaces);

/*
 * Instead of both, for records in the order of time that samples come between: what is to come is
 * not known, so each new mapping opens a space.
 */
void spaces_follow(struct spaces *spaces, const struct tally_record *record);

/* The number of the space of @pid at @time: from 1, distinct for each. */
uint32_t spaces_at(struct spaces *spaces, uint32_t pid, uint64_t time);

#endif
