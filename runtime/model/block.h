/* SPDX-License-Identifier: MIT */
/*
 * What the model is told: the trace that translated code writes, and what is known of each block of
 * code before it runs.
 *
 *	trace	| code A | word 1 | word 2 | code B | code A | word 1 | word 2 | ...
 *
 * A record is the address of the code that takes it in (compile.h), which knows its struct block,
 * and as many words as that says. Words are what only
 * running can tell: a register from which operands are reached, or an operand's address. Most
 * operands share a word with others, or need none.
 *
 * That a branch was taken shows in where the next record's block begins.
 *
 * All of it, but for the trace itself, lies below 2 GiB.
 */
#ifndef RUNTIME_MODEL_BLOCK_H
#define RUNTIME_MODEL_BLOCK_H

#include <stdint.h>

/* How a block ends. */
enum block_end {
	BLOCK_ON, /* no branch: a system call, or the code simply goes on in the next block */
	BLOCK_CONDITIONAL,
	BLOCK_JUMP,
	BLOCK_CALL,
	BLOCK_JUMP_INDIRECT,
	BLOCK_CALL_INDIRECT,
	BLOCK_RETURN,
};

/*
 * A memory operand lies at trace[word] + base + delta. Word 0 stands for the address of the block,
 * to which operands whose address is known are relative.
 *
 * What is read and then written is a load: that finds it, or not.
 *
 * A string instruction with a repeat count goes from the address in trace[word] to the one in
 * trace[word + 1], up or down; two such operands that follow each other go together.
 */
struct block_access {
	int32_t delta;
	uint8_t word;
	uint8_t base; /* enum block_base */
	uint8_t what; /* bytes less 1, BLOCK_STRING, BLOCK_STORE */
	uint8_t insn; /* of the block, from 0; BLOCK_MODIFIES if it stores what it has loaded */
};

enum block_base { BLOCK_BASE_NONE, BLOCK_BASE_FS };

#define BLOCK_SIZE   0x3f /* bytes of an access, or of a string's element, less 1 */
#define BLOCK_STRING 0x40
#define BLOCK_STORE  0x80

#define BLOCK_MODIFIES 0x80

/* Each count has 16 bits of a word, so that one addition adds four; slots and lines have 32. */
#define BLOCK_COUNT(n, place)	  ((uint64_t)(n) << 16 * (place))
#define BLOCK_PART(counts, place) ((counts) >> 16 * (place)&0xffff)
enum { BLOCK_INSTRUCTIONS, BLOCK_LOAD_OPERANDS, BLOCK_STORE_OPERANDS, BLOCK_BRANCHES };

/* Slots of issue that it takes, and lines that it lies in. */
#define BLOCK_COST(slots, lines) ((uint64_t)(slots) | (uint64_t)(lines) << 32)

/* So that it lies in two lines at most. */
#define BLOCK_MAX_LENGTH   65
#define BLOCK_MAX_INSNS	   96
#define BLOCK_MAX_ACCESSES 64
#define BLOCK_MAX_WORDS	   32 /* with the block itself */

struct block {
	uint64_t pc;
	uint64_t counts; /* BLOCK_COUNT() */
	uint64_t cost;	 /* BLOCK_COST() */
	uint16_t length; /* bytes of code: at most BLOCK_MAX_LENGTH */
	uint8_t words;	 /* of its record, itself included */
	uint8_t nr_accesses;
	uint8_t end;  /* enum block_end */
	uint8_t last; /* where the last instruction begins, from pc */
	struct block_access accesses[];
};

/* How many strings go together from access @i on: 0, 1 or 2. */
static inline unsigned int block_strings(const struct block *b, unsigned int i)
{
	if (!(b->accesses[i].what & BLOCK_STRING))
		return 0;
	return i + 1u < b->nr_accesses && b->accesses[i + 1].what & BLOCK_STRING ? 2 : 1;
}

/*
 * The code of a record (compile.c) begins with mov $imm32, %ecx, which has the lower half of where
 * the block begins, for who gets there by a branch. Where the block is described is an operand,
 * too, of code that is out of the way: of the first thing that is done there.
 *
 *	head	| mov $pc, %ecx | cmpl $line, slot(%rbx) | jne ->
 *	aside	| mov $block, %ecx | ...	which nobody asks for there
 */
struct block_head {
	uint8_t opcode;
	uint32_t pc;
	uint8_t compare[10];
	uint8_t jump[2];
	int32_t aside; /* from the end of this */
} __attribute__((packed));

struct block_aside {
	uint8_t opcode;
	uint32_t block;
} __attribute__((packed));

static inline struct block *record_block(uint64_t record)
{
	const struct block_head *head = (const struct block_head *)record;
	const struct block_aside *aside =
		(const struct block_aside *)((const uint8_t *)(head + 1) + head->aside);

	return (struct block *)(uint64_t)aside->block;
}

#endif
