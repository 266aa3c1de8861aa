// SPDX-License-Identifier: MIT
#include "runtime/translate/snapshot.h"

#include <stddef.h>

#include "runtime/translate/cache_memory.h"
#include "runtime/translate/tables.h"

static uint8_t *area(const struct cache *cache, enum snapshot_area which)
{
	switch (which) {
	case SNAPSHOT_CODE:
		return cache->lookup.code;
	case SNAPSHOT_TABLES:
		return (uint8_t *)cache->lookup.tables;
	case SNAPSHOT_META:
		return (uint8_t *)cache->meta;
	}
	return NULL;
}

static void add(const struct cache *cache, struct snapshot *s, enum snapshot_area which,
		const void *from, uint64_t size)
{
	const uint64_t start = (uint64_t)((const uint8_t *)from - area(cache, which));
	const uint64_t first = start & -(uint64_t)PAGE_SIZE;

	if (!size)
		return;
	s->pieces[s->nr_pieces++] = (struct snapshot_piece){
		.area = which,
		.from = first,
		.size = (start + size - first + PAGE_SIZE - 1) & -(uint64_t)PAGE_SIZE,
	};
}

static void add_tables(const struct cache *cache, struct snapshot *s)
{
	const struct tables *t = tables(cache);

	add(cache, s, SNAPSHOT_TABLES, t, offsetof(struct tables, places));
	for (enum table which = TABLE_JUMPS; which <= TABLE_RETURNS; which++) {
		add(cache, s, SNAPSHOT_TABLES, t->places[which],
		    tables_size(cache, which) * sizeof(uint64_t));
		s->pieces[s->nr_pieces - 1].instead = tables_way_out(cache, which);
	}
}

#define ADD_ARRAY(cache, s, array, nr)                                                             \
	add(cache, s, SNAPSHOT_META, (cache)->array, (nr) * sizeof(*(cache)->array))

static void add_meta(const struct cache *cache, struct snapshot *s)
{
	const uint64_t slots = cache->meta->head.mask + 1UL + MORE_SLOTS;

	ADD_ARRAY(cache, s, fragments, s->nr_fragments);
	add(cache, s, SNAPSHOT_META, cache->lookup.entries, s->nr_entries * sizeof(struct entry));
	if (cache->lookup.looks)
		ADD_ARRAY(cache, s, levels, s->nr_entries);
	add(cache, s, SNAPSHOT_META, cache->meta->withheld,
	    s->nr_entries * sizeof(*cache->meta->withheld));
	ADD_ARRAY(cache, s, targets, s->nr_targets);
	ADD_ARRAY(cache, s, exits, s->nr_exits);
	ADD_ARRAY(cache, s, pages, PAGE_SLOTS);
	ADD_ARRAY(cache, s, kept, s->nr_kept);
	add(cache, s, SNAPSHOT_META, &cache->meta->head,
	    sizeof(cache->meta->head) + slots * sizeof(*cache->meta->slots));
}

void snapshot_take(const struct cache *cache, struct snapshot *s)
{
	*s = (struct snapshot){
		.does = cache->does,
		.nr_fragments = cache->nr_fragments,
		.nr_entries = cache->nr_entries,
		.nr_targets = cache->nr_targets,
		.nr_exits = cache->nr_exits,
		.nr_pages = cache->nr_pages,
		.nr_kept = cache->nr_kept,
		.free_targets = cache->free_targets,
		.code_next = cache->code_next,
	};
	add(cache, s, SNAPSHOT_CODE, cache->lookup.code, s->code_next);
	add(cache, s, SNAPSHOT_CODE, cache->lookup.code + cache->stubs,
	    (uint64_t)s->nr_targets * STUB_BYTES);
	add_tables(cache, s);
	add_meta(cache, s);
}

void *snapshot_place(const struct cache *cache, const struct snapshot_piece *piece)
{
	return area(cache, piece->area) + piece->from;
}

void snapshot_adopt(struct cache *cache, const struct snapshot *s)
{
	cache->nr_fragments = s->nr_fragments;
	cache->nr_entries = s->nr_entries;
	cache->nr_targets = s->nr_targets;
	cache->nr_exits = s->nr_exits;
	cache->nr_pages = s->nr_pages;
	cache->nr_kept = s->nr_kept;
	cache->free_targets = s->free_targets;
	cache->code_next = s->code_next;
}
