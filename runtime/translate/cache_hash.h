/* SPDX-License-Identifier: MIT */
/*
 * What is found by an address of the program's: an entry, or a target where there is none. To be
 * found needs no lock, to be put there does.
 */
#ifndef RUNTIME_TRANSLATE_CACHE_HASH_H
#define RUNTIME_TRANSLATE_CACHE_HASH_H

#include "runtime/translate/cache.h"

static inline uint64_t hash_of(uint64_t key)
{
	return key * HASH_MULTIPLIER >> 32;
}

/* What a slot has: an entry, or a target and SLOT_TARGET. */
static inline uint32_t slot_place(uint64_t slot)
{
	return slot >> 32;
}

/* The slot of @pc, or a free one that may be filled. */
uint64_t *hash_slot_for(struct cache *cache, uint64_t pc);

/* @slot, which is that of @pc, has @place from now on. */
void hash_fill(struct cache *cache, uint64_t *slot, uint64_t pc, uint32_t place);

/* Whether there is room for so many more. */
bool hash_room(const struct cache *cache, uint32_t more);

#endif
