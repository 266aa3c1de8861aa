/* SPDX-License-Identifier: MIT */
/*
 * Where the caller of a frame is, by what the compiler says of it in .eh_frame. Memory is read by
 * copy_in(), and nothing that is found there is believed: at worst a chain ends too soon, or is not
 * what it was.
 */
#ifndef RUNTIME_LINUX_CFI_H
#define RUNTIME_LINUX_CFI_H

#include <stdbool.h>
#include <stdint.h>

/* Registers by their numbers in DWARF, which are not those of instructions. */
enum { CFI_RBX = 3, CFI_RBP = 6, CFI_RSP = 7, CFI_RIP = 16, CFI_REGISTERS };

struct cfi_frame {
	uint64_t reg[CFI_REGISTERS];
	bool called; /* rip is behind a call, and not where the frame was interrupted */
};

/* .eh_frame_hdr: a sorted table of functions. */
struct cfi_table {
	uint64_t header;
	uint32_t nr;
};

/* False: there is none at @header, or none that is known. */
bool cfi_table_at(struct cfi_table *table, uint64_t header);

enum cfi_kind {
	CFI_SAME,	    /* as the frame has it; rsp is the frame's end */
	CFI_UNDEFINED,	    /* lost; of rip: there is no caller */
	CFI_AT,		    /* in memory at the frame's end + value */
	CFI_IS,		    /* that address itself */
	CFI_IN,		    /* in register value */
	CFI_AT_EXPRESSION,  /* in memory at the result of `length` bytes at value */
	CFI_IS_EXPRESSION,  /* that result */
	CFI_REGISTER_OFFSET /* of the frame's end only: register `length`, + value */
};

struct cfi_rule {
	uint64_t value;
	uint16_t length;
	uint8_t kind;
};

/* How the caller's registers are found at some place of a function: of those that are kept. */
enum { CFI_RULES = 8 };

struct cfi_row {
	struct cfi_rule end; /* the frame's, from which the rest is told */
	struct cfi_rule of[CFI_RULES];
	bool signal; /* the frame is the kernel's, for a handler: its caller was interrupted */
};

/* Of the place that @frame is at; false where nothing is said of it. */
bool cfi_find(const struct cfi_table *table, const struct cfi_frame *frame, struct cfi_row *row);

/* Makes @frame its caller's; false when there is none, or it cannot be told. */
bool cfi_apply(const struct cfi_row *row, struct cfi_frame *frame);

#endif
