// SPDX-License-Identifier: MIT
/*
 *	prefixes  REX | VEX | EVEX | XOP  opcode  modrm  sib  displacement  immediates
 *
 * The opcode's entry in its map leads to a shape, by way of splits that ask for a prefix or for a
 * part of modrm; see tables.py. The shape says what follows.
 */
#include "runtime/translate/shape.h"

enum { ASK_PREFIX, ASK_MOD, ASK_REG, ASK_RM, ASK_W };

#include "runtime/translate/x86-tables.h" /* made by tables.py */

struct reader {
	const uint8_t *code;
	size_t size; /* at most INSN_MAX */
	size_t at;
	uint8_t pp; /* the mandatory prefix: 0 none, 1 66, 2 f3, 3 f2 */
	uint8_t map;
};

static bool more(const struct reader *r, size_t n)
{
	return r->size - r->at >= n;
}

/* Legacy prefixes and REX. Returns false when the code ends with them. */
static bool read_prefixes(struct reader *r, struct insn *insn)
{
	for (; r->at < r->size; r->at++) {
		uint8_t byte = r->code[r->at];
		uint8_t rex = 0;

		switch (byte) {
		case 0x66:
			insn->prefixes |= PREFIX_OPERAND;
			break;
		case 0x67:
			insn->prefixes |= PREFIX_ADDRESS;
			break;
		case 0xf0:
			insn->prefixes |= PREFIX_LOCK;
			break;
		case 0xf2:
			insn->prefixes = (insn->prefixes & ~PREFIX_REP) | PREFIX_REPNE;
			break;
		case 0xf3:
			insn->prefixes = (insn->prefixes & ~PREFIX_REPNE) | PREFIX_REP;
			break;
		case 0x64:
			insn->prefixes = (insn->prefixes & ~PREFIX_GS) | PREFIX_FS;
			break;
		case 0x65:
			insn->prefixes = (insn->prefixes & ~PREFIX_FS) | PREFIX_GS;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			/* Without effect in 64-bit mode, not even on FS and GS before them. */
			break;
		default:
			if ((byte & 0xf0) != 0x40)
				return true;
			rex = byte;
		}
		/* A REX counts only right before the opcode. */
		insn->has_rex = rex;
		insn->rex = rex & 0xf;
	}
	return false;
}

static bool read_vex(struct reader *r, struct insn *insn)
{
	const uint8_t *p = r->code + r->at;
	uint8_t last;

	insn->encoding = INSN_VEX;
	if (!more(r, p[0] == 0xc5 ? 3 : 4))
		return false;
	if (p[0] == 0xc5) {
		r->map = MAP_VEX1;
		last = p[1];
		insn->rex = (~p[1] >> 5) & REX_R;
		r->at += 2;
	} else {
		uint8_t map = p[1] & 0x1f;

		r->map = map >= 1 && map <= 3 ? MAP_VEX1 + map - 1 : NO_MAP;
		last = p[2];
		insn->rex = (~p[1] >> 5 & 7) | (p[2] >> 4 & REX_W);
		r->at += 3;
	}
	insn->vvvv = ~last >> 3 & 0xf;
	insn->vector = last & 4 ? 32 : 16;
	r->pp = last & 3;
	return true;
}

static bool read_xop(struct reader *r, struct insn *insn)
{
	const uint8_t *p = r->code + r->at;
	uint8_t map = p[1] & 0x1f;

	insn->encoding = INSN_XOP;
	if (!more(r, 4))
		return false;
	r->map = map <= 10 ? MAP_XOP8 + map - 8 : NO_MAP;
	insn->rex = (~p[1] >> 5 & 7) | (p[2] >> 4 & REX_W);
	insn->vvvv = ~p[2] >> 3 & 0xf;
	insn->vector = p[2] & 4 ? 32 : 16;
	r->pp = 0;
	r->at += 3;
	return true;
}

