// SPDX-License-Identifier: MIT
/*
 * Which instructions are arithmetic on floating point numbers. Compares, conversions, roundings,
 * blends and bit operations are not, as to the events of Intel's (FP_ARITH_INST_RETIRED) and AMD's
 * processors (RETIRED_SSE_AVX_FLOPS).
 */
#include "runtime/translate/shape.h"

enum { PP_NONE, PP_66, PP_F3, PP_F2 };

/* What an opcode is, and how its prefix, or W, tells of what. */
struct kind {
	uint8_t arithmetic;
	enum {
		BY_PREFIX, /* ps, pd, ss, sd */
		ONLY_SINGLE,
		BY_HORIZONTAL, /* f2: ps, 66: pd */
		PACKED_BY_W,
		SCALAR_BY_W,
		SINGLE,
		DOUBLE,
		SCALAR_SINGLE,
		SCALAR_DOUBLE,
		HALF,
		SCALAR_HALF,
	} what;
};

static struct kind map_0f(uint8_t opcode)
{
	switch (opcode) {
	case 0x58: /* add */
	case 0x5c: /* sub */
		return (struct kind){INSN_ADD, BY_PREFIX};
	case 0x59:
		return (struct kind){INSN_MULTIPLY, BY_PREFIX};
	case 0x51: /* sqrt */
	case 0x5e:
		return (struct kind){INSN_DIVIDE, BY_PREFIX};
	case 0x5d: /* min */
	case 0x5f: /* max */
		return (struct kind){INSN_OTHER, BY_PREFIX};
	case 0x52: /* rsqrt */
	case 0x53: /* rcp */
		return (struct kind){INSN_OTHER, ONLY_SINGLE};
	case 0x7c: /* hadd */
	case 0x7d: /* hsub */
	case 0xd0: /* addsub */
		return (struct kind){INSN_ADD, BY_HORIZONTAL};
	}
	return (struct kind){0};
}

static struct kind map_0f38(const struct insn *insn)
{
	const uint8_t op = insn->opcode, low = op & 0xf;

	if (insn->map == MAP_EVEX2 && op == 0x52 && insn->pp == PP_F3)
		return (struct kind){INSN_BFLOAT, SINGLE};
	if (insn->map == MAP_0F38 || insn->pp != PP_66)
		return (struct kind){0};
	if (low >= 6 && (op >> 4 == 9 || op >> 4 == 0xa || op >> 4 == 0xb))
		return (struct kind){INSN_FMA, low >= 8 && (op & 1) ? SCALAR_BY_W : PACKED_BY_W};
	if (insn->map == MAP_EVEX2 && op >= 0x4c && op <= 0x4f) /* rcp14, rsqrt14 */
		return (struct kind){INSN_OTHER, op & 1 ? SCALAR_BY_W : PACKED_BY_W};
	return (struct kind){0};
}

static struct kind map_0f3a(const struct insn *insn)
{
	const uint8_t op = insn->opcode;

	if (insn->pp != PP_66)
		return (struct kind){0};
	if (op == 0x40)
		return (struct kind){INSN_DOT, SINGLE};
	if (op == 0x41)
		return (struct kind){INSN_DOT, DOUBLE};
	if (insn->map != MAP_VEX3)
		return (struct kind){0};
	/* those of four operands, AMD's */
	if (op >= 0x5c && op <= 0x5f)
		return (struct kind){INSN_FMA, op & 1 ? DOUBLE : SINGLE};
	if (op >= 0x68 && op <= 0x7f && (op & 0xf) >= 8)
		return (struct kind){INSN_FMA, (op & 2 ? SCALAR_SINGLE : SINGLE) + (op & 1)};
	return (struct kind){0};
}

/* Half precision: the opcodes of the other maps, and complex numbers. */
static struct kind map_5(const struct insn *insn)
{
	const struct kind kind = map_0f(insn->opcode);

	if (kind.what != BY_PREFIX || insn->pp == PP_66 || insn->pp == PP_F2)
		return (struct kind){0};
	return (struct kind){kind.arithmetic, insn->pp == PP_F3 ? SCALAR_HALF : HALF};
}

static struct kind map_6(const struct insn *insn)
{
	const uint8_t op = insn->opcode, low = op & 0xf, high = op >> 4;

	if (insn->pp == PP_F3 || insn->pp == PP_F2) {
		if ((high == 5 || high == 0xd) && (low == 6 || low == 7)) /* fmaddc, fmulc */
			return (struct kind){INSN_OTHER, op & 1 ? SCALAR_HALF : HALF};
		return (struct kind){0};
	}
	if (insn->pp != PP_66)
		return (struct kind){0};
	if (low >= 6 && high >= 9 && high <= 0xb)
		return (struct kind){INSN_FMA, low >= 8 && (op & 1) ? SCALAR_HALF : HALF};
	if (op >= 0x4c && op <= 0x4f) /* rcp, rsqrt */
		return (struct kind){INSN_OTHER, op & 1 ? SCALAR_HALF : HALF};
	return (struct kind){0};
}

static struct kind kind_of(const struct insn *insn)
{
	switch (insn->map) {
	case MAP_0F:
	case MAP_VEX1:
	case MAP_EVEX1:
		return map_0f(insn->opcode);
	case MAP_0F38:
	case MAP_VEX2:
	case MAP_EVEX2:
		return map_0f38(insn);
	case MAP_0F3A:
	case MAP_VEX3:
		return map_0f3a(insn);
	case MAP_EVEX5:
		return map_5(insn);
	case MAP_EVEX6:
		return map_6(insn);
	}
	return (struct kind){0};
}

/* With rounding in the instruction, its length has no room: it is 64 bytes. */
static uint8_t vector_of(const struct insn *insn)
{
	if (insn->encoding == INSN_EVEX && insn->broadcast && insn->modrm >> 6 == 3)
		return 64;
	return insn->encoding == INSN_LEGACY ? 16 : insn->vector;
}

struct insn_floating insn_floating(const struct insn *insn)
{
	const struct kind kind = kind_of(insn);
	bool scalar = false, is_double = false, is_half = false;

	switch (kind.what) {
	case BY_PREFIX:
		scalar = insn->pp >= PP_F3;
		is_double = insn->pp & 1;
		break;
	case ONLY_SINGLE:
		scalar = insn->pp == PP_F3;
		break;
	case BY_HORIZONTAL:
		is_double = insn->pp == PP_66;
		break;
	case PACKED_BY_W:
	case SCALAR_BY_W:
		scalar = kind.what == SCALAR_BY_W;
		is_double = insn->rex & REX_W;
		break;
	case SINGLE:
	case DOUBLE:
		is_double = kind.what == DOUBLE;
		break;
	case SCALAR_SINGLE:
	case SCALAR_DOUBLE:
		scalar = true;
		is_double = kind.what == SCALAR_DOUBLE;
		break;
	case HALF:
	case SCALAR_HALF:
		scalar = kind.what == SCALAR_HALF;
		is_half = true;
		break;
	}
	return (struct insn_floating){
		.arithmetic = kind.arithmetic,
		.is_double = is_double,
		.is_half = is_half,
		.vector = scalar ? 0 : vector_of(insn),
		.elements = scalar ? 1
				   : vector_of(insn) / (is_double ? 8
							: is_half ? 2
								  : 4),
	};
}
