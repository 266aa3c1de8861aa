// SPDX-License-Identifier: MIT
#include "runtime/translate/cache.h"

#include "runtime/model/block.h"
#include "runtime/translate/build.h"
#include "runtime/translate/cache_hash.h"
#include "runtime/translate/cache_memory.h"
#include "runtime/translate/cache_parts.h"
#include "runtime/translate/kept.h"
#include "runtime/translate/record.h"
#include "runtime/translate/tables.h"

/* What all blocks of a fragment may take. */
#define MAX_BLOCKS_OF_FRAGMENT	 (16u << 10)
#define MAX_COMPILED_OF_FRAGMENT (64u << 10)

/* What a write may run over the end of the code: copies are of 16 bytes. */
#define SLACK 64

/* A page is hot when it was written as often in a row with hardly anything else built meanwhile.
 * What a compiler puts on a page that has other functions already is not. */
enum { HOT_WRITES = 16, HOT_FRAGMENTS = 64 };

_Static_assert(sizeof(struct meta) <= TRANSLATE_META_SIZE, "");
_Static_assert(sizeof(((struct meta *)0)->pages) <=
		       sizeof(((struct cache *)0)->pages_there) * 8 * PAGE_SIZE,
	       "");
_Static_assert(offsetof(struct meta, slots) - offsetof(struct meta, head) ==
		       sizeof(struct slots_head),
	       "");
_Static_assert(STUBS > 32 << 20, "");

_Static_assert(offsetof(struct lookup, slots) == LOOKUP_SLOTS, "");
_Static_assert(offsetof(struct lookup, entries) == LOOKUP_ENTRIES, "");
_Static_assert(offsetof(struct lookup, code) == LOOKUP_CODE, "");
_Static_assert(offsetof(struct lookup, tables) == LOOKUP_TABLES, "");
_Static_assert(offsetof(struct lookup, jump_shift) == LOOKUP_SHIFT, "");
_Static_assert(offsetof(struct lookup, vectors) == LOOKUP_VECTORS, "");
_Static_assert(offsetof(struct lookup, home) == LOOKUP_HOME, "");
_Static_assert(offsetof(struct lookup, looks) == LOOKUP_LOOKS, "");
_Static_assert(offsetof(struct tables, masks) == 0, "");
_Static_assert(offsetof(struct tables, places) == TABLES_PLACES, "");
_Static_assert(TABLE_LAST_BITS == TABLE_BITS, "");
_Static_assert(sizeof(struct tables) <= TRANSLATE_TABLE_SIZE, "");
_Static_assert(offsetof(struct slots_head, mask) - sizeof(struct slots_head) == (size_t)HEAD_MASK,
	       "");
_Static_assert(offsetof(struct entry, pc) == 0, "");
_Static_assert(offsetof(struct entry, body) == ENTRY_BODY, "");
_Static_assert(offsetof(struct entry, landing) == ENTRY_ARRIVALS, "");
_Static_assert(offsetof(struct entry, pad) == ENTRY_ARRIVALS + 4, "");
_Static_assert(sizeof(struct entry) == ENTRY_SIZE, "");

/* ---- exits ---- */

static uint64_t address_of(const struct cache *cache, uint32_t offset)
{
	return (uint64_t)cache->lookup.code + offset;
}

static void emit_stub(struct cache *cache, uint32_t id)
{
	struct builder b = {.cache = cache, .at = cache->lookup.code + stub_of(cache, id)};

	emit8(&b, segment_prefix);
	EMIT(&b, 0xc7, 0x04, 0x25, THREAD_EXIT, 0, 0, 0);
	emit32(&b, id);
	EMIT(&b, 0xe9);
	emit_relative(&b, address_of(cache, cache->leave));
}

static uint32_t new_target(struct cache *cache, const struct target *target)
{
	uint32_t id = cache->free_targets;

	if (id) {
		cache->free_targets = cache->targets[id].exits;
	} else {
		id = cache->nr_targets++;
		emit_stub(cache, id);
	}
	cache->targets[id] = *target;
	return id;
}

/*
 * Nothing leads to the target any more. It can be another one, unless somebody is on his way
 * through its stub.
 */
static void free_target(struct cache *cache, uint32_t id)
{
	if (cache_entered(cache))
		return;
	cache->targets[id] = (struct target){.exits = cache->free_targets};
	cache->free_targets = id;
}

/* One store: other threads execute what is there before or after it. */
static void patch(struct cache *cache, uint32_t site, uint32_t to)
{
	const uint32_t relative = to - (site + 4);

	__asm__ volatile("movl %1, %0"
			 : "=m"(*(uint32_t(*)[1])(cache->lookup.code + site))
			 : "r"(relative)
			 : "memory");
}

