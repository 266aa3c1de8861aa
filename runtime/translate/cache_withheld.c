// SPDX-License-Identifier: MIT
/*
 * Translations that another process has left are withheld until what they were made from is mapped:
 * nobody finds their entries, which come back page by page.
 */
#include "runtime/translate/cache.h"
#include "runtime/translate/cache_memory.h"
#include "runtime/translate/cache_parts.h"
#include "runtime/translate/kept.h"

/* An entry that has a pad and no body; bodies lie behind the ways out. */
enum { PAD_ALONE = 1 };

static unsigned int group_of(const struct cache *cache, const struct fragment *f,
			     unsigned int (*group)(uint64_t page))
{
	const unsigned int first = group(kept_page(cache, f, 0));

	for (unsigned int i = 1; i <= f->other_pages; i++)
		if (group(kept_page(cache, f, i)) != first)
			return CACHE_GROUP_NONE;
	return first;
}

static bool is_alive(const struct cache *cache, const struct fragment *f)
{
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++)
		if (cache->lookup.entries[id].body)
			return true;
	return false;
}

/* Whether an exit of another group's leads there. */
static bool is_entered_by_others(const struct cache *cache, const struct fragment *f,
				 unsigned int own, unsigned int (*group)(uint64_t page))
{
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++)
		for (uint32_t exit = cache->lookup.entries[id].exits; exit;
		     exit = cache->exits[exit].next) {
			const struct fragment *from =
				cache_fragment_at(cache, cache->exits[exit].site);

			if (!from || group_of(cache, from, group) != own)
				return true;
		}
	return false;
}

static void withhold(struct cache *cache, const struct fragment *f)
{
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++) {
		struct entry *entry = &cache->lookup.entries[id];

		if (entry->body)
			cache->meta->withheld[id] = entry->body;
		else if (entry->pad)
			cache->meta->withheld[id] = PAD_ALONE;
		cache_hide(cache, entry, f);
		/* Another fragment's, which may die meanwhile. */
		if (entry->pad < f->start || entry->pad >= fragment_end(f))
			entry->pad = 0;
	}
}

void cache_withhold(struct cache *cache, unsigned int (*group)(uint64_t page))
{
	for (uint32_t i = 1; i < cache->nr_fragments; i++) {
		struct fragment *f = &cache->fragments[i];
		const unsigned int own = group_of(cache, f, group);

		if (own == CACHE_GROUP_SHOWN || !is_alive(cache, f))
			continue;
		if (own == CACHE_GROUP_NONE || is_entered_by_others(cache, f, own, group))
			cache_kill(cache, f);
		else
			withhold(cache, f);
	}
}

static bool is_withheld(const struct cache *cache, const struct fragment *f)
{
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++)
		if (cache->meta->withheld[id])
			return true;
	return false;
}

static void forget_withheld(struct cache *cache, uint64_t number)
{
	uint32_t next;

	for (uint32_t i = cache_find_page(cache, number)->fragments; i; i = next) {
		struct fragment *f = &cache->fragments[i];

		next = *kept_page_next(cache, f, kept_which_page(cache, f, number));
		if (is_withheld(cache, f))
			cache_kill(cache, f);
	}
}

void cache_forget_withheld(struct cache *cache, uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number <= last; number++)
		forget_withheld(cache, number);
}

static void show_entry(struct cache *cache, uint32_t id)
{
	struct entry *entry = &cache->lookup.entries[id];
	const uint32_t body = cache->meta->withheld[id];
	const bool known = cache_find(cache, entry->pc);

	if (body == PAD_ALONE) {
		if (known)
			cache_publish_entry(cache, id);
	} else if (!known && cache_waiting(cache, entry->pc) <= cache_level(cache, id)) {
		entry->body = body;
		cache_publish_entry(cache, id);
	}
}

/* Bodies first: a pad alone belongs to the one of its address. */
static void show(struct cache *cache, const struct fragment *f, bool bodies)
{
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++) {
		const uint32_t withheld = cache->meta->withheld[id];

		if (withheld && bodies == (withheld != PAD_ALONE))
			show_entry(cache, id);
	}
}

static void show_page(struct cache *cache, uint64_t number, bool bodies)
{
	uint32_t next;

	for (uint32_t i = cache_find_page(cache, number)->fragments; i; i = next) {
		struct fragment *f = &cache->fragments[i];

		next = *kept_page_next(cache, f, kept_which_page(cache, f, number));
		show(cache, f, bodies);
	}
}

void cache_show(struct cache *cache, uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number <= last; number++)
		show_page(cache, number, true);
	for (uint64_t number = first; number <= last; number++)
		show_page(cache, number, false);
}
