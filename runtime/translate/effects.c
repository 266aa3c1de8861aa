// SPDX-License-Identifier: MIT
/* What an instruction reads and writes: registers, flags, memory. */
#include "runtime/translate/shape.h"

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
		.bits = INSN_NO_REGISTER,
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
	m->prefixes = insn->prefixes & (PREFIX_ADDRESS | PREFIX_FS);
	if (s->traits & TRAIT_BITBASE)
		m->bits = (insn->modrm >> 3 & 7) | (insn->rex & REX_R ? 8 : 0);
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
	if (traits & TRAIT_PUSH) {
		add_memory(e, RSP, ACCESS_W, size)->disp = -(int)size;
		return;
	}
	/* What a pop writes to is reached by rsp as it is behind. */
	if (e->nr_memory && e->memory[0].base == RSP)
		e->memory[0].disp += size;
	add_memory(e, traits & TRAIT_LEAVE ? RBP : RSP, ACCESS_R, size);
}

static void string_effects(const struct insn *insn, struct insn_effects *e)
{
	const uint8_t both = insn->prefixes & (PREFIX_ADDRESS | PREFIX_FS);
	const struct insn_shape *s = insn->shape;

	if (s->traits & TRAIT_DESTINATION) {
		add_memory(e, RDI, s->destination_access, bytes_of(insn, s->destination_size))
			->prefixes = insn->prefixes & PREFIX_ADDRESS;
		touch(e, RDI, ACCESS_RW, 8);
	}
	if (s->traits & TRAIT_SOURCE) {
		add_memory(e, RSI, ACCESS_R, bytes_of(insn, s->source_size))->prefixes = both;
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

static void absolute_memory(const struct insn *insn, struct insn_effects *e)
{
	const struct insn_shape *s = insn->shape;
	struct insn_memory *m =
		add_memory(e, INSN_NO_REGISTER, s->rm_access, bytes_of(insn, s->rm_size));

	m->disp = insn->imm;
	m->prefixes = insn->prefixes & (PREFIX_ADDRESS | PREFIX_FS);
}

static void operand_effects(const struct insn *insn, struct insn_effects *e)
{
	const struct insn_shape *s = insn->shape;

	if (s->rm == RM_ABSOLUTE)
		absolute_memory(insn, e);
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

/* Operands that the opcode implies. */
static void implied_effects(const struct insn *insn, struct insn_effects *e)
{
	const uint8_t reg = (insn->modrm >> 3 & 7) | (insn->rex & REX_R ? 8 : 0);
	const uint8_t both = insn->prefixes & (PREFIX_ADDRESS | PREFIX_FS);
	const uint32_t traits = insn->shape->traits;

	if (traits & TRAIT_MOVDIR64B)
		add_memory(e, reg, ACCESS_W, 64)->prefixes = insn->prefixes & PREFIX_ADDRESS;
	if (traits & TRAIT_CLZERO) {
		struct insn_memory *line = add_memory(e, RAX, ACCESS_W, 64);

		line->aligned = true;
		line->prefixes = both;
	}
	if (traits & TRAIT_XLAT)
		add_memory(e, RBX, ACCESS_R, 1)->prefixes = both;
	if (traits & (TRAIT_MASKMOVQ | TRAIT_MASKMOVDQU))
		add_memory(e, RDI, ACCESS_W, traits & TRAIT_MASKMOVQ ? 8 : 16)->prefixes = both;
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
	implied_effects(insn, effects);
}