/* What exits to @pc lead to, an entry or a target, which is made if there is neither. */
static uint32_t place_for(struct cache *cache, uint64_t pc)
{
	uint64_t *slot = hash_slot_for(cache, pc);
	uint32_t place = slot_place(*slot);

	if (place & SLOT_TARGET || cache->lookup.entries[place].body)
		return place;
	place = SLOT_TARGET | new_target(cache, &(struct target){.pc = pc, .kind = EXIT_LINK});
	hash_fill(cache, slot, pc, place);
	return place;
}

/* The exits that lead to a place, and where that is. */
static uint32_t *exits_of(const struct cache *cache, uint32_t place, uint32_t *at)
{
	struct entry *entry = &cache->lookup.entries[place];

	if (place & SLOT_TARGET) {
		*at = stub_of(cache, place & ~SLOT_TARGET);
		return &cache->targets[place & ~SLOT_TARGET].exits;
	}
	*at = entry->body;
	return &entry->exits;
}

/* If @place has no code yet, what will be made there has to take who has gone as far. */
static void wait_there(struct cache *cache, uint32_t place, uint16_t gone)
{
	struct target *target = &cache->targets[place & ~SLOT_TARGET];

	if (place & SLOT_TARGET && target->gone < gone)
		target->gone = gone;
}

/* The entry of @f for @pc that has code, or 0. */
static uint32_t own_entry(const struct cache *cache, const struct fragment *f, uint64_t pc)
{
	for (uint32_t id = f->entries; id < f->entries + f->nr_entries; id++)
		if (cache->lookup.entries[id].pc == pc && cache->lookup.entries[id].body)
			return id;
	return 0;
}

static void add_exit(struct cache *cache, const struct fragment *f, const struct draft_exit *draft)
{
	const uint64_t pc = draft->to.pc;
	uint32_t id, place, at, *first;

	if (draft->to.kind != EXIT_LINK) {
		patch(cache, draft->site, stub_of(cache, new_target(cache, &draft->to)));
		return;
	}
	place = own_entry(cache, f, pc);
	if (!place)
		place = place_for(cache, pc);
	wait_there(cache, place, draft->to.gone);
	first = exits_of(cache, place, &at);
	id = cache->nr_exits++;
	cache->exits[id] = (struct exit){.site = draft->site, .next = *first};
	*first = id;
	patch(cache, draft->site, at);
}

/* All exits of @from lead to @place now. */
static void move_exits(struct cache *cache, uint32_t *from, uint32_t place)
{
	uint32_t at, *to = exits_of(cache, place, &at), last = 0;

	for (uint32_t id = *from; id; id = cache->exits[id].next) {
		patch(cache, cache->exits[id].site, at);
		last = id;
	}
	if (!last)
		return;
	cache->exits[last].next = *to;
	*to = *from;
	*from = 0;
}

/* ---- pages ---- */

/* Where that of @number is looked for first. Pages that lie side by side do so here, too. */
static uint64_t page_slot(uint64_t number)
{
	return (hash_of(number >> 7) << 7) + number;
}

struct page *cache_find_page(const struct cache *cache, uint64_t number)
{
	for (uint64_t i = page_slot(number);; i++) {
		struct page *page = &cache->pages[i & (PAGE_SLOTS - 1)];

		if (page->number == number || !page->number)
			return page;
	}
}

/* Few of them are ever used, and they lie where the hash has them. */
static void populate_page(struct cache *cache, uint64_t number)
{
	const uint64_t slot = (uint64_t)&cache->pages[page_slot(number) & (PAGE_SLOTS - 1)];
	const uint64_t at = (slot - (uint64_t)cache->pages) / PAGE_SIZE;
	uint64_t *there = &cache->pages_there[at / 64];

	if (*there >> at % 64 & 1)
		return;
	*there |= 1UL << at % 64;
	memory_populate(slot, slot + sizeof(struct page));
}

static void add_to_page(struct cache *cache, struct fragment *f, unsigned int which)
{
	const uint64_t number = kept_page(cache, f, which);
	struct page *page;

	populate_page(cache, number);
	page = cache_find_page(cache, number);

	if (!page->number) {
		page->number = number;
		cache->nr_pages++;
	}
	*kept_page_next(cache, f, which) = page->fragments;
	page->fragments = f - cache->fragments;
}

static void forget_page(struct cache *cache, struct page *page)
{
	uint32_t next;

	for (uint32_t i = page->fragments; i; i = next) {
		struct fragment *f = &cache->fragments[i];

		next = *kept_page_next(cache, f, kept_which_page(cache, f, page->number));
		cache_kill(cache, f);
	}
	page->fragments = 0;
}

