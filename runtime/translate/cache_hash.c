// SPDX-License-Identifier: MIT
#include "runtime/translate/cache_hash.h"

#include "runtime/translate/cache_memory.h"

static uint64_t place_pc(const struct cache *cache, uint32_t place)
{
	return place & SLOT_TARGET ? cache->targets[place & ~SLOT_TARGET].pc
				   : cache->lookup.entries[place].pc;
}

/* The slot of @pc, or the free one where it would be. Without the lock that is already another's
 * when it is read again (grow()): @value is what it had. */
static uint64_t *probe_value(const struct cache *cache, uint64_t pc, uint64_t *value)
{
	const uint32_t mask = __atomic_load_n(&cache->meta->head.mask, __ATOMIC_RELAXED);
	uint64_t *slot = &cache->meta->slots[hash_of(pc) & mask];

	for (;; slot++) {
		*value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if (!*value ||
		    ((uint32_t)*value == (uint32_t)pc && place_pc(cache, slot_place(*value)) == pc))
			return slot;
	}
}

static uint64_t *probe(const struct cache *cache, uint64_t pc)
{
	uint64_t value;

	return probe_value(cache, pc, &value);
}

/* Of an entry without a body, or a target, 0: entry 0 has none. */
static uint32_t body_of(const struct cache *cache, uint32_t place)
{
	return place & SLOT_TARGET
		       ? 0
		       : __atomic_load_n(&cache->lookup.entries[place].body, __ATOMIC_RELAXED);
}

uint32_t cache_find(const struct cache *cache, uint64_t pc)
{
	uint64_t value;

	probe_value(cache, pc, &value);
	return body_of(cache, slot_place(value)) ? slot_place(value) : 0;
}

uint32_t cache_body(const struct cache *cache, uint64_t pc)
{
	uint64_t value;

	probe_value(cache, pc, &value);
	return body_of(cache, slot_place(value));
}

unsigned int cache_waiting(const struct cache *cache, uint64_t pc)
{
	const uint32_t place = slot_place(*probe(cache, pc));

	return place & SLOT_TARGET ? cache->targets[place & ~SLOT_TARGET].gone : 0;
}

void hash_fill(struct cache *cache, uint64_t *slot, uint64_t pc, uint32_t place)
{
	const uint64_t value = (uint64_t)place << 32 | (uint32_t)pc;

	cache->meta->head.used += !*slot;
	if (*slot != value)
		__atomic_store_n(slot, value, __ATOMIC_RELEASE);
}

/* Takes what the slot has to where it belongs. */
static void move_slot(struct cache *cache, uint64_t value)
{
	const uint32_t place = slot_place(value);
	const uint64_t pc = place_pc(cache, place);

	if (place & SLOT_TARGET || cache->lookup.entries[place].body)
		hash_fill(cache, probe(cache, pc), pc, place);
}

/*
 * The hash becomes twice as large where it is. From the front on everything finds its new place
 * where it was, before that, or in the new half, which is free once what was in the slots behind
 * has been taken out. Others who look meanwhile may find nothing, and then ask with the lock held.
 */
static void grow(struct cache *cache)
{
	const uint32_t size = cache->meta->head.mask + 1;
	uint64_t *slots = cache->meta->slots, behind[MORE_SLOTS];

	memory_populate((uint64_t)&slots[size + MORE_SLOTS],
			(uint64_t)&slots[2 * size + MORE_SLOTS]);
	cache->meta->head = (struct slots_head){.mask = 2 * size - 1};
	for (uint32_t i = 0; i < MORE_SLOTS; i++)
		behind[i] = __atomic_exchange_n(&slots[size + i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < size; i++) {
		const uint64_t value = slots[i];

		__atomic_store_n(&slots[i], 0, __ATOMIC_RELAXED);
		if (value)
			move_slot(cache, value);
	}
	for (uint32_t i = 0; i < MORE_SLOTS; i++)
		if (behind[i])
			move_slot(cache, behind[i]);
}

/* How many of them may be in use. */
static uint32_t capacity(uint32_t slots)
{
	return slots / 4 * 3;
}

uint64_t *hash_slot_for(struct cache *cache, uint64_t pc)
{
	const struct slots_head *head = &cache->meta->head;
	uint64_t *slot = probe(cache, pc);

	if (*slot)
		return slot;
	if (head->used < capacity(head->mask + 1) &&
	    slot < cache->meta->slots + head->mask + MORE_SLOTS)
		return slot;
	if (head->mask + 1 == LAST_SLOTS) {
		cache->meta->lost = 0;
		return &cache->meta->lost;
	}
	grow(cache);
	return probe(cache, pc);
}

bool hash_room(const struct cache *cache, uint32_t more)
{
	return cache->meta->head.used + more <= capacity(LAST_SLOTS);
}
