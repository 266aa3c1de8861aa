/* SPDX-License-Identifier: MIT */
/*
 * The tables by which indirect branches and returns find where to go on: some bits of the target
 * choose a place, the place says where the candidate arrives, and the code there compares. They lie
 * below 2 GiB, so that emitted code says where they are in 32 bits.
 *
 * Which bits is a mask in memory: the tables begin small and grow with what is in them, as long as
 * the processor has a quick pext. Without it, it is 16 bits from the beginning.
 */
#ifndef RUNTIME_TRANSLATE_TABLES_H
#define RUNTIME_TRANSLATE_TABLES_H

#include "runtime/translate/cache.h"

enum table { TABLE_JUMPS, TABLE_RETURNS };

#define TABLE_FIRST_BITS 11
#define TABLE_FIXED_BITS 16
#define TABLE_LAST_BITS	 18

struct tables {
	uint32_t masks[2]; /* of the bits that choose, by enum table */
	uint32_t used[2];
	uint64_t free[510];
	uint64_t places[2][1 << TABLE_LAST_BITS];
};

/* How the processor picks bits without touching flags: what branch.c emits goes by it. */
enum table_index {
	INDEX_PEXT,
	INDEX_RORX,  /* 16 bits, of jumps from bit 4 on */
	INDEX_MOVZX, /* the lowest 16 bits */
};

enum table_index tables_index(void);

/* Whether loop is as quick as another branch. */
bool tables_quick_loop(void);

/* As on another processor, before translate_init(): for the tests, which try them all. */
void tables_choose(enum table_index index, bool quick_loop);

void tables_init(struct cache *cache, struct tables *memory);

/* All places lead to the ways out. */
void tables_clear(struct cache *cache);

/* How many places are in use, and what those have that have no candidate. */
uint64_t tables_size(const struct cache *cache, enum table table);
uint64_t tables_way_out(const struct cache *cache, enum table table);

static inline struct tables *tables(const struct cache *cache)
{
	return (struct tables *)cache->lookup.tables;
}

/* The place of a target; enter.S does the same. */
static inline uint64_t *table_place(const struct cache *cache, enum table table, uint64_t target)
{
	uint64_t index = target & tables(cache)->masks[table];

	if (table == TABLE_JUMPS)
		index >>= cache->lookup.jump_shift;
	return &tables(cache)->places[table][index];
}

/* The entry's landing or pad is the candidate for its address. */
void tables_set(struct cache *cache, enum table table, const struct entry *entry);

/* The fragment's candidate for @pc, or the one at @arrival if that is not 0, is none any more. */
void tables_withdraw(struct cache *cache, enum table table, uint64_t pc, const struct fragment *f,
		     uint32_t arrival);

#endif