void cache_written(struct cache *cache, uint64_t number)
{
	struct page *page = cache_find_page(cache, number);

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
	return cache_find_page(cache, page)->written >= HOT_WRITES;
}

void cache_forget_pages(struct cache *cache, uint64_t first, uint64_t last)
{
	if (last - first < cache->nr_pages) {
		for (uint64_t number = first; number <= last; number++)
			forget_page(cache, cache_find_page(cache, number));
		return;
	}
	for (unsigned int i = 0; i < PAGE_SLOTS; i++)
		if (cache->pages[i].number >= first && cache->pages[i].number <= last)
			forget_page(cache, &cache->pages[i]);
}

void cache_forget_unless(struct cache *cache, bool (*kept)(uint64_t page))
{
	for (unsigned int i = 0; i < PAGE_SLOTS; i++) {
		struct page *page = &cache->pages[i];

		if (!page->number || kept(page->number))
			continue;
		forget_page(cache, page);
		page->written = 0;
	}
}

/* ---- fragments ---- */

bool cache_room(const struct cache *cache)
{
	return cache->nr_fragments < MAX_FRAGMENTS &&
	       cache->nr_entries + FRAGMENT_ENTRIES <= MAX_ENTRIES &&
	       cache->nr_exits + FRAGMENT_EXITS <= MAX_EXITS &&
	       /* An entry that dies may need one. */
	       cache->nr_targets + FRAGMENT_EXITS + cache->nr_entries + FRAGMENT_ENTRIES <=
		       MAX_TARGETS &&
	       cache->nr_pages + KEPT_PAGES <= PAGE_SLOTS * 3 / 4 &&
	       cache->nr_kept + KEPT_BYTES <= KEPT_SIZE &&
	       hash_room(cache, FRAGMENT_ENTRIES + FRAGMENT_EXITS) &&
	       cache->blocks.next + MAX_BLOCKS_OF_FRAGMENT <= BLOCKS_SIZE &&
	       compiled_room(&cache->blocks.compiled, MAX_COMPILED_OF_FRAGMENT) &&
	       cache->code_next + FRAGMENT_BYTES + SLACK <= STUBS;
}

/* The entry has code from now on. */
static void insert(struct cache *cache, uint32_t id)
{
	struct entry *entry = &cache->lookup.entries[id];
	uint64_t *slot = hash_slot_for(cache, entry->pc);
	const uint32_t before = slot_place(*slot);

	hash_fill(cache, slot, entry->pc, id);
	if (before & SLOT_TARGET) {
		move_exits(cache, &cache->targets[before & ~SLOT_TARGET].exits, id);
		free_target(cache, before & ~SLOT_TARGET);
	}
}

