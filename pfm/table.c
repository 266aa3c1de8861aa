// SPDX-License-Identifier: MIT
#include "pfm/table.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* As data/compile.py computes them: these two must change together. */
enum { WHERE_PMU = 0x20000, WHERE_MASKS = 0x10000 };

/* Eight characters at once, the small letters of ASCII made large. */
static uint64_t to_upper(uint64_t word)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t low = word & 0x7f * each;
	uint64_t from_a = low + (0x80 - 'a') * each, past_z = low + (0x7f - 'z') * each;
	uint64_t small = (from_a ^ past_z) & ~word & 0x80 * each;

	return word - (small >> 2);
}

/* Up to eight characters, the first in the lowest bits, zeros behind the last. */
static uint64_t load(const char *name, size_t len)
{
	uint64_t word = 0;

	if (len >= sizeof(word)) {
		memcpy(&word, name, sizeof(word));
		return le64toh(word);
	}
	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)(unsigned char)name[i] << (8 * i);
	return word;
}

static uint64_t hash(uint32_t where, const char *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325 ^ where * 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < len; i += 8) {
		h = (h ^ to_upper(load(name + i, len - i))) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	h *= 0x9e3779b97f4a7c15;
	return h ^ h >> 29;
}

static uint32_t scale(uint32_t x, uint32_t n)
{
	return (uint64_t)x * n >> 32;
}

static unsigned int find(uint32_t where, const char *name, size_t len)
{
	const struct table *t = &tly_pfm_table;
	const uint16_t *buckets = table_at(t->buckets), *slots = table_at(t->slots);
	uint64_t h = hash(where, name, len);
	uint32_t displaced = (uint32_t)h ^ buckets[scale(h >> 32, t->n_buckets)] * 0x9e3779b1U;

	displaced = (displaced ^ displaced >> 15) * 0x85ebca6bU;
	return slots[scale(displaced, t->n_slots)];
}

static bool is(uint32_t string, const char *name, size_t len)
{
	const char *s = table_string(string);

	return strncasecmp(s, name, len) == 0 && s[len] == '\0';
}

const struct table_pmu *tly_pfm_table_find_pmu(const char *name, size_t len)
{
	unsigned int i = find(WHERE_PMU, name, len);
	const struct table_pmu *pmu = table_pmus() + i;

	return i < tly_pfm_table.n_pmus && is(pmu->name, name, len) ? pmu : NULL;
}

int tly_pfm_table_find_event(const struct table_pmu *pmu, const char *name, size_t len)
{
	unsigned int i = find(pmu - table_pmus(), name, len) - pmu->first_event;

	return i < pmu->n_events && is(table_event(pmu, i)->name, name, len) ? (int)i : -1;
}

int tly_pfm_table_find_mask(const struct table_event *event, const char *name, size_t len)
{
	unsigned int i = find(WHERE_MASKS + event->first_mask, name, len) - event->first_mask;

	return i < event->n_masks && is(table_masks(event)[i].name, name, len) ? (int)i : -1;
}
