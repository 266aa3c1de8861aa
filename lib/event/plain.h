/* SPDX-License-Identifier: MIT */
/* Events named by one word: generic, cache and raw, once for each kind of core. */
#ifndef LIB_EVENT_PLAIN_H
#define LIB_EVENT_PLAIN_H

#include "lib/event/parse.h"

/* Appends what @word names. Returns 1, 0 when it is no such name, or a negative errno. */
int tly_plain_add(struct tly_parse *parse, struct tly_span word);

/* Says that no event is called @word, and which are nearest; returns -ENOENT. */
int tly_plain_unknown(struct tly_parse *parse, struct tly_span word);

/*
 * The kernel groups events of one unit only: where there are several kinds of core, the group from
 * @first to the list's end becomes one group for each. Other events stay with the first kind.
 */
int tly_plain_split_group(struct tly_parse *parse, size_t first);

#endif
