// SPDX-License-Identifier: MIT
#include "tool/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "tool/memory.h"

#define FEWEST_SLOTS 64

uint32_t lookup_find(const struct lookup *lookup, uint32_t hash, lookup_equal *equal,
		     const void *owner, const void *key)
{
	size_t mask = lookup->nr_slots - 1;

	if (!lookup->nr_slots)
		return LOOKUP_NONE;
	for (size_t i = hash & mask; lookup->slots[i].index_plus_1; i = (i + 1) & mask) {
		const struct lookup_slot *slot = &lookup->slots[i];

		if (slot->hash == hash && equal(owner, slot->index_plus_1 - 1, key))
			return slot->index_plus_1 - 1;
	}
	return LOOKUP_NONE;
}

static void place(struct lookup *lookup, struct lookup_slot slot)
{
	size_t mask = lookup->nr_slots - 1;
	size_t i = slot.hash & mask;

	while (lookup->slots[i].index_plus_1)
		i = (i + 1) & mask;
	lookup->slots[i] = slot;
}

void lookup_add(struct lookup *lookup, uint32_t hash, uint32_t index)
{
	/* Half full at most: probes stay short. */
	if ((lookup->nr + 1) * 2 > lookup->nr_slots) {
		struct lookup old = *lookup;

		lookup->nr_slots = old.nr_slots ? old.nr_slots * 2 : FEWEST_SLOTS;
		lookup->slots = tool_alloc(lookup->nr_slots, sizeof(*lookup->slots));
		for (size_t i = 0; i < old.nr_slots; i++)
			if (old.slots[i].index_plus_1)
				place(lookup, old.slots[i]);
		free(old.slots);
	}
	place(lookup, (struct lookup_slot){hash, index + 1});
	lookup->nr++;
}

void lookup_free(struct lookup *lookup)
{
	free(lookup->slots);
	*lookup = (struct lookup){0};
}

/* Multiply and fold: the 128-bit product's halves, as wyhash and its like mix. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint32_t lookup_hash_words(uint64_t seed, const uint64_t *words, size_t nr)
{
	uint64_t hash = seed ^ 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < nr; i++) {
		uint64_t word;

		memcpy(&word, words + i, sizeof(word)); /* may be unaligned */
		hash = mix(hash ^ word, 0xd6e8feb86659fd93);
	}
	return hash ^ hash >> 32;
}

uint32_t lookup_hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash ^ hash >> 32;
}
