/* SPDX-License-Identifier: MIT */
/*
 * How the memory of a code cache is laid out:
 *
 *	code	ways out | constants | fragments ... | stubs, by number of target
 *	meta	fragments | entries | their levels | what is withheld of them | targets | exits | pages |
 *		kept.h | the hash
 *	blocks	descriptions | their code, from both ends
 */
#ifndef RUNTIME_TRANSLATE_CACHE_MEMORY_H
#define RUNTIME_TRANSLATE_CACHE_MEMORY_H

#include "runtime/translate/cache.h"

enum {
	MAX_FRAGMENTS = 256 << 10,
	MAX_ENTRIES = 512 << 10,
	MAX_TARGETS = 1 << 20,
	MAX_EXITS = 1 << 20,
	PAGE_SLOTS = 64 << 10,
	KEPT_SIZE = 10 << 20,
	FIRST_SLOTS = 8 << 10,
	LAST_SLOTS = 1 << 20,
	MORE_SLOTS = 512, /* behind the last one where anybody begins to look; the last is free */
};

/* How much of the memory for blocks is for what tells of them; the rest is for their code. */
#define BLOCKS_SIZE (TRANSLATE_BLOCKS_SIZE / 8)

#define STUBS (TRANSLATE_CODE_SIZE - MAX_TARGETS * STUB_BYTES)

/* A page that code was translated from. */
struct page {
	uint64_t number; /* 0: free */
	uint32_t fragments;
	uint32_t written; /* how often in a row, */
	uint32_t last;	  /* the last time when there were so many fragments */
};

struct meta {
	struct fragment fragments[MAX_FRAGMENTS];
	struct entry entries[MAX_ENTRIES];
	uint16_t levels[MAX_ENTRIES];
	uint32_t withheld[MAX_ENTRIES]; /* their bodies, or PAD_ALONE: cache_withhold() */
	struct target targets[MAX_TARGETS];
	struct exit exits[MAX_EXITS];
	_Alignas(PAGE_SIZE) struct page pages[PAGE_SLOTS];
	uint8_t kept[KEPT_SIZE];
	struct slots_head head;
	uint64_t slots[LAST_SLOTS + MORE_SLOTS];
	uint64_t lost; /* what found no slot, and is not found */
};

#endif
