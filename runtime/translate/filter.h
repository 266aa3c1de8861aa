/* SPDX-License-Identifier: MIT */
/* Code that comes out before instructions that may touch what is watched: see filter.c. */
#ifndef RUNTIME_TRANSLATE_FILTER_H
#define RUNTIME_TRANSLATE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct builder;
struct cache;

/* Operands of a fragment that are compared. */
enum { FILTER_SITES = 96 };

/* What need not be compared again: from so far behind what a register has at the moment, 128
 * bytes. */
struct filter_known {
	uint16_t registers;
	int32_t from[16];
};

struct filter_site {
	uint8_t *jump;	  /* behind the rel32 of the way out */
	uint64_t address; /* where the program is before the instruction, and rcx in its slot */
};

/* Whether the processor has what filters are made of. */
bool filter_possible(void);

/* Where the instruction at hand may be come to by others, nothing is known. Else they may not. */
void filter_entry(struct builder *b);
bool filter_may_enter(const struct builder *b);

/* Around the instruction at hand. */
void filter_before(struct builder *b);
void filter_after(struct builder *b);

/* At the beginning of a fragment, of its flags. And: what the code at @offset, where the program
 * is at @pc, has let through has touched nothing. With the translator locked. */
unsigned int filter_flags(struct cache *cache, uint64_t pc);
void filter_was_wrong(struct cache *cache, uint32_t offset, uint64_t pc);

/* The instruction at hand may change the base of FS. */
void filter_forget_fs(struct builder *b);

/* Behind the fragment's end. */
void filter_late(struct builder *b);

/* Whether there is room for one more instruction, and what it and filter_late() may take. */
bool filter_room(const struct builder *b);
unsigned int filter_bytes(const struct builder *b);

#endif
