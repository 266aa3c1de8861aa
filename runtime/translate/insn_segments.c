// SPDX-License-Identifier: MIT
/* Which instructions depend on FS and GS, in one of which the runtime has its own. */
#include "runtime/translate/shape.h"

/* As ModRM.reg numbers them. */
enum { SEGMENT_FS = 4, SEGMENT_GS = 5 };

/* Not what has the prefix for nothing, as a push. Of FS insn_effects() says which operand it is
 * about. */
static bool has_memory_in_gs(const struct insn *insn)
{
	struct insn by_fs = *insn;
	struct insn_effects effects;

	by_fs.prefixes ^= PREFIX_GS | PREFIX_FS;
	insn_effects(&by_fs, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++)
		if (effects.memory[i].access != ACCESS_NONE &&
		    (effects.memory[i].prefixes & PREFIX_FS))
			return true;
	return false;
}

/* Whether it changes the segment register, or reads or changes its base. */
static bool takes_segment(const struct insn *insn, unsigned int segment)
{
	const unsigned int reg = insn->modrm >> 3 & 7;

	switch (insn->map << 8 | insn->opcode) {
	case 0x08e: /* mov to it */
		return reg == segment;
	case 0x1a1: /* pop fs */
	case 0x1b4: /* lfs */
		return segment == SEGMENT_FS;
	case 0x1a9: /* pop gs */
	case 0x1b5: /* lgs */
		return segment == SEGMENT_GS;
	case 0x1ae: /* 0 and 2: rdfsbase, wrfsbase; 1 and 3: those of gs */
		return (insn->shape->traits & TRAIT_FSGS) && (reg & 1) == (segment & 1);
	}
	return false;
}

bool insn_uses_gs(const struct insn *insn)
{
	return ((insn->prefixes & PREFIX_GS) && has_memory_in_gs(insn)) ||
	       takes_segment(insn, SEGMENT_GS);
}

bool insn_reaches_fs(const struct insn *insn)
{
	return takes_segment(insn, SEGMENT_FS);
}