/*
 *	62  R X B R' 0 m m m   W v v v v 1 p p   z L'L b V' a a a
 */
static bool read_evex(struct reader *r, struct insn *insn)
{
	static const uint8_t known[8] = {NO_MAP, MAP_EVEX1, MAP_EVEX2, MAP_EVEX3,
					 NO_MAP, MAP_EVEX5, MAP_EVEX6, NO_MAP};
	const uint8_t *p = r->code + r->at;

	insn->encoding = INSN_EVEX;
	if (!more(r, 5))
		return false;
	r->map = (p[1] & 0x08) || !(p[2] & 0x04) ? NO_MAP : known[p[1] & 7];
	insn->rex = (~p[1] >> 5 & 7) | (p[2] >> 4 & REX_W);
	insn->vvvv = (~p[2] >> 3 & 0xf) | (~p[3] << 1 & 0x10);
	insn->broadcast = p[3] & 0x10;
	insn->vector = 16 << (p[3] >> 5 & 3);
	r->pp = p[2] & 3;
	r->at += 4;
	return true;
}

/* Up to the opcode: which map it is in. Returns false when the code ends before. */
static bool read_map(struct reader *r, struct insn *insn)
{
	uint8_t byte = r->code[r->at];

	r->map = MAP_ONE;
	if (byte == 0x0f) {
		r->at++;
		if (!more(r, 1))
			return false;
		r->map = MAP_0F;
		byte = r->code[r->at];
		if (byte == 0x38 || byte == 0x3a || byte == 0x0f) {
			r->map = byte == 0x38 ? MAP_0F38 : byte == 0x3a ? MAP_0F3A : MAP_3DNOW;
			r->at++;
		}
		return r->map == MAP_3DNOW || more(r, 1);
	}
	if (byte != 0xc4 && byte != 0xc5 && byte != 0x62 && byte != 0x8f)
		return true;
	if (!more(r, 2))
		return false;
	/* 8f is pop with a modrm.reg of 0, which as an XOP prefix would name a map below 8. */
	if (byte == 0x8f && (r->code[r->at + 1] & 0x1f) < 8)
		return true;
	if (insn->has_rex ||
	    (insn->prefixes & (PREFIX_OPERAND | PREFIX_LOCK | PREFIX_REP | PREFIX_REPNE))) {
		r->map = NO_MAP;
		return true;
	}
	if (byte == 0x8f)
		return read_xop(r, insn);
	return byte == 0x62 ? read_evex(r, insn) : read_vex(r, insn);
}

/* The displacement of the modrm byte at hand, and the bytes that it and a sib byte take. */
static bool read_modrm(struct reader *r, struct insn *insn)
{
	uint8_t mod = insn->modrm >> 6, rm = insn->modrm & 7;
	const uint8_t *p = r->code;

	insn->modrm_at = r->at++;
	if (insn->shape->traits & TRAIT_REGONLY)
		insn->modrm |= 0xc0;
	if (insn->modrm >> 6 == 3)
		return true;
	if (rm == 4) {
		if (!more(r, 1))
			return false;
		insn->sib = p[r->at++];
		if (mod == 0 && (insn->sib & 7) == 5)
			insn->disp_size = 4;
	} else if (mod == 0 && rm == 5) {
		insn->disp_size = 4;
		insn->rip_relative = true;
	}
	if (mod)
		insn->disp_size = mod == 1 ? 1 : 4;
	if (!insn->disp_size)
		return true;
	if (!more(r, insn->disp_size))
		return false;
	insn->disp_at = r->at;
	if (insn->disp_size == 1)
		insn->disp = (int8_t)p[r->at];
	else
		__builtin_memcpy(&insn->disp, p + r->at, 4);
	r->at += insn->disp_size;
	return true;
}

