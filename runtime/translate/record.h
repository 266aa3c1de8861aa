/* SPDX-License-Identifier: MIT */
/* How emitted code writes a record of the trace: see record.c. */
#ifndef RUNTIME_TRANSLATE_RECORD_H
#define RUNTIME_TRANSLATE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/model/block.h"
#include "runtime/translate/decode.h"

struct builder;
struct cache;

/* What is written at one place, before the instruction at hand. */
struct group {
	uint16_t bases; /* registers to be stored as they are, to their words (struct trace), */
	bool twice;	/* and to the words behind these */
	unsigned int nr;
	struct {
		struct insn insn; /* for its prefixes and length */
		struct insn_memory memory;
		uint64_t pc;
		uint8_t word;
	} addresses[6];
};

/* What is known of the code from there on, as far as it is sure to be executed. */
struct ahead {
	uint16_t touched; /* general registers */
	uint16_t dead;	  /* of those, which are written before they are read, */
	uint8_t last;	  /* and which of these is written last */
	uint8_t flags;	  /* that may still be asked for */
};

/* Sizes of records, by words, to be added to where the next one goes: where the cache begins. */
enum { RECORD_SIZES_BYTES = 16 * (BLOCK_MAX_WORDS + 1) };

void record_init(struct cache *cache);

/* General registers from which an operand's address is made. */
uint16_t record_registers(const struct insn_memory *m);

/* Of an operand that needs none of them. */
uint64_t record_static_address(const struct insn *insn, const struct insn_memory *m, uint64_t pc);

/* Whether the group can have another address, or base, that is made of @registers. */
bool record_room(const struct group *g, uint16_t registers);

/* @looks: whether the buffer is full. */
void record_begin(struct builder *b, const struct group *g, const struct ahead *ahead, bool looks);
void record_more(struct builder *b, const struct group *g, const struct ahead *ahead);

/* Its number of words is known. */
void record_end(struct builder *b);

/* The instruction at hand has written general registers. */
void record_written(struct builder *b, uint16_t registers);

/* All general registers are the program's. */
void record_give_back(struct builder *b);

/* Behind the fragment's end. */
void record_late(struct builder *b);

/* The block of which the record begins at the code at @header. */
struct block *record_block_at(uint64_t header);

#endif
