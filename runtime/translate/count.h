/* SPDX-License-Identifier: MIT */
/*
 * How emitted code counts what the program does, exactly: see count.c.
 */
#ifndef RUNTIME_TRANSLATE_COUNT_H
#define RUNTIME_TRANSLATE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/translate/translate.h"

struct builder;
struct state;

/* Of a fragment: what comes behind its end, for those who leave it early. */
enum late_kind {
	LATE_TAKEN, /* a condition held, and the rest of the segment is not executed */
	LATE_CALL,  /* an entry that begins with a call, which a segment before it has counted */
	LATE_DUE,   /* a counter has got to 0 or will in the segment that was about to begin */
};

/* How additions leave alone what the program has. */
enum how {
	FREELY,	       /* its flags are dead */
	KEEPING_FLAGS, /* in ax */
	THROUGH_R11,   /* which is spilled for that */
	THROUGH_RCX,   /* which is spilled already */
};

struct late {
	uint64_t pc; /* where the program is then */
	uint8_t *site;
	uint32_t entry;
	uint8_t kind;	 /* enum late_kind */
	uint8_t how;	 /* enum how: what is borrowed when the program gets here */
	bool dead;	 /* it does not need its flags */
	uint16_t undone; /* kinds of which the segment's sum is to be taken back */
	struct counts counts;
};

/* As many as a fragment can have. */
enum { LATE_MAX = 64 };

struct count {
	uint64_t kinds, checked; /* of enum core_kind, that this fragment counts */
	bool has_lanes;
	bool fine; /* each instruction is a segment */
	uint8_t lane; /* of the last addition */
	bool open;
	bool placed;  /* of the open segment: the place where all is added has been passed, */
	uint8_t how;  /* enum how: in this way */
	bool apart;   /* what is marked is no part of the segment around it */
	bool ahead;   /* what is added has not been done: it is taken back where something is due */
	bool closing; /* the segment ends with the instruction at hand */
	uint8_t nr_late, first_late;
	uint8_t lates; /* that one more instruction may need */
	/* That additions may take. */
	uint16_t bytes;
	uint8_t *amounts[COUNT_KINDS]; /* of a segment that has begun: where its sums go */
	struct counts done;	       /* in the segment, before the instruction at hand */
	struct counts insn;	       /* what that one does */
	struct counts added;	       /* of a rehearsal: what the segment added when it began */
	struct late *late;
};

/* What lies before a fragment: makes it, and returns its size. */
unsigned int count_head(uint8_t *head);

/* The code of b->cache counts, and @late has room for LATE_MAX. */
void count_start(struct builder *b, struct late *late);

/* Around each instruction. */
void count_before(struct builder *b);
void count_after(struct builder *b);

/* The most that the former may emit. */
unsigned int count_before_bytes(const struct builder *b);

/* The instruction at hand leaves the fragment. */
void count_leave(struct builder *b);

/* It does, and rcx is in its slot, to come from there before it is asked for. */
void count_spilled(struct builder *b);

/* No other follows. */
void count_close(struct builder *b);

/* jcc: whether it has to leave by way of a LATE_TAKEN; then emits its rel32. */
bool count_jcc(struct builder *b, uint64_t target);

/* loop, before it jumps to its target. */
void count_taken(struct builder *b, uint64_t target);

/* Behind the fragment's end. */
void count_late(struct builder *b);

/* Whether there is room for what one more instruction may need; and bytes that it takes. */
bool count_room(const struct builder *b);

static inline unsigned int count_late_bytes(const struct count *count)
{
	return (count->nr_late + count->lates) * count->bytes;
}

/* What state.counts is just now. */
struct counts count_state(const struct builder *b, const struct state *state);

#endif
