// SPDX-License-Identifier: MIT
/*
 * Whether flags may be overwritten where a branch arrives. Nearly always: compilers keep nothing in
 * them across calls and jumps through pointers, and a few instructions on all are written.
 */
#include "runtime/translate/build.h"

#define ALL_FLAGS (INSN_OF | INSN_SF | INSN_ZF | INSN_AF | INSN_PF | INSN_CF)

/* How far to look. */
#define LOOK_INSNS 12

bool flags_live(const struct builder *b, uint64_t pc)
{
	uint8_t live = ALL_FLAGS;

	for (unsigned int i = 0; i < LOOK_INSNS; i++) {
		uint8_t read, written;
		struct insn insn;

		if (pc < b->range.start || pc >= b->range.end || b->range.end - pc < 16)
			return true;
		if (!insn_decode(&insn, (const uint8_t *)pc, 16))
			return true;
		switch (insn.class) {
		case INSN_PLAIN:
			break;
		case INSN_CALL:
		case INSN_JMP:
			pc = insn_target(&insn, pc);
			continue;
		case INSN_SYSCALL: /* which puts them into r11 */
		default:
			return true;
		}
		insn_flags(&insn, &read, &written);
		if (read & live)
			return true;
		live &= ~written;
		if (!live)
			return false;
		pc += insn.length;
	}
	return true;
}
