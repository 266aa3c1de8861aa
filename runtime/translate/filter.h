/* SPDX-License-Identifier: MIT */
/* Code that comes out before instructions that may touch what is watched: see filter.c. */
#ifndef RUNTIME_TRANSLATE_FILTER_H
#define RUNTIME_TRANSLATE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct builder;

/* Operands of a fragment that are compared. */
enum { FILTER_SITES = 96 };

struct filter_site {
	uint8_t *jump;	  /* behind the rel32 of the way out */
	uint64_t address; /* where the program is before the instruction, and rcx in its slot */
};

/* Whether the processor has what filters are made of. */
bool filter_possible(void);

/* Before the instruction at hand. */
void filter_before(struct builder *b);

/* Behind the fragment's end. */
void filter_late(struct builder *b);

/* Whether there is room for one more instruction, and what it and filter_late() may take. */
bool filter_room(const struct builder *b);
unsigned int filter_bytes(const struct builder *b);

#endif
