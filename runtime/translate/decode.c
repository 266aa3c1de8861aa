// SPDX-License-Identifier: MIT
/*
 *	prefixes  REX | VEX | EVEX | XOP  opcode  modrm  sib  displacement  immediates
 *
 * The opcode's entry in its map leads to a shape, by way of splits that ask for a prefix or for a
 * part of modrm; see tables.py. The shape says what follows.
 */
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

enum { ASK_PREFIX, ASK_MOD, ASK_REG, ASK_RM, ASK_W };

#include "runtime/translate/x86-tables.h" /* made by tables.py */

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

static unsigned int operand_size(const struct insn *insn)
{
	if (insn->rex & REX_W)
		return 8;
	return insn->prefixes & PREFIX_OPERAND ? 2 : 4;
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

/* ---- effects ---- */

static uint16_t bytes_of(const struct insn *insn, uint8_t size)
{
	const unsigned int operand = operand_size(insn);

	switch (size) {
	case SIZE_B:
		return 1;
	case SIZE_W:
		return 2;
	case SIZE_D:
		return 4;
	case SIZE_Q:
		return 8;
	case SIZE_DQ:
		return 16;
	case SIZE_QQ:
		return 32;
	case SIZE_T:
	case SIZE_M10:
		return 10;
	case SIZE_M64:
		return 64;
	case SIZE_V:
		return operand;
	case SIZE_Z:
		return operand == 2 ? 2 : 4;
	case SIZE_Y:
		return insn->rex & REX_W ? 8 : 4;
	case SIZE_X:
		return insn->vector;
	case SIZE_H:
		return insn->vector / 2;
	case SIZE_F:
		return insn->vector / 4;
	case SIZE_E:
		return insn->vector / 8;
	case SIZE_DUP:
		return insn->vector == 16 ? 8 : insn->vector;
	case SIZE_P:
		return operand + 2;
	case SIZE_S:
		return operand == 2 ? 2 : 8;
	case SIZE_ENV:
		return operand == 2 ? 14 : 28;
	case SIZE_FPS:
		return operand == 2 ? 94 : 108;
	case SIZE_FX:
		return 512;
	}
	return 0;
}

static void touch(struct insn_effects *e, unsigned int reg, uint8_t access, unsigned int bytes)
{
	const uint16_t bit = 1u << reg;

	if (access & ACCESS_R)
		e->read |= bit;
	if (access & ACCESS_W) {
		e->written |= bit;
		if (bytes < 4)
			e->read |= bit;
	}
}

static struct insn_memory *add_memory(struct insn_effects *e, uint8_t base, uint8_t access,
				      uint16_t size)
{
	struct insn_memory *m = &e->memory[e->nr_memory++];

	*m = (struct insn_memory){
		.base = base,
		.index = INSN_NO_REGISTER,
		.access = access,
		.size = size,
	};
	if (base != INSN_NO_REGISTER)
		e->read |= 1u << base;
	return m;
}

/* What a one-byte displacement of an EVEX instruction counts in. */
static unsigned int granule(const struct insn *insn, const struct insn_memory *m)
{
	const uint8_t explicit = insn->shape->granule;

	return explicit ? bytes_of(insn, explicit) : m->size;
}

static void modrm_memory(const struct insn *insn, struct insn_effects *e)
{
	const struct insn_shape *s = insn->shape;
	const bool one = insn->broadcast && s->element;
	struct insn_memory *m = add_memory(e, INSN_NO_REGISTER, s->rm_access,
					   bytes_of(insn, one ? s->element : s->rm_size));
	const uint8_t high_base = insn->rex & REX_B ? 8 : 0;
	const uint8_t mod = insn->modrm >> 6, rm = insn->modrm & 7;

	m->disp = insn->disp;
	m->rip_relative = insn->rip_relative;
	if (insn->encoding == INSN_EVEX && insn->disp_size == 1)
		m->disp *= granule(insn, m);
	if (rm == 4) {
		m->vsib = s->traits & TRAIT_GATHER;
		m->scale = insn->sib >> 6;
		m->index = (insn->sib >> 3 & 7) | (insn->rex & REX_X ? 8 : 0);
		if (m->vsib && insn->encoding == INSN_EVEX)
			m->index |= insn->vvvv & 0x10;
		if (m->index == 4 && !m->vsib)
			m->index = INSN_NO_REGISTER;
		if (mod || (insn->sib & 7) != 5)
			m->base = (insn->sib & 7) | high_base;
	} else if (!insn->rip_relative) {
		m->base = rm | high_base;
	}
	if (m->base != INSN_NO_REGISTER)
		e->read |= 1u << m->base;
	if (m->index != INSN_NO_REGISTER && !m->vsib)
		e->read |= 1u << m->index;
}

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

static void stack_effects(const struct insn *insn, struct insn_effects *e)
{
	const uint32_t traits = insn->shape->traits;
	/* Branches keep to 8 bytes. */
	const unsigned int size = insn->class == INSN_PLAIN ? bytes_of(insn, SIZE_S) : 8;

	touch(e, RSP, ACCESS_RW, 8);
	if (traits & TRAIT_PUSH)
		add_memory(e, RSP, ACCESS_W, size)->disp = -(int)size;
	else
		add_memory(e, traits & TRAIT_LEAVE ? RBP : RSP, ACCESS_R, size);
}

static void string_effects(const struct insn *insn, struct insn_effects *e)
{
	const struct insn_shape *s = insn->shape;

	if (s->traits & TRAIT_DESTINATION) {
		add_memory(e, RDI, s->destination_access, bytes_of(insn, s->destination_size));
		touch(e, RDI, ACCESS_RW, 8);
	}
	if (s->traits & TRAIT_SOURCE) {
		add_memory(e, RSI, ACCESS_R, bytes_of(insn, s->source_size));
		touch(e, RSI, ACCESS_RW, 8);
	}
	if (!(insn->prefixes & (PREFIX_REP | PREFIX_REPNE)))
		return;
	/* With rcx at 0 nothing happens at all. */
	touch(e, RCX, ACCESS_RW, 8);
	e->read |= e->written;
}

/*
 * A shift by nothing keeps the flags; only an immediate count is known here. Rotations through
 * carry take the count modulo 9 or 17, too.
 */
static bool may_shift_by_zero(const struct insn *insn)
{
	const unsigned int significant = insn->rex & REX_W ? 63 : 31;

	return !insn->imm_size || !(insn->imm & significant) || insn->shape->flags_read;
}

/* A general register of @size, where without REX the byte registers 4 to 7 are ah, ch, dh and bh.
 */
static void touch_general(const struct insn *insn, struct insn_effects *e, unsigned int number,
			  bool high, uint8_t size, uint8_t access)
{
	const unsigned int bytes = bytes_of(insn, size);

	if (high)
		number |= 8;
	else if (bytes == 1 && !insn->has_rex && number >= 4)
		number -= 4;
	touch(e, number, access, bytes);
}

static void operand_effects(const struct insn *insn, struct insn_effects *e)
{
	const struct insn_shape *s = insn->shape;

	if (s->rm == RM_ABSOLUTE)
		add_memory(e, INSN_NO_REGISTER, s->rm_access, bytes_of(insn, s->rm_size))->disp =
			insn->imm;
	else if (s->rm && insn->modrm >> 6 != 3)
		modrm_memory(insn, e);
	else if (s->rm == RM_GENERAL)
		touch_general(insn, e, insn->modrm & 7, insn->rex & REX_B, s->rm_size,
			      s->rm_access);
	if (s->reg_access)
		touch_general(insn, e, insn->modrm >> 3 & 7, insn->rex & REX_R, s->reg_size,
			      s->reg_access);
	if (s->opreg_access)
		touch_general(insn, e, insn->opcode & 7, insn->rex & REX_B, s->opreg_size,
			      s->opreg_access);
	if (s->vvvv_access)
		touch(e, insn->vvvv, s->vvvv_access, 8);
}

static bool memory_in_gs(const struct insn *insn)
{
	struct insn_effects effects;

	insn_effects(insn, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++)
		if (effects.memory[i].access != ACCESS_NONE)
			return true;
	return false;
}

bool insn_uses_gs(const struct insn *insn)
{
	const unsigned int reg = insn->modrm >> 3 & 7;

	if ((insn->prefixes & PREFIX_GS) && memory_in_gs(insn))
		return true;
	switch (insn->map << 8 | insn->opcode) {
	case 0x08e: /* mov to gs */
		return reg == 5;
	case 0x1a9: /* pop gs */
	case 0x1b5: /* lgs */
		return true;
	case 0x1ae: /* rdgsbase, wrgsbase */
		return (insn->shape->traits & TRAIT_FSGS) && (reg & 1);
	}
	return false;
}

void insn_flags(const struct insn *insn, uint8_t *read, uint8_t *written)
{
	const struct insn_shape *s = insn->shape;
	const bool repeated = insn->prefixes & (PREFIX_REP | PREFIX_REPNE);

	*read = s->flags_read;
	*written = s->flags_written;
	if (((s->traits & TRAIT_COUNT) && may_shift_by_zero(insn)) ||
	    ((s->traits & TRAIT_STRING) && repeated))
		*read |= *written;
}

void insn_effects(const struct insn *insn, struct insn_effects *effects)
{
	const struct insn_shape *s = insn->shape;

	*effects = (struct insn_effects){
		.read = s->reads,
		.written = s->writes,
	};
	insn_flags(insn, &effects->flags_read, &effects->flags_written);
	/* 90 is the nop that xchg rax, rax once was, with f3 pause; with REX.B it is still an xchg.
	 */
	if (insn->opcode == 0x90 && s->opreg_access &&
	    (!(insn->rex & REX_B) || insn->prefixes & PREFIX_REP)) {
		effects->read = effects->written = 0;
		return;
	}
	if (operand_size(insn) == 2)
		effects->read |= s->partial & s->writes;
	operand_effects(insn, effects);
	if (s->traits & (TRAIT_PUSH | TRAIT_POP))
		stack_effects(insn, effects);
	if (s->traits & TRAIT_STRING)
		string_effects(insn, effects);
	if (s->traits & TRAIT_MOVDIR64B)
		add_memory(effects, (insn->modrm >> 3 & 7) | (insn->rex & REX_R ? 8 : 0), ACCESS_W,
			   64);
	if (s->traits & TRAIT_CLZERO)
		add_memory(effects, RAX, ACCESS_W, 64);
	if (s->traits & TRAIT_XLAT)
		add_memory(effects, RBX, ACCESS_R, 1);
	if (s->traits & (TRAIT_MASKMOVQ | TRAIT_MASKMOVDQU))
		add_memory(effects, RDI, ACCESS_W, s->traits & TRAIT_MASKMOVQ ? 8 : 16);
}
