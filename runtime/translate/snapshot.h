/* SPDX-License-Identifier: MIT */
/*
 * What of a code cache another process can go on with, that executes the same program at the same
 * addresses: all numbers in a cache are offsets and indices, and its code refers to nothing of the
 * runtime but its tables and what GS points at. So what has been used of its memory, put where it
 * was, and the numbers of struct cache are a cache again.
 *
 * But for the candidates in its tables: by them code is entered that is not meant, if only up to
 * where it compares. A signal that comes there has the program's code looked at, which may not be
 * mapped yet.
 *
 * None of a cache that traces: the model takes so long that nothing would be gained, and counts
 * lines of code by blocks, which begin and end elsewhere where others have been before.
 */
#ifndef RUNTIME_TRANSLATE_SNAPSHOT_H
#define RUNTIME_TRANSLATE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/translate/cache.h"

enum snapshot_area { SNAPSHOT_CODE, SNAPSHOT_TABLES, SNAPSHOT_META };

/* Pages of an area. */
struct snapshot_piece {
	uint64_t from, size; /* in bytes */
	uint64_t instead;    /* what each word is, whatever it is in the cache; 0: that */
	uint32_t area;
};

enum { SNAPSHOT_PIECES = 16 };

struct snapshot {
	struct instrumentation does;
	uint32_t nr_fragments, nr_entries, nr_targets, nr_exits, nr_pages, nr_kept;
	uint32_t free_targets;
	uint32_t code_next;
	uint32_t nr_pieces;
	struct snapshot_piece pieces[SNAPSHOT_PIECES];
};

/* With the translator locked. */
void snapshot_take(const struct cache *cache, struct snapshot *s);

/* Where a piece of its belongs. */
void *snapshot_place(const struct cache *cache, const struct snapshot_piece *piece);

/* The pieces are there: @cache, which was empty, is as it was when @s was taken. */
void snapshot_adopt(struct cache *cache, const struct snapshot *s);

/*
 * What the translator calls (runtime/linux/code_store.c, or a test): makes @cache, which is empty,
 * what one like it was. False: there is none, and @cache is as it was, or @spoiled, and all of its
 * memory is empty. With the translator locked.
 */
bool memory_kept(struct cache *cache, bool *spoiled);

/* Likewise: @cache is about to become another, which nothing is kept of. */
void memory_forget_kept(const struct cache *cache);

#endif
