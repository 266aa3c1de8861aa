// SPDX-License-Identifier: MIT
/* Which vector registers an instruction may use, by its opcode: x86.tab tells of general ones
 * alone. */
#include "runtime/translate/shape.h"

/* Opcodes of the maps of legacy SSE that have vector operands; some of those of 0f have others. */
static bool is_vector_opcode(const struct insn *insn)
{
	const uint8_t op = insn->opcode;

	switch (insn->map) {
	case MAP_0F:
		return (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) ||
		       (op >= 0x50 && op <= 0x7f) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6) ||
		       op >= 0xd0;
	case MAP_0F38:
	case MAP_VEX2:
	case MAP_VEX3:
		return op < 0xf0; /* behind that: of general registers */
	}
	return insn->map != MAP_ONE;
}

/* fxsave, xsave and their like; vzeroall. */
static bool has_all_vectors(const struct insn *insn)
{
	const unsigned int reg = insn->modrm >> 3 & 7;
	const bool memory = insn->modrm >> 6 != 3;

	switch (insn->map << 8 | insn->opcode) {
	case MAP_0F << 8 | 0xae:
		return memory && (reg < 2 || (reg >= 4 && reg <= 6));
	case MAP_0F << 8 | 0xc7:
		return memory && reg >= 3 && reg <= 5;
	case MAP_VEX1 << 8 | 0x77:
		return insn->vector == 32;
	}
	return false;
}

/* Instructions that multiply four registers in a row, from vvvv on. */
static bool takes_four(const struct insn *insn)
{
	const uint8_t op = insn->opcode;

	return insn->map == MAP_EVEX2 &&
	       (op == 0x52 || op == 0x53 || op == 0x9a || op == 0x9b || op == 0xaa || op == 0xab);
}

uint16_t insn_vectors(const struct insn *insn)
{
	uint16_t vectors = 0;

	if (insn->map == MAP_ONE)
		return 0;
	if (has_all_vectors(insn))
		return 0xffff;
	if (!insn->modrm_at || !is_vector_opcode(insn))
		return 0;
	vectors = 1u << ((insn->modrm >> 3 & 7) | (insn->rex & REX_R ? 8 : 0));
	if (insn->modrm >> 6 == 3)
		vectors |= 1u << ((insn->modrm & 7) | (insn->rex & REX_B ? 8 : 0));
	if (insn->shape->traits & TRAIT_GATHER)
		vectors |= 1u << ((insn->sib >> 3 & 7) | (insn->rex & REX_X ? 8 : 0));
	if (insn->encoding == INSN_LEGACY)
		return vectors;
	vectors |= 1u << (insn->vvvv & 15);
	if (takes_four(insn))
		vectors |= 0xf << (insn->vvvv & 12);
	if (insn->imm_size == 1) /* its upper half may be a register */
		vectors |= 1u << (insn->imm >> 4 & 15);
	return vectors;
}
