/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: at an address of a dso, how to find the caller's registers from the
 * callee's. x86-64, whose DWARF numbers the registers are called by here.
 */
#ifndef LIB_SYMBOL_CFI_H
#define LIB_SYMBOL_CFI_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_dso;
struct tly_cfi;

enum { TLY_RBP = 6, TLY_RSP = 7, TLY_RA = 16, TLY_NR_REGS = 17 };

enum tly_rule_kind {
	TLY_UNDEFINED,	/* the caller's value is lost; of TLY_RA: there is no caller */
	TLY_SAVED,	/* in memory at the CFA plus offset */
	TLY_CFA_OFFSET, /* it is the CFA plus offset */
	TLY_REGISTER,	/* it is in another register, plus offset */
	TLY_EXPRESSION, /* in memory where the expression says */
	TLY_VALUE,	/* what the expression says */
};

struct tly_rule {
	uint8_t reg, kind;
	uint8_t other; /* TLY_REGISTER */
	int32_t offset;
	const Dwarf_Op *ops;
	size_t nr_ops;
};

/* The rules of one address. A register without a rule keeps its value. */
struct tly_frame_rules {
	bool signal; /* a signal handler's return: the caller was interrupted, it did not call */
	uint8_t nr;
	struct tly_rule cfa; /* TLY_REGISTER or TLY_VALUE */
	struct tly_rule rules[TLY_NR_REGS];
};

/*
 * The rules at @address, with what they refer to kept as long as @dso. False when there is no
 * information for it.
 */
bool tly_cfi_rules(struct tally_dso *dso, uint64_t address, struct tly_frame_rules *rules);
void tly_cfi_free(struct tly_cfi *cfi);

#endif
