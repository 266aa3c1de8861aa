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

/* How the caller's registers are found at some place of a function: of those that are kept, which
 * are cfi_numbers; the first one is rip. */
enum { CFI_RULES = 8 };

extern const uint8_t cfi_numbers[CFI_RULES];

struct cfi_row {
	struct cfi_rule end; /* the frame's, from which the rest is told */
	struct cfi_rule of[CFI_RULES];
	uint64_t first, behind; /* the places that it is true of */
	bool signal; /* the frame is the kernel's, for a handler: its caller was interrupted */
};

/* Whether it says that there is no caller. */
static inline bool cfi_is_last(const struct cfi_row *row)
{
	return row->of[0].kind == CFI_UNDEFINED;
}

/* What each function of a file begins with: that of the last one is kept, most have the same. */
struct cfi_common {
	uint64_t address; /* 0: none */
	struct cfi_row row;
	uint64_t code_unit, data_unit;
	bool sized;
	uint8_t encoding; /* of the functions' addresses */
};

/* Where a function begins, and what is said of it, from the base of the table. */
struct cfi_function {
	int32_t first, entry;
};

/* Functions by address: .eh_frame_hdr has them so. */
struct cfi_table {
	uint64_t base;
	uint64_t functions; /* struct cfi_function */
	uint32_t nr;
	struct cfi_common common;
};

/* False: there is none at @header, or none that is known. */
bool cfi_table_at(struct cfi_table *table, uint64_t header);

/*
 * Such a table is made from .eh_frame, of @size bytes, where the linker has made none. How many
 * functions it has at most; @functions has room for @most.
 */
uint32_t cfi_count(uint64_t frames, uint64_t size);
void cfi_make_table(struct cfi_table *table, uint64_t frames, uint64_t size,
		    struct cfi_function *functions, uint32_t most);

/* Where the function begins that the entry at @address is about; false if it is about none. */
bool cfi_first(struct cfi_table *table, uint64_t address, uint64_t *first);

/* Where @frame is, in the function that it is of: a call may be the last that one does. */
static inline uint64_t cfi_place(const struct cfi_frame *frame)
{
	return frame->reg[CFI_RIP] - frame->called;
}

/* Of cfi_place(); false where nothing is said of it. */
bool cfi_find(struct cfi_table *table, const struct cfi_frame *frame, struct cfi_row *row);

/* Makes @frame its caller's; false when there is none, or it cannot be told: then @frame is of
 * nobody. */
bool cfi_apply(const struct cfi_row *row, struct cfi_frame *frame);

/*
 * Nearly every row, in a form that is small and soon applied: registers are saved near the frame's
 * end, at multiples of 8, or are as they were.
 */
struct cfi_plain {
	int32_t end; /* from end_register */
	uint8_t end_register;
	uint8_t saved;		     /* bits of rules, */
	int8_t words[CFI_RULES - 1]; /* and where, from the frame's end; rsp is never among them */
};

/* False: it is not of that kind. */
bool cfi_make_plain(struct cfi_plain *plain, const struct cfi_row *row);
bool cfi_apply_plain(const struct cfi_plain *plain, struct cfi_frame *frame);

#endif
