/* SPDX-License-Identifier: MIT */
/*
 * What an opcode means: what follows it, which decode.c reads, and what the instruction does, which
 * effects.c tells. tables.py makes them of x86.tab.
 */
#ifndef RUNTIME_TRANSLATE_SHAPE_H
#define RUNTIME_TRANSLATE_SHAPE_H

#include "runtime/translate/decode.h"

enum immediate {
	IMM_NONE,
	IMM_8,
	IMM_16,
	IMM_32,
	IMM_Z, /* 2 or 4 by operand size */
	IMM_V, /* 2, 4 or 8 */
	IMM_8_8,
	IMM_16_8,
	IMM_REL8,
	IMM_REL32,
	IMM_MOFFS,
};

enum operand_size {
	SIZE_N,
	SIZE_B,
	SIZE_W,
	SIZE_D,
	SIZE_Q,
	SIZE_DQ,
	SIZE_QQ,
	SIZE_T,
	SIZE_V,
	SIZE_Z,
	SIZE_Y,
	SIZE_X,
	SIZE_H,
	SIZE_F,
	SIZE_E,
	SIZE_DUP, /* movddup: half of 16 bytes, else all */
	SIZE_P,	  /* far pointer */
	SIZE_S,	  /* of a push or pop */
	SIZE_M10,
	SIZE_M64,
	SIZE_ENV,
	SIZE_FPS,
	SIZE_FX,
};

enum rm_kind { RM_NONE, RM_GENERAL, RM_VECTOR, RM_ABSOLUTE };

enum trait {
	TRAIT_PUSH = 1 << 0,
	TRAIT_POP = 1 << 1,
	TRAIT_LEAVE = 1 << 2,
	TRAIT_STRING = 1 << 3,
	TRAIT_SOURCE = 1 << 4,
	TRAIT_DESTINATION = 1 << 5,
	TRAIT_XLAT = 1 << 6,
	TRAIT_BITBASE = 1 << 7, /* a register operand reaches beyond the addressed word */
	TRAIT_XSAVE = 1 << 8,
	TRAIT_GATHER = 1 << 9,
	TRAIT_SIBMEM = 1 << 10,
	TRAIT_MASKMOVQ = 1 << 11,
	TRAIT_MASKMOVDQU = 1 << 12,
	TRAIT_MOVDIR64B = 1 << 13,
	TRAIT_ENQCMD = 1 << 14,
	TRAIT_SYSTEM = 1 << 15,
	TRAIT_FSGS = 1 << 16,
	TRAIT_REGONLY = 1 << 17, /* modrm.mod is not looked at: always a register */
	TRAIT_CLZERO = 1 << 18,
	TRAIT_COUNT = 1 << 19, /* a count of zero leaves the flags alone */
};

struct insn_shape {
	uint8_t class, imm, modrm;
	uint8_t rm, rm_access, rm_size, element, granule;
	uint8_t reg_access, reg_size;
	uint8_t vvvv_access;
	uint8_t opreg_access, opreg_size;
	uint8_t source_size, destination_size, destination_access;
	uint8_t flags_read, flags_written;
	uint16_t reads, writes, partial;
	uint32_t traits;
};

enum map {
	MAP_ONE,
	MAP_0F,
	MAP_0F38,
	MAP_0F3A,
	MAP_3DNOW,
	MAP_VEX1,
	MAP_VEX2,
	MAP_VEX3,
	MAP_XOP8,
	MAP_XOP9,
	MAP_XOPA,
	MAP_EVEX1,
	MAP_EVEX2,
	MAP_EVEX3,
	MAP_EVEX5,
	MAP_EVEX6,
	NO_MAP,
};

static inline unsigned int operand_size(const struct insn *insn)
{
	if (insn->rex & REX_W)
		return 8;
	return insn->prefixes & PREFIX_OPERAND ? 2 : 4;
}

#endif
