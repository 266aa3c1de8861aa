/* SPDX-License-Identifier: MIT */
/*
 * The mappings of one process over the whole recording, each with the time from which it held.
 *
 * A later mapping hides what it covers of an earlier one, so nothing is ever split or removed: the
 * newest mapping at an address, as of the time asked for, is the answer. Mappings may be added in
 * any order.
 */
#ifndef LIB_SYMBOL_SPACE_H
#define LIB_SYMBOL_SPACE_H

#include <stddef.h>
#include <stdint.h>

struct tally_dso;

/* A moment: among events of one time, the order in which they were fed decides. */
struct tly_moment {
	uint64_t time, order;
};

static inline int tly_moment_before(struct tly_moment a, struct tly_moment b)
{
	return a.time != b.time ? a.time < b.time : a.order < b.order;
}

/* What turns an instruction pointer into an address of the dso. */
enum tly_addressing {
	TLY_BY_FILE,	 /* offset in the file, and its segments */
	TLY_BY_START,	 /* distance from the start of the mapping */
	TLY_BY_IDENTITY, /* it is the address */
	TLY_BY_TEXT,	 /* the kernel: distance from _text, which pgoff says */
	TLY_BY_STEXT,	 /* from _stext */
};

struct tly_map {
	uint64_t start, end, pgoff;
	struct tly_moment since;
	struct tally_dso *dso; /* NULL: nothing is mapped here any more */
	enum tly_addressing addressing;
};

struct tly_space {
	struct tly_map *maps;
	uint64_t *highest; /* of each subtree of the sorted part: its highest end */
	size_t nr, size;
	size_t sorted; /* the first so many maps are a tree; the few after it are not yet */
};

void tly_space_free(struct tly_space *space);
/* Returns 0 or -ENOMEM. An empty mapping is ignored. */
int tly_space_add(struct tly_space *space, const struct tly_map *map);

/* What holds at @address at @time, of the mappings made in [from, until). */
struct tly_space_result {
	const struct tly_map *map;  /* or NULL */
	const struct tly_map *next; /* the first later one, or NULL: it ends the answer's life */
};
struct tly_space_result tly_space_find(struct tly_space *space, uint64_t address, uint64_t time,
				       struct tly_moment from, struct tly_moment until);

#endif
