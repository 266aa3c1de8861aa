// SPDX-License-Identifier: MIT
/*
 * Operands that say where they are relative to the instruction. The copy stands elsewhere, so
 *
 *	within reach		the same instruction with another disp32
 *	in the low 2 GiB	[disp32] by way of a sib byte without base and index
 *	else			through a register that the instruction leaves alone, kept in the
 *				thread's slot for rax meanwhile
 */
#include "runtime/translate/build.h"

static uint64_t operand_address(const struct builder *b)
{
	const uint64_t address = b->pc + b->insn.length + (uint64_t)(int64_t)b->insn.disp;

	return b->insn.prefixes & PREFIX_ADDRESS ? (uint32_t)address : address;
}

void operand_put(struct builder *b, const uint8_t *bytes, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		b->at[i] = bytes[i];
	b->at += n;
}

/* What comes behind the operand: immediates. */
static void put_rest(struct builder *b)
{
	const unsigned int from = b->insn.disp_at + 4;

	operand_put(b, b->code + from, b->insn.length - from);
}

enum reg operand_register(const struct insn *insn)
{
	static const uint8_t candidates[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSI};
	struct insn_effects effects;

	insn_effects(insn, &effects);
	for (unsigned int i = 0; i < sizeof(candidates) - 1; i++)
		if (!((effects.read | effects.written) >> candidates[i] & 1))
			return candidates[i];
	return REG_RSI;
}

static bool is_lea(const struct insn *insn)
{
	return insn->encoding == INSN_LEGACY && insn->opcode == 0x8d && insn->opcode_at &&
	       !(insn->prefixes & PREFIX_OPERAND);
}

/* lea far away is movabs: REX.W B8+r imm64 */
static void far_lea(struct builder *b, uint64_t address)
{
	const uint8_t r = b->insn.rex & REX_R ? 1 : 0;

	if (!(b->insn.rex & REX_W))
		address = (uint32_t)address;
	emit8(b, 0x48 | r);
	emit8(b, 0xb8 | (b->insn.modrm >> 3 & 7));
	emit64(b, address);
}

void operand_clear_bit(const struct insn *insn, uint8_t *copy, uint8_t bit)
{
	/* Where it is inverted, beside that of REX_R. */
	const uint8_t inverted = bit << 5;
	uint8_t *p = copy + insn->modrm_at - 1;

	switch (insn->encoding) {
	case INSN_LEGACY:
		/* REX is the last byte before the opcode, of which 0f, 0f38 and 0f3a are a part. */
		if (!insn->has_rex)
			return;
		while ((p[-1] & 0xf0) != 0x40)
			p--;
		p[-1] &= ~bit;
		return;
	case INSN_EVEX:
		p[-3] |= inverted;
		return;
	case INSN_VEX:
	case INSN_XOP:
		/* c5 has no such bit, and no prefix of three bytes has a c5 there: that map is
		 * none. */
		if (p[-2] != 0xc5)
			p[-2] |= inverted;
		return;
	}
}

static void through_register(struct builder *b, uint64_t address)
{
	const struct insn *insn = &b->insn;
	const enum reg reg = operand_register(insn);
	struct state state = {.pc = b->pc, .spills = SPILL_FAR, .far = reg};
	uint8_t *copy;

	emit_spill(b, reg, THREAD_RAX);
	mark(b, state);
	emit8(b, 0x48);
	emit8(b, 0xb8 | reg);
	emit64(b, address);
	copy = b->at;
	operand_put(b, b->code, insn->modrm_at);
	operand_clear_bit(insn, copy, REX_B);
	emit8(b, (insn->modrm & 0x38) | reg);
	put_rest(b);
	state.pc = b->pc + insn->length;
	mark(b, state);
	emit_fill(b, reg, THREAD_RAX);
}

void emit_rip_relative(struct builder *b)
{
	const struct insn *insn = &b->insn;
	const uint64_t address = operand_address(b);
	const bool narrow = insn->prefixes & PREFIX_ADDRESS;

	if (!narrow && reaches(b, address, insn->length)) {
		const uint32_t disp = address - (here(b) + insn->length);

		operand_put(b, b->code, insn->length);
		__builtin_memcpy(b->at - insn->length + insn->disp_at, &disp, 4);
	} else if (narrow || address < 1UL << 31) {
		uint8_t *const copy = b->at;

		operand_put(b, b->code, insn->modrm_at);
		operand_clear_bit(insn, copy, REX_X);
		emit8(b, (insn->modrm & 0x38) | 4);
		emit8(b, 0x25);
		emit32(b, (uint32_t)address);
		put_rest(b);
	} else if (is_lea(insn)) {
		far_lea(b, address);
	} else {
		through_register(b, address);
	}
}

void emit_operand_to_rcx(struct builder *b)
{
	const struct insn *insn = &b->insn;
	const uint64_t address = operand_address(b);
	const uint8_t modrm = (insn->modrm & 0xc7) | REG_RCX << 3;
	const bool narrow = insn->prefixes & PREFIX_ADDRESS;
	const bool near = !narrow && reaches(b, address, 0) && reaches(b, address, INSN_MAX);
	const bool through = insn->rip_relative && !near && !narrow && address >= 1UL << 31;

	if (through) {
		EMIT(b, 0x48, 0xb9);
		emit64(b, address);
	}
	if (insn->prefixes & PREFIX_FS)
		emit8(b, 0x64);
	if (narrow)
		emit8(b, 0x67);
	if (through) {
		EMIT(b, 0x48, 0x8b, 0x09); /* mov (%rcx), %rcx */
		return;
	}
	emit8(b, 0x48 | (insn->rip_relative ? 0 : insn->rex & (REX_X | REX_B)));
	emit8(b, 0x8b);
	if (!insn->rip_relative) {
		emit8(b, modrm);
		operand_put(b, b->code + insn->modrm_at + 1, insn->length - insn->modrm_at - 1);
	} else if (near) {
		emit8(b, modrm);
		emit_relative(b, address);
	} else {
		emit8(b, 0x04 | REG_RCX << 3);
		emit8(b, 0x25);
		emit32(b, (uint32_t)address);
	}
}
