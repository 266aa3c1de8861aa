/* SPDX-License-Identifier: MIT */
/* Counting where somebody waits for a counter to get to 0: see due.c. */
#ifndef RUNTIME_TRANSLATE_DUE_H
#define RUNTIME_TRANSLATE_DUE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/translate/decode.h"
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
};

struct late {
	uint64_t pc;   /* where the program is then */
	uint64_t from; /* the branch that has just led there; 0: none has */
	uint8_t *site;
	uint32_t entry;
	uint8_t kind;	 /* enum late_kind */
	uint8_t how;	 /* enum how: what is borrowed when the program gets here */
	bool dead;	 /* it does not need its flags */
	bool behind;	 /* something of the fragment has been executed */
	uint32_t undone; /* kinds of which the segment's sum is to be taken back */
	struct counts counts;
};

/* As many as a fragment can have. */
enum { LATE_MAX = 64 };

struct due {
	bool used;
	uint64_t checked; /* of enum core_kind */
	bool fine;	  /* segments are short, */
	uint8_t most;	  /* and have so many instructions at most */
	bool open;
	uint64_t from; /* as in struct late, of what is added */
	bool ahead;   /* what is added has not been done: it is taken back where something is due */
	bool closing; /* the segment ends with the instruction at hand */
	uint8_t nr_late, first_late;
	uint8_t insns;	      /* of the segment so far */
	uint8_t lates;	      /* that one more instruction may need */
	uint8_t nr_decisions; /* of those that are kept in the fragment */
	/* That additions may take. */
	uint16_t bytes;
	uint64_t placed; /* kinds that are added when the segment that has begun begins, */
	uint8_t *amounts[COUNT_KINDS]; /* and where its sums go */
	struct counts done;	       /* in the segment, before the instruction at hand */
	struct counts added;	       /* of a rehearsal: what the segment added when it began */
	struct late *late;
};

/* Decodes what is at @pc, on one page, if the fragment can be made to depend on that. */
bool due_look(struct builder *b, uint64_t pc, struct insn *insn);

/* Flags that @insn computes anew, of which those that matter are all known (due.c). */
#define DUE_FLAGS (INSN_OF | INSN_SF | INSN_ZF | INSN_AF | INSN_PF | INSN_CF)
uint8_t due_flags_set(const struct insn *insn);

/* Whether all flags are set from @pc on before one is asked for. */
bool due_flags_dead(struct builder *b, uint64_t pc);

/* Flags are kept, and are what they were; what is known of the program at @pc in between. */
void due_borrow(struct builder *b, uint64_t pc, enum how how);
void due_give_back(struct builder *b, uint64_t pc, enum how how);
void due_mark(struct builder *b, uint64_t pc, enum how how);

void due_start(struct builder *b, struct late *late);
void due_before(struct builder *b);
void due_after(struct builder *b);
void due_close(struct builder *b);
bool due_jcc(struct builder *b, uint64_t target);
void due_taken(struct builder *b, uint64_t target);
void due_late(struct builder *b);
bool due_room(const struct builder *b);
unsigned int due_bytes(const struct builder *b);
struct counts due_state(const struct builder *b, const struct state *state);

#endif
