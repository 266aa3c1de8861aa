/* SPDX-License-Identifier: MIT */
/*
 * How emitted code counts what the program does, exactly: see count.c.
 */
#ifndef RUNTIME_TRANSLATE_COUNT_H
#define RUNTIME_TRANSLATE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/translate/due.h"
#include "runtime/translate/translate.h"

struct builder;
struct cache;
struct state;
struct instrumentation;

/* Kinds of events that are counted in vector registers, by pairs: 15 and down. */
#define COUNT_VECTOR_KINDS (CORE_STORES + 1)
#define COUNT_PAIRS	   ((COUNT_VECTOR_KINDS + 1) / 2)

/* Pairs of amounts that can be added, at the beginning of the cache. */
enum { AMOUNTS = 128, AMOUNTS_OF_SECOND = 32, AMOUNTS_BYTES = 16 * AMOUNTS * AMOUNTS_OF_SECOND };

/*
 * Of a fragment: at which of its instructions what is at hand depends on more than the program's
 * code. The code that checks counters has decisions of its own in the first word.
 */
enum { COUNT_INSNS = 64 };

enum count_mark {
	MARK_ENTERED, /* it can be reached otherwise than from the one before */
	MARK_AHEAD,   /* what is added before it is for the jcc behind it, too, */
	MARK_BACK,    /* which leads back; */
	MARK_LOOKS,   /* before it, it is looked whether a counter has got to 0 */
	MARK_FREE,    /* and flags are dead there */
	COUNT_MARKS,
};

/* Behind the amounts: for each kind, the sign of its counter. */
enum { SIGNS_BYTES = 16 * COUNT_VECTOR_KINDS };

/* Addresses where the fragment's own branches lead. */
enum { COUNT_TARGETS = 32 };

/* Ways out of a fragment to who waits for a counter. */
enum { COUNT_NEAR_MAX = 32 };
struct near {
	uint8_t *site; /* behind its rel32 */
	uint64_t pc;
	uint8_t how;	    /* enum how */
	bool behind;	    /* something of the fragment has been executed */
	struct counts left; /* then */
};

struct count {
	uint64_t kinds;		    /* of enum core_kind, that this fragment counts */
	bool traced;		    /* the model counts the others */
	uint64_t mask[COUNT_WORDS]; /* of these: all bits of their places in struct counts, */
	uint8_t pairs;		    /* and which pairs they are, as bits */
	bool apart;		    /* what is marked is no part of what is around it */
	struct counts left; /* before the instruction at hand: done and not added yet. Below 0: the
			     * other way round */
	struct counts insn; /* what that one does */
	unsigned int nr_targets;
	uint64_t targets[COUNT_TARGETS];
	uint64_t some_targets; /* a bit for each, by its lowest bits */
	uint64_t checked;      /* kinds that somebody waits for */
	unsigned int gone;     /* instructions since it was looked, at most */
	unsigned int nr_near;
	struct due due; /* how it is done in small steps */
};

/* Puts down what code will compare with. */
void count_init(struct cache *cache);

/* Kinds at whose counters the code of the cache looks now and then. */
uint64_t count_looked(const struct cache *cache);

/* How many vector registers code has that does that. */
unsigned int count_registers(const struct instrumentation *does);

/* The code of b->cache counts, and @late has room for LATE_MAX. */
void count_start(struct builder *b, struct late *late);

/* One of the fragment's branches leads to @target. */
void count_target(struct builder *b, uint64_t target);

/* Before anything of the instruction at hand: what could be an entry is made one. */
void count_entry(struct builder *b);

/* Whether it can be one here, and how far who enters may have gone since it was looked. */
bool count_may_enter(const struct builder *b);
unsigned int count_level(const struct builder *b);

/* A return comes to b->pc. */
void count_returned(struct builder *b);

/* Around each instruction. */
void count_before(struct builder *b);
void count_after(struct builder *b);

/* The most that these and count_entry() may emit. */
unsigned int count_before_bytes(const struct builder *b);
unsigned int count_bytes(const struct builder *b);

/* The instruction at hand leaves the fragment. */
void count_leave(struct builder *b);

/* No other follows; the fragment may go on elsewhere. */
void count_close(struct builder *b, bool goes_on);

/* Whether it matters which way a condition goes; then before it jumps to its target. */
bool count_tells_taken(const struct builder *b);
void count_taken(struct builder *b, uint64_t target);

/* One whose target is what follows is taken neither way. */
bool count_is_taken(const struct builder *b, uint64_t target);

/* Behind the fragment's end: of a call that does @counts, which have been added. */
void count_thunk(struct builder *b, const struct counts *counts);
void count_late(struct builder *b);

/* Whether there is room for what one more instruction may need. */
bool count_room(const struct builder *b);

/* What state.counts is just now. */
struct counts count_state(const struct builder *b, const struct state *state);

/* What an instruction does, of the kinds that are counted. */
struct counts count_insn(const struct count *c, const struct insn *insn);

/* A jcc, as if it were not taken. */
struct counts count_jcc(const struct count *c);

/* Of floating point arithmetic. */
void count_floating(struct counts *counts, const struct insn *insn);

/* Where the model counts the rest: before the copy of an instruction. */
void count_traced(struct builder *b);

/* Eight at once, none of which carries into the next. */
static inline uint64_t count_add_word(uint64_t a, uint64_t b)
{
	const uint64_t high = 0x8080808080808080;

	return ((a & ~high) + (b & ~high)) ^ ((a ^ b) & high);
}

static inline void count_add(struct counts *to, const struct counts *counts)
{
	uint64_t a[COUNT_WORDS], b[COUNT_WORDS];

	__builtin_memcpy(a, to, sizeof(a));
	__builtin_memcpy(b, counts, sizeof(b));
	for (unsigned int i = 0; i < COUNT_WORDS; i++)
		a[i] = count_add_word(a[i], b[i]);
	__builtin_memcpy(to, a, sizeof(a));
}

#endif
