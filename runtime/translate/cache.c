// SPDX-License-Identifier: MIT
#include "runtime/translate/cache.h"

#include "runtime/translate/build.h"
#include "runtime/translate/tables.h"

/*
 *	code	ways out | fragments ... | stubs, by number of exit
 *	meta	fragments | entries | exits | pages | sources | hashes, each twice the last
 */
enum {
	MAX_FRAGMENTS = 256 << 10,
	MAX_ENTRIES = 512 << 10,
	MAX_EXITS = 1 << 20,
	PAGE_SLOTS = 64 << 10,
	SOURCES_SIZE = 8 << 20,
	FIRST_SLOTS = 8 << 10,
	LAST_SLOTS = 1 << 20,
};

/* What a write may run over the end of the code: copies are of 16 bytes. */
#define SLACK 64

#define STUBS (TRANSLATE_CODE_SIZE - MAX_EXITS * STUB_BYTES)

/* A page that code was translated from. */
struct page {
	uint64_t number; /* 0: free */
	uint32_t fragments;
	uint32_t written; /* how often in a row, */
	uint32_t last;	  /* the last time when there were so many fragments */
};

/* A page is hot when it was written as often in a row with hardly anything else built meanwhile.
 * What a compiler puts on a page that has other functions already is not. */
enum { HOT_WRITES = 16, HOT_FRAGMENTS = 64 };

struct meta {
	struct fragment fragments[MAX_FRAGMENTS];
	struct entry entries[MAX_ENTRIES];
	struct exit exits[MAX_EXITS];
	struct page pages[PAGE_SLOTS];
	struct slot hashes[2 * LAST_SLOTS]; /* each behind its head, which takes a slot */
	uint8_t sources[SOURCES_SIZE];
};

_Static_assert(sizeof(struct meta) <= TRANSLATE_META_SIZE, "");
_Static_assert(sizeof(struct slots_head) == sizeof(struct slot), "");
_Static_assert(STUBS > 32 << 20, "");

_Static_assert(offsetof(struct lookup, slots) == LOOKUP_SLOTS, "");
_Static_assert(offsetof(struct lookup, entries) == LOOKUP_ENTRIES, "");
_Static_assert(offsetof(struct lookup, code) == LOOKUP_CODE, "");
_Static_assert(offsetof(struct lookup, tables) == LOOKUP_TABLES, "");
_Static_assert(offsetof(struct lookup, jump_shift) == LOOKUP_SHIFT, "");
_Static_assert(offsetof(struct tables, masks) == 0, "");
_Static_assert(offsetof(struct tables, places) == TABLES_PLACES, "");
_Static_assert(TABLE_LAST_BITS == TABLE_BITS, "");
_Static_assert(sizeof(struct tables) <= TRANSLATE_TABLE_SIZE, "");
_Static_assert(offsetof(struct slot, entry) == SLOT_ENTRY, "");
_Static_assert(offsetof(struct entry, body) == ENTRY_BODY, "");
_Static_assert(offsetof(struct entry, landing) == ENTRY_ARRIVALS, "");
_Static_assert(offsetof(struct entry, pad) == ENTRY_ARRIVALS + 4, "");
_Static_assert(sizeof(struct entry) == 1 << ENTRY_SHIFT, "");

/* ---- the hash ---- */

static uint64_t hash(uint64_t key)
{
	return key * HASH_MULTIPLIER >> 32;
}

static struct slots_head *head(struct slot *slots)
{
	return (struct slots_head *)slots - 1;
}

/* The slot of @pc, or the free one where it would be. */
static struct slot *probe(struct slot *slots, uint64_t pc)
{
	const uint64_t mask = head(slots)->mask;

	for (uint64_t i = hash(~pc);; i++) {
		struct slot *slot = &slots[i & mask];
		const uint64_t key = __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE);

		if (key == ~pc || !key)
			return slot;
	}
}

uint32_t cache_find(const struct cache *cache, uint64_t pc)
{
	struct slot *slots = __atomic_load_n(&cache->lookup.slots, __ATOMIC_ACQUIRE);
	const uint32_t entry = __atomic_load_n(&probe(slots, pc)->entry, __ATOMIC_RELAXED);

	/* Entry 0 has no body. */
	return cache->lookup.entries[entry].body ? entry : 0;
}

static void insert(struct slot *slots, uint64_t pc, uint32_t entry)
{
	struct slot *slot = probe(slots, pc);

	__atomic_store_n(&slot->entry, entry, __ATOMIC_RELEASE);
	if (slot->key)
		return;
	head(slots)->used++;
	__atomic_store_n(&slot->key, ~pc, __ATOMIC_RELEASE);
}

/* The next one lies behind, and is as large as all before it. Readers go on with the old one, which
 * is whole and lacks only what is new. */
