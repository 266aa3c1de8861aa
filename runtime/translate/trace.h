/* SPDX-License-Identifier: MIT */
/* How emitted code tells the model what it does: see trace.c. */
#ifndef RUNTIME_TRANSLATE_TRACE_H
#define RUNTIME_TRANSLATE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/model/block.h"

struct builder;
struct state;

/* An operand whose address has been taken before its instruction's turn. */
struct trace_taken {
	uint64_t pc;
	uint8_t operand, word;
};

struct trace {
	bool on;       /* this cache traces, */
	bool waits;    /* and somebody waits for a counter */
	bool entered;  /* the fragment can be, at the instruction at hand */
	bool open;     /* a record has been begun, of the block at hand */
	bool last;     /* the block ends with the instruction at hand */
	uint8_t insns; /* that it has done */
	uint8_t length;
	uint8_t words;
	uint16_t unseen; /* words of records since it was looked whether the buffer is full */
	uint8_t string;	 /* word of the first one behind a string instruction; 0: none */

	/* The words that hold registers as they are now; rsp as it was `rsp` bytes ago. */
	uint8_t word_of[16];
	int32_t rsp;
	struct trace_taken taken[32];
	unsigned int nr_taken;

	struct block *block; /* NULL in a rehearsal */
	uint8_t *code;	     /* behind where its code's address goes, */
	uint8_t *size;	     /* and behind where that of its size does */

	/* 1 + a register whose value is in thread->held, or 0: see record.c. */
	uint8_t held[2];
	bool lasts[2]; /* until the program writes it */
	uint8_t points;

	unsigned int nr_open_ends, nr_headers;
};

/* To be filled in when the number of words is known: displacements from the record's end. */
struct trace_open_end {
	uint8_t *at;
	uint16_t byte;
};

/* Headers, whose ways to the drain are emitted behind the fragment. */
struct trace_header {
	uint8_t *jump; /* behind its rel32 */
	uint8_t *header;
	uint64_t pc;
	uint8_t held[2];
	bool rcx_spilled;
};

void trace_start(struct builder *b);

/* Around each instruction. */
void trace_before(struct builder *b);
void trace_after(struct builder *b);

/* Before anything of the instruction at hand: what could be an entry is made one. */
void trace_entry(struct builder *b);

/* The instruction at hand leaves the fragment. */
void trace_leave(struct builder *b);

/* By how much a plain instruction moves rsp, if it does in a way that is known. */
struct insn;
bool trace_moves_rsp(const struct insn *insn, int32_t *by);

/* No other follows. */
void trace_close(struct builder *b);

/* Behind the fragment's end. */
void trace_late(struct builder *b);

/* What emitting one more instruction may take, and what trace_late() will. */
unsigned int trace_bytes(const struct builder *b);

/* Adds to what is known of the program's state. */
void trace_state(const struct builder *b, struct state *state);

#endif
