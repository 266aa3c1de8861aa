/* SPDX-License-Identifier: MIT */
/*
 * A hash from keys that live in somebody's array to their index there. It holds the indexes only:
 * 8 bytes an entry, whatever the key, and the array stays in the order in which it grew.
 */
#ifndef TOOL_LOOKUP_H
#define TOOL_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOKUP_NONE UINT32_MAX

struct lookup_slot {
	uint32_t hash;
	uint32_t index_plus_1; /* 0: empty */
};

/* Starts zeroed. */
struct lookup {
	struct lookup_slot *slots;
	size_t nr_slots; /* 0 or a power of two, more than nr */
	size_t nr;
};

/* Whether entry @index of @owner has @key. */
typedef bool lookup_equal(const void *owner, uint32_t index, const void *key);

/* The index stored under @hash for which @equal holds, or LOOKUP_NONE. */
uint32_t lookup_find(const struct lookup *lookup, uint32_t hash, lookup_equal *equal,
		     const void *owner, const void *key);
/* Stores @index, which lookup_find() has not found. Indexes stay below LOOKUP_NONE. */
void lookup_add(struct lookup *lookup, uint32_t hash, uint32_t index);
void lookup_free(struct lookup *lookup);

/* Hashes of words and bytes; @seed chains them. */
uint32_t lookup_hash_words(uint64_t seed, const uint64_t *words, size_t nr);
uint32_t lookup_hash_text(const char *text);

#endif