static void grow(struct cache *cache)
{
	struct slot *old = cache->lookup.slots;
	const uint64_t size = head(old)->mask + 1;
	struct slot *slots = old + size + 1;

	*head(slots) = (struct slots_head){.mask = 2 * size - 1};
	for (uint64_t i = 0; i < size; i++)
		if (cache->lookup.entries[old[i].entry].body)
			insert(slots, ~old[i].key, old[i].entry);
	__atomic_store_n(&cache->lookup.slots, slots, __ATOMIC_RELEASE);
}

/* ---- links ---- */

static uint64_t address_of(const struct cache *cache, uint32_t offset)
{
	return (uint64_t)cache->lookup.code + offset;
}

static void write_stub(struct cache *cache, uint32_t id)
{
	struct builder b = {.cache = cache, .at = cache->lookup.code + stub_of(cache, id)};

	EMIT(&b, 0x65, 0xc7, 0x04, 0x25, THREAD_EXIT, 0, 0, 0);
	emit32(&b, id);
	EMIT(&b, 0xe9);
	emit_relative(&b, address_of(cache, cache->leave));
	cache->exits[id].stub = true;
}

/* One store: other threads execute what is there before or after it. */
static void patch(struct cache *cache, uint32_t site, uint32_t target)
{
	const uint32_t relative = target - (site + 4);

	__asm__ volatile("movl %1, %0"
			 : "=m"(*(uint32_t(*)[1])(cache->lookup.code + site))
			 : "r"(relative)
			 : "memory");
}

void cache_link(struct cache *cache, uint32_t id, uint32_t entry_id)
{
	struct exit *exit = &cache->exits[id];
	struct entry *entry = &cache->lookup.entries[entry_id];

	if (exit->linked)
		return;
	patch(cache, exit->site, entry->body);
	exit->linked = true;
	exit->next = entry->links;
	entry->links = id;
}

static void unlink_exit(struct cache *cache, uint32_t id)
{
	if (!cache->exits[id].stub)
		write_stub(cache, id);
	patch(cache, cache->exits[id].site, stub_of(cache, id));
	cache->exits[id].linked = false;
}

static void unlink_all(struct cache *cache, struct entry *entry)
{
	uint32_t next;

	for (uint32_t id = entry->links; id; id = next) {
		next = cache->exits[id].next;
		unlink_exit(cache, id);
	}
	entry->links = 0;
}

/* ---- pages ---- */

static struct page *find_page(const struct cache *cache, uint64_t number)
{
	for (uint64_t i = hash(number);; i++) {
		struct page *page = &cache->pages[i & (PAGE_SLOTS - 1)];

		if (page->number == number || !page->number)
			return page;
	}
}

static void add_to_page(struct cache *cache, struct fragment *f, unsigned int which)
{
	struct page *page = find_page(cache, f->pages[which]);

	if (!page->number) {
		page->number = f->pages[which];
		cache->nr_pages++;
	}
	f->page_next[which] = page->fragments;
	page->fragments = f - cache->fragments;
}

static void forget_page(struct cache *cache, struct page *page)
{
	uint32_t next;

	for (uint32_t i = page->fragments; i; i = next) {
		struct fragment *f = &cache->fragments[i];

		next = f->page_next[f->pages[0] != page->number];
		cache_kill(cache, f);
	}
	page->fragments = 0;
}

void cache_written(struct cache *cache, uint64_t number)
{
	struct page *page = find_page(cache, number);

	if (!page->number)
		return;
	if (cache->nr_fragments - page->last > HOT_FRAGMENTS)
		page->written = 0;
	page->written++;
	page->last = cache->nr_fragments;
	forget_page(cache, page);
}

bool cache_is_hot(const struct cache *cache, uint64_t page)
{
	return find_page(cache, page)->written >= HOT_WRITES;
}

void cache_forget_pages(struct cache *cache, uint64_t first, uint64_t last)
{
	if (last - first < cache->nr_pages) {
		for (uint64_t number = first; number <= last; number++)
			forget_page(cache, find_page(cache, number));
		return;
	}
	for (unsigned int i = 0; i < PAGE_SLOTS; i++)
		if (cache->pages[i].number >= first && cache->pages[i].number <= last)
			forget_page(cache, &cache->pages[i]);
}

/* ---- fragments ---- */

bool cache_room(const struct cache *cache)
{
	return cache->nr_fragments < MAX_FRAGMENTS &&
	       cache->nr_entries + FRAGMENT_ENTRIES <= MAX_ENTRIES &&
	       cache->nr_exits + FRAGMENT_EXITS <= MAX_EXITS &&
	       cache->nr_pages + 2 <= PAGE_SLOTS * 3 / 4 &&
	       cache->nr_sources + FRAGMENT_BYTES <= SOURCES_SIZE &&
	       head(cache->lookup.slots)->used + FRAGMENT_ENTRIES <= LAST_SLOTS / 2 &&
	       cache->code_next + FRAGMENT_BYTES + SLACK <= STUBS;
}