static unsigned int immediate_size(const struct insn *insn, unsigned int *second)
{
	unsigned int operand = operand_size(insn);

	*second = 0;
	switch (insn->shape->imm) {
	case IMM_8_8:
		*second = 1;
		return 1;
	case IMM_16_8:
		*second = 1;
		return 2;
	case IMM_8:
	case IMM_REL8:
		return 1;
	case IMM_16:
		return 2;
	case IMM_32:
	case IMM_REL32:
		return 4;
	case IMM_Z:
		return operand == 2 ? 2 : 4;
	case IMM_V:
		return operand;
	case IMM_MOFFS:
		return insn->prefixes & PREFIX_ADDRESS ? 4 : 8;
	}
	return 0;
}

static bool read_immediate(struct reader *r, struct insn *insn)
{
	unsigned int second, size = immediate_size(insn, &second);
	const uint8_t *p = r->code + r->at;
	int16_t i16;
	int32_t i32;

	if (!size)
		return true;
	if (!more(r, size + second))
		return false;
	insn->imm_at = r->at;
	insn->imm_size = size;
	r->at += size + second;
	switch (size) {
	case 1:
		insn->imm = (int8_t)p[0];
		break;
	case 2:
		__builtin_memcpy(&i16, p, 2);
		insn->imm = i16;
		break;
	case 4:
		__builtin_memcpy(&i32, p, 4);
		insn->imm = insn->shape->imm == IMM_MOFFS ? (int64_t)(uint32_t)i32 : i32;
		break;
	case 8:
		__builtin_memcpy(&insn->imm, p, 8);
		break;
	}
	return true;
}

/* Follows the splits. Returns false when a question is about a modrm byte that is cut off. */
static bool find_shape(struct reader *r, struct insn *insn)
{
	uint16_t entry = maps[r->map][insn->opcode];

	while (entry & 0x8000) {
		const uint16_t *split = &splits[entry & 0x7fff];
		unsigned int answer = 0;

		if (split[0] >= ASK_MOD && split[0] <= ASK_RM && !more(r, 1))
			return false;
		switch (split[0]) {
		case ASK_PREFIX:
			answer = r->pp;
			break;
		case ASK_MOD:
			answer = r->code[r->at] >> 6 == 3;
			break;
		case ASK_REG:
			answer = r->code[r->at] >> 3 & 7;
			break;
		case ASK_RM:
			answer = r->code[r->at] & 7;
			break;
		case ASK_W:
			answer = !!(insn->rex & REX_W);
			break;
		}
		entry = split[1 + answer];
	}
	insn->shape = &shapes[entry];
	return true;
}

bool insn_decode(struct insn *insn, const uint8_t *code, size_t size)
{
	struct reader r = {code, size > INSN_MAX ? INSN_MAX : size, 0, 0, 0};

	*insn = (struct insn){.vector = 16};
	if (!read_prefixes(&r, insn) || !read_map(&r, insn))
		goto cut;
	if (r.map == NO_MAP)
		goto none;
	if (r.map < MAP_VEX1)
		r.pp = insn->prefixes & PREFIX_REPNE	 ? 3
		       : insn->prefixes & PREFIX_REP	 ? 2
		       : insn->prefixes & PREFIX_OPERAND ? 1
							 : 0;
	if (r.map != MAP_3DNOW) {
		insn->opcode_at = r.at;
		insn->opcode = code[r.at++];
	}
	if (!find_shape(&r, insn))
		goto cut;
	if (insn->shape == &shapes[0])
		goto none;
	if (insn->shape->modrm) {
		if (!more(&r, 1))
			goto cut;
		insn->modrm = code[r.at];
		if (!read_modrm(&r, insn))
			goto cut;
	}
	if (!read_immediate(&r, insn))
		goto cut;
	insn->class = insn->shape->class;
	insn->map = r.map;
	insn->pp = r.pp;
	insn->length = r.at;
	return true;
cut:
	/* Cut off by the caller, or by the limit of 15 bytes: that one no byte can mend. */
	insn->length = size >= INSN_MAX ? INSN_MAX : 0;
	return false;
none:
	insn->length = 1;
	return false;
}
