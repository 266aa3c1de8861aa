/* SPDX-License-Identifier: MIT */
/*
 * How it is looked whether a counter in a vector register has got to 0 (count_near.c), for count.c;
 * and what that has for it.
 */
#ifndef RUNTIME_TRANSLATE_COUNT_NEAR_H
#define RUNTIME_TRANSLATE_COUNT_NEAR_H

#include "runtime/translate/build.h"
#include "runtime/translate/count.h"

/* What entries take that who is there first would not need, for those who come from elsewhere. */
enum { COUNT_SLACK = 48, COUNT_SLACK_RETURN = 4 };

/* ---- count_near.c ---- */

/* Here: is any counter at 0? */
void count_look(struct builder *b);

/* Whether the fragment keeps account of how far the program has gone since it was looked. A
 * rehearsal has the marks. */
bool count_keeps_near(const struct builder *b);

/* b->pc is to be an entry: for all who want to go there. */
void count_meet(struct builder *b, unsigned int slack);

/* Whether who goes to @target after @more instructions has to look before. */
bool count_too_far(const struct builder *b, uint64_t target, unsigned int more);

/* Whether this is the place to look for where the instruction at hand leads, */
bool count_leads_too_far(const struct builder *b);

/* or wherever it leads. */
bool count_must_look(const struct builder *b);

/*
 * Or where a jcc leads that comes soon: here flags are dead, and there they are not. It is marked;
 * also as entered, which has all added before, if a look that does not see that were no use.
 */
void count_look_early(struct builder *b);

/* Behind the fragment's end: the ways out to who waits. */
void count_near_exits(struct builder *b);

/* What a look may emit, and what those have to; whether there is room for one more instruction's.
 */
unsigned int count_look_bytes(const struct count *c);
unsigned int count_near_bytes(const struct builder *b);
bool count_near_room(const struct count *c);

/* ---- count.c ---- */

enum { COUNT_ADD_BYTES = 9 };

/* Adds @what, which is left; the program is at @pc meanwhile. */
void count_emit(struct builder *b, struct counts what, uint64_t pc);

/* Whether the next instruction is a jcc of the same block, by looking at bytes that are there. */
bool count_jcc_follows(const struct builder *b, uint64_t *target);

/* Of the instruction at hand. */
static inline bool count_is_marked(const struct builder *b, enum count_mark mark)
{
	return b->marks[mark] >> b->nr_insns & 1;
}

static inline void count_set_mark(struct builder *b, enum count_mark mark)
{
	b->marks[mark] |= 1UL << b->nr_insns;
}

#endif