static void publish_entry(struct cache *cache, uint32_t id)
{
	struct entry *entry = &cache->lookup.entries[id];

	if (entry->body) {
		insert(cache->lookup.slots, entry->pc, id);
	} else {
		struct entry *known = &cache->lookup.entries[cache_find(cache, entry->pc)];

		if (!known->pad)
			known->pad = entry->pad;
	}
	if (entry->pad)
		tables_set(cache, TABLE_RETURNS, entry);
	if (entry->landing)
		tables_set(cache, TABLE_JUMPS, entry);
}

/* The entry of @f for @pc that has code, or 0. */
static uint32_t own_entry(const struct cache *cache, const struct fragment *f, uint64_t pc)
{
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++)
		if (cache->lookup.entries[id].pc == pc && cache->lookup.entries[id].body)
			return id;
	return 0;
}

static void link_or_stub(struct cache *cache, uint32_t id, const struct fragment *f)
{
	const struct exit *exit = &cache->exits[id];
	uint32_t target = 0;

	if (exit->kind == EXIT_LINK) {
		target = own_entry(cache, f, exit->target);
		if (!target)
			target = cache_find(cache, exit->target);
	}
	if (target)
		cache_link(cache, id, target);
	else
		unlink_exit(cache, id);
}

/* Once an entry is in the hash other threads may come by it, so all exits lead somewhere before. */
void cache_publish(struct cache *cache, struct fragment *f)
{
	for (unsigned int i = 0; i < f->nr_exits; i++)
		link_or_stub(cache, f->exits + i, f);
	for (unsigned int i = 0; i < 2; i++)
		if (f->pages[i])
			add_to_page(cache, f, i);
	while (2 * (head(cache->lookup.slots)->used + f->nr_entries) >
	       head(cache->lookup.slots)->mask + 1)
		grow(cache);
	for (unsigned int i = 0; i < f->nr_entries; i++)
		publish_entry(cache, f->entries + i);
}

/* The order matters to whoever looks the entry up meanwhile: see enter.S. */
static void kill_entry(struct cache *cache, struct entry *entry, const struct fragment *f)
{
	struct entry *known;

	__atomic_exchange_n(&entry->body, 0, __ATOMIC_SEQ_CST);
	tables_withdraw(cache, TABLE_JUMPS, entry->pc, f, entry->landing);
	tables_withdraw(cache, TABLE_RETURNS, entry->pc, f, entry->pad);
	unlink_all(cache, entry);

	known = &cache->lookup.entries[cache_find(cache, entry->pc)];
	if (known->pad == entry->pad)
		known->pad = 0;
}

void cache_kill(struct cache *cache, struct fragment *f)
{
	for (unsigned int i = 0; i < f->nr_entries; i++)
		kill_entry(cache, &cache->lookup.entries[f->entries + i], f);
}

struct fragment *cache_fragment_at(const struct cache *cache, uint32_t offset)
{
	uint32_t low = 1, high = cache->nr_fragments;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (cache->fragments[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < cache->nr_fragments && cache->fragments[low].start <= offset
		       ? &cache->fragments[low]
		       : NULL;
}

/* ---- beginning, and beginning anew ---- */

/* Indices of 0 are none. */
static void reset(struct cache *cache)
{
	cache->code_next = WAYS_OUT;
	cache->nr_fragments = cache->nr_entries = cache->nr_sources = 1;
	cache->nr_exits = FIRST_EXIT;
	cache->nr_pages = 0;
	cache->lookup.slots = cache->meta->hashes + 1;
	head(cache->lookup.slots)->mask = FIRST_SLOTS - 1;
	head(cache->lookup.slots)->used = 0;
}

void cache_init(struct cache *cache, const struct translate_memory *memory)
{
	struct builder b = {.cache = cache, .at = memory->code};

	cache->meta = memory->meta;
	cache->fragments = cache->meta->fragments;
	cache->exits = cache->meta->exits;
	cache->pages = cache->meta->pages;
	cache->sources = cache->meta->sources;
	cache->stubs = STUBS;
	cache->lookup.entries = cache->meta->entries;
	cache->lookup.code = memory->code;
	emit_ways_out(&b);
	tables_init(cache, memory->tables);
	reset(cache);
}

void cache_disconnect(struct cache *cache)
{
	for (uint32_t id = FIRST_EXIT; id < cache->nr_exits; id++)
		if (cache->exits[id].linked)
			unlink_exit(cache, id);
	tables_clear(cache);
}

void cache_empty(struct cache *cache)
{
	const struct slot *end = cache->lookup.slots + head(cache->lookup.slots)->mask + 1;

	__builtin_memset(cache->meta->hashes, 0, (uint8_t *)end - (uint8_t *)cache->meta->hashes);
	__builtin_memset(cache->pages, 0, sizeof(cache->meta->pages));
	reset(cache);
	tables_clear(cache);
}
