// SPDX-License-Identifier: MIT
#include "runtime/translate/tables.h"

#include <cpuid.h>

static enum table_index index_kind;
static bool quick_loop, chosen;

/* 0: not one of AMD's. */
static unsigned int amd_family(void)
{
	unsigned int a, b, c, d;

	__cpuid(0, a, b, c, d);
	if (b != signature_AMD_ebx && b != 0x6f677948 /* Hygo */)
		return 0;
	__cpuid(1, a, b, c, d);
	return (a >> 8 & 0xf) + (a >> 20 & 0xff);
}

/* AMD's processors before family 19h have a pext that takes dozens of cycles. */
static enum table_index choose_index(void)
{
	const unsigned int amd = amd_family();
	unsigned int a, b, c, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_BMI2))
		return INDEX_MOVZX;
	return !amd || amd >= 0x19 ? INDEX_PEXT : INDEX_RORX;
}

void tables_choose(enum table_index index, bool quick)
{
	index_kind = index;
	quick_loop = quick;
	chosen = true;
}

enum table_index tables_index(void)
{
	return index_kind;
}

bool tables_quick_loop(void)
{
	return quick_loop;
}

static uint64_t address_of(const struct cache *cache, uint32_t offset)
{
	return (uint64_t)cache->lookup.code + offset;
}

uint64_t tables_way_out(const struct cache *cache, enum table table)
{
	return address_of(cache, table == TABLE_JUMPS ? cache->jump_miss : cache->return_miss);
}

static uint32_t shift_of(const struct cache *cache, enum table table)
{
	return table == TABLE_JUMPS ? cache->lookup.jump_shift : 0;
}

uint64_t tables_size(const struct cache *cache, enum table table)
{
	return (tables(cache)->masks[table] >> shift_of(cache, table)) + 1UL;
}

static void fill(struct cache *cache, enum table table, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		tables(cache)->places[table][i] = tables_way_out(cache, table);
}

static void resize(struct cache *cache, enum table table, unsigned int bits)
{
	uint64_t *places = tables(cache)->places[table];

	memory_populate((uint64_t)places, (uint64_t)(places + (1UL << bits)));
	fill(cache, table, 0, 1UL << bits);
	__atomic_store_n(&tables(cache)->masks[table], ((1u << bits) - 1) << shift_of(cache, table),
			 __ATOMIC_RELEASE);
}

void tables_clear(struct cache *cache)
{
	for (enum table table = TABLE_JUMPS; table <= TABLE_RETURNS; table++) {
		fill(cache, table, 0, tables_size(cache, table));
		tables(cache)->used[table] = 0;
	}
}

void tables_init(struct cache *cache, struct tables *memory)
{
	if (!chosen)
		tables_choose(choose_index(), amd_family() >= 0x15);
	cache->lookup.tables = memory;
	memory_populate((uint64_t)memory, (uint64_t)memory->places);
	cache->lookup.jump_shift = index_kind == INDEX_MOVZX ? 0 : 4;
	for (enum table table = TABLE_JUMPS; table <= TABLE_RETURNS; table++)
		resize(cache, table,
		       index_kind == INDEX_PEXT ? TABLE_FIRST_BITS : TABLE_FIXED_BITS);
}

static uint32_t arrival_of(enum table table, const struct entry *entry)
{
	return table == TABLE_JUMPS ? entry->landing : entry->pad;
}

static void put(struct cache *cache, enum table table, const struct entry *entry)
{
	__atomic_store_n(table_place(cache, table, entry->pc),
			 address_of(cache, arrival_of(table, entry)), __ATOMIC_RELEASE);
}

/*
 * So empty that candidates hardly ever take each other's places. Of small tables only half as much
 * is asked: who has few candidates does not run for long, and pays for each page that is touched.
 */
static bool is_full(const struct cache *cache, enum table table)
{
	const uint64_t size = tables_size(cache, table);
	const unsigned int places = size > 1u << 13 ? 32 : 16;

	return (uint64_t)places * tables(cache)->used[table] > size;
}

/*
 * Other threads go on meanwhile: what they find is a candidate or a way out, by the old mask or the
 * new one, and either is verified.
 */
static void grow(struct cache *cache, enum table table)
{
	const unsigned int bits = 63 - __builtin_clzl(tables_size(cache, table));

	if (index_kind != INDEX_PEXT || bits >= TABLE_LAST_BITS)
		return;
	resize(cache, table, bits + 2 > TABLE_LAST_BITS ? TABLE_LAST_BITS : bits + 2);
	for (uint32_t i = 1; i < cache->nr_entries; i++) {
		const struct entry *entry = &cache->lookup.entries[i];

		if (entry->body && arrival_of(table, entry))
			put(cache, table, entry);
	}
}

void tables_set(struct cache *cache, enum table table, const struct entry *entry)
{
	if (*table_place(cache, table, entry->pc) == tables_way_out(cache, table)) {
		tables(cache)->used[table]++;
		if (is_full(cache, table))
			grow(cache, table);
	}
	put(cache, table, entry);
}

void tables_withdraw(struct cache *cache, enum table table, uint64_t pc, const struct fragment *f,
		     uint32_t arrival)
{
	uint64_t *place = table_place(cache, table, pc);
	const uint64_t offset = *place - (uint64_t)cache->lookup.code;

	if ((offset >= f->start && offset < fragment_end(f)) || (arrival && offset == arrival))
		__atomic_store_n(place, tables_way_out(cache, table), __ATOMIC_RELEASE);
}