void cache_publish_entry(struct cache *cache, uint32_t id)
{
	struct entry *entry = &cache->lookup.entries[id];

	if (entry->body) {
		insert(cache, id);
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

/* Once an entry is in the hash other threads may come by it, so all exits lead somewhere before. */
void cache_publish(struct cache *cache, struct fragment *f, const struct draft_exit *exits,
		   unsigned int nr_exits)
{
	for (unsigned int i = 0; i < nr_exits; i++)
		add_exit(cache, f, &exits[i]);
	for (unsigned int i = 0; i <= f->other_pages; i++)
		add_to_page(cache, f, i);
	for (unsigned int i = 0; i < f->nr_entries; i++)
		cache_publish_entry(cache, f->entries + i);
}

/* The order matters to whoever looks the entry up meanwhile: see enter.S. */
void cache_hide(struct cache *cache, struct entry *entry, const struct fragment *f)
{
	__atomic_exchange_n(&entry->body, 0, __ATOMIC_SEQ_CST);
	tables_withdraw(cache, TABLE_JUMPS, entry->pc, f, entry->landing);
	tables_withdraw(cache, TABLE_RETURNS, entry->pc, f, entry->pad);
}

static void kill_entry(struct cache *cache, struct entry *entry, const struct fragment *f)
{
	struct entry *known;

	cache_hide(cache, entry, f);
	cache->meta->withheld[entry - cache->lookup.entries] = 0;
	if (entry->exits) {
		const uint32_t place = place_for(cache, entry->pc);

		wait_there(cache, place,
			   cache_level(cache, (uint32_t)(entry - cache->lookup.entries)));
		move_exits(cache, &entry->exits, place);
	}

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

		if (fragment_end(&cache->fragments[middle]) <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < cache->nr_fragments && cache->fragments[low].start <= offset
		       ? &cache->fragments[low]
		       : NULL;
}

/* ---- blocks of traces ---- */

struct block *cache_block(struct cache *cache)
{
	return (struct block *)(cache->blocks.memory + cache->blocks.next);
}

uint64_t cache_block_done(struct cache *cache, const struct block *block)
{
	cache->blocks.next += sizeof(*block) + block->nr_accesses * sizeof(*block->accesses);
	return model_compile(&cache->blocks.compiled, block);
}

/* ---- beginning, and beginning anew ---- */

/* What code adds to vector registers, or compares them with, lies before it. */
static uint32_t constants_bytes(const struct cache *cache)
{
	if (cache_traces(cache))
		return RECORD_SIZES_BYTES;
	return cache->lookup.vectors ? AMOUNTS_BYTES + SIGNS_BYTES : 0;
}

/* Indices of 0 are none. */
static void reset(struct cache *cache)
{
	cache->blocks.next = 0;
	cache->blocks.compiled = (struct compiled){
		.hot = cache->blocks.memory + BLOCKS_SIZE,
		.cold = cache->blocks.memory + TRANSLATE_BLOCKS_SIZE,
	};
	cache->code_next = WAYS_OUT + constants_bytes(cache);
	cache->nr_fragments = cache->nr_entries = cache->nr_kept = 1;
	cache->nr_targets = FIRST_EXIT;
	cache->nr_exits = 1;
	cache->free_targets = 0;
	cache->nr_pages = 0;
	__builtin_memset(cache->each, 0, sizeof(cache->each));
	cache->meta->head = (struct slots_head){.mask = FIRST_SLOTS - 1};
}

/* What follows from what it does. */
static void follow(struct cache *cache)
{
	cache->lookup.vectors = cache_traces(cache) ? 1 : count_registers(&cache->does);
	cache->lookup.home =
		cache_traces(cache) ? THREAD_TRACE : THREAD_EVENTS + CORE_TASK_COUNTERS;
	cache->lookup.looks = count_looked(cache) != 0;
}

/* What lies before its fragments, in zeroed memory. */
static void begin_code(struct cache *cache)
{
	struct builder b = {.cache = cache, .at = cache->lookup.code};

	emit_ways_out(&b);
	count_init(cache);
	record_init(cache);
}

void cache_init(struct cache *cache, const struct translate_memory *memory)
{
	cache->meta = memory->meta;
	cache->fragments = cache->meta->fragments;
	cache->targets = cache->meta->targets;
	cache->exits = cache->meta->exits;
	cache->levels = cache->meta->levels;
	cache->pages = cache->meta->pages;
	cache->kept = cache->meta->kept;
	cache->stubs = STUBS;
	cache->lookup.slots = cache->meta->slots;
	cache->lookup.entries = cache->meta->entries;
	cache->lookup.code = memory->code;
	cache->blocks.memory = memory->blocks;
	memory_populate((uint64_t)memory->code, (uint64_t)memory->code + PAGE_SIZE);
	memory_populate((uint64_t)&cache->meta->head, (uint64_t)(&cache->meta->head + 1));
	follow(cache);
	reset(cache);
	begin_code(cache);
	tables_init(cache, memory->tables);
}

void cache_begin(struct cache *cache)
{
	memory_populate((uint64_t)&cache->meta->head,
			(uint64_t)&cache->meta->slots[FIRST_SLOTS + MORE_SLOTS]);
}

void cache_disconnect(struct cache *cache)
{
	for (uint32_t id = 1; id < cache->nr_entries; id++) {
		struct entry *entry = &cache->lookup.entries[id];

		entry->body = 0;
		cache->meta->withheld[id] = 0;
		if (entry->exits)
			move_exits(cache, &entry->exits, place_for(cache, entry->pc));
	}
	tables_clear(cache);
}

void cache_empty(struct cache *cache)
{
	const uint64_t slots = cache->meta->head.mask + 1UL + MORE_SLOTS;

	memory_populate((uint64_t)cache->pages, (uint64_t)(cache->pages + PAGE_SLOTS));
	__builtin_memset(cache->meta->slots, 0, slots * sizeof(uint64_t));
	__builtin_memset(cache->pages, 0, sizeof(cache->meta->pages));
	reset(cache);
	tables_clear(cache);
}

void cache_become(struct cache *cache, const struct instrumentation *does)
{
	cache->does = *does;
	follow(cache);
	reset(cache);
	memory_populate((uint64_t)cache->lookup.code,
			(uint64_t)cache->lookup.code + cache->code_next);
	__builtin_memset(cache->lookup.code, 0, cache->code_next);
	begin_code(cache);
}
