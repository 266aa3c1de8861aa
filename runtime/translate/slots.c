// SPDX-License-Identifier: MIT
/* What instructions cost that take longer than to be issued. */
#include "runtime/translate/decode.h"

static unsigned int beside_its_own(const struct insn *insn)
{
	const uint8_t op = insn->opcode, reg = insn->modrm >> 3 & 7;

	if (insn->prefixes & PREFIX_LOCK)
		return 64;
	if (insn->encoding == INSN_LEGACY && insn->map == 0) {
		if ((op == 0xf6 || op == 0xf7) && reg >= 6) /* div, idiv */
			return insn->rex & REX_W ? 64 : 40;
		if ((op == 0x86 || op == 0x87) && insn->modrm < 0xc0) /* xchg with memory */
			return 64;
		if (op == 0x90 && insn->prefixes & PREFIX_REP) /* pause */
			return 160;
		return op >= 0xd8 && op <= 0xdf ? 4 : 0; /* x87 */
	}
	if (insn->map == 1) {
		if (op == 0xa2) /* cpuid */
			return 400;
		if (op == 0x31) /* rdtsc */
			return 80;
		if (op == 0x51 || op == 0x5e) /* sqrt, div of vectors */
			return 16;
	}
	return 0;
}

unsigned int insn_slots(const struct insn *insn)
{
	return 1 + beside_its_own(insn);
}
