// SPDX-License-Identifier: MIT
/*
 * Operands by FS where FS is the runtime's (runtime/segment.h): through a register that the
 * instruction leaves alone, kept in the thread's slot for rax meanwhile.
 *
 *	mov %rax, %fs:RAX
 *	mov %fs:FS, %rax
 *	lea (%rax, BASE), %rax
 *	lea (%rax, INDEX, scale), %rax
 *	...	disp32(%rax)
 *	mov %fs:RAX, %rax
 *
 * This is done for operands that a ModRM byte names, of instructions that are copied. The others, and
 * what reads or writes FS itself, are rare enough to be the end of translation, as GS is.
 */
#include "runtime/translate/build.h"

/* The operand that goes by FS, or NULL. */
static const struct insn_memory *by_fs(const struct insn_effects *effects)
{
	for (unsigned int i = 0; i < effects->nr_memory; i++)
		if (effects->memory[i].prefixes & PREFIX_FS &&
		    effects->memory[i].access != ACCESS_NONE)
			return &effects->memory[i];
	return NULL;
}

static bool has_modrm_operand(const struct insn *insn)
{
	return insn->class == INSN_PLAIN && insn->modrm_at && insn->modrm >> 6 != 3;
}

static bool can_go_through_register(const struct insn *insn, const struct insn_effects *effects,
				    const struct insn_memory *m)
{
	return has_modrm_operand(insn) && m == effects->memory && !m->vsib && !m->aligned &&
	       !m->rip_relative && !(m->prefixes & PREFIX_ADDRESS) && fits32(m->disp);
}

bool own_fs_forbids(const struct insn *insn)
{
	struct insn_effects effects;
	const struct insn_memory *m;

	if (insn_reaches_fs(insn))
		return true;
	if (!(insn->prefixes & PREFIX_FS))
		return false;
	insn_effects(insn, &effects);
	m = by_fs(&effects);
	return m && !can_go_through_register(insn, &effects, m);
}

bool own_fs_changes(const struct insn *insn)
{
	struct insn_effects effects;

	if (!(insn->prefixes & PREFIX_FS))
		return false;
	insn_effects(insn, &effects);
	return by_fs(&effects);
}

static bool is_rex(uint8_t byte)
{
	return (byte & 0xf0) == 0x40;
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
	case SEGMENT_FS:
	case SEGMENT_GS:
		return true;
	}
	return is_rex(byte);
}

/* A REX that does not come last does not count, and would where the prefix behind it is missing. */
static bool is_left_out(const uint8_t *prefix)
{
	return prefix[0] == SEGMENT_FS || prefix[0] == SEGMENT_GS ||
	       (is_rex(prefix[0]) && is_prefix(prefix[1]));
}

/* What comes before ModRM, without prefixes of segments: returns by how much it is shorter. */
static unsigned int put_beginning(struct builder *b)
{
	unsigned int at = 0, less = 0;

	for (; is_prefix(b->code[at]); at++)
		if (is_left_out(b->code + at))
			less++;
		else
			emit8(b, b->code[at]);
	operand_put(b, b->code + at, b->insn.modrm_at - at);
	return less;
}

/* Behind the operand: immediates. */
static unsigned int operand_end(const struct insn *insn)
{
	if (insn->disp_size)
		return insn->disp_at + insn->disp_size;
	return insn->modrm_at + 1 + ((insn->modrm & 7) == 4);
}

void emit_own_fs(struct builder *b)
{
	const struct insn *insn = &b->insn;
	const enum reg reg = operand_register(insn);
	struct state state = {.pc = b->pc, .spills = SPILL_FAR, .far = reg};
	const unsigned int end = operand_end(insn);
	struct insn_effects effects;
	const struct insn_memory *m;
	uint8_t *copy;

	insn_effects(insn, &effects);
	m = by_fs(&effects);
	emit_spill(b, reg, THREAD_RAX);
	mark(b, state);
	emit_fill(b, reg, THREAD_FS);
	if (m->base != INSN_NO_REGISTER)
		emit_lea_of(b, reg, m->base, reg, 0, 0);
	if (m->index != INSN_NO_REGISTER)
		emit_lea_of(b, reg, reg, m->index, m->scale, 0);
	copy = b->at;
	copy -= put_beginning(b);
	operand_clear_bit(insn, copy, REX_B);
	emit8(b, 0x80 | (insn->modrm & 0x38) | reg);
	emit32(b, (uint32_t)m->disp);
	operand_put(b, b->code + end, insn->length - end);
	state.pc = b->pc + insn->length;
	mark(b, state);
	emit_fill(b, reg, THREAD_RAX);
}
