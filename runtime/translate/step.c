// SPDX-License-Identifier: MIT
/*
 * What one instruction of the program becomes. Plain ones are copied; branch.c draws what those
 * become that lead elsewhere.
 */
#include "runtime/translate/build.h"

void emit_exit(struct builder *b, uint64_t target, enum exit_kind kind)
{
	if (b->draft)
		b->draft->exits[b->nr_exits] = (struct draft_exit){
			.to = {.pc = target,
			       .kind = kind,
			       .length = b->insn.length,
			       .gone = (uint16_t)b->count.gone},
			.site = b->at - b->cache->lookup.code,
		};
	b->nr_exits++;
	emit32(b, 0);
}

void emit_exit_jump(struct builder *b, uint64_t target, enum exit_kind kind)
{
	align_patch(b, 1);
	emit8(b, 0xe9);
	emit_exit(b, target, kind);
}

static void copy(struct builder *b)
{
	uint64_t words[2];

	__builtin_memcpy(words, b->code, 16);
	__builtin_memcpy(b->at, words, 16);
	b->at += b->insn.length;
}

static void plain(struct builder *b)
{
	if (__builtin_expect(insn_reaches_fs(&b->insn), 0))
		filter_forget_fs(b);
	if (__builtin_expect(segment_is_fs() && own_fs_changes(&b->insn), 0))
		emit_own_fs(b);
	else if (__builtin_expect(b->insn.rip_relative, 0))
		emit_rip_relative(b);
	else
		copy(b);
}

static enum next control(struct builder *b)
{
	const struct insn *insn = &b->insn;
	const uint64_t next = b->pc + insn->length;

	switch (insn->class) {
	case INSN_JCC:
		emit_jcc(b);
		break;
	case INSN_JMP:
		b->pc = insn_target(insn, b->pc);
		return GO_ON;
	case INSN_JMP_INDIRECT:
		emit_jump_indirect(b);
		return STOPPED;
	case INSN_CALL:
		emit_call(b);
		break;
	case INSN_CALL_INDIRECT:
		emit_call_indirect(b);
		break;
	case INSN_RET:
		emit_return(b);
		return STOPPED;
	case INSN_LOOP:
		emit_loop(b);
		break;
	case INSN_XBEGIN:
		emit_xbegin(b);
		return STOPPED;
	case INSN_SYSCALL:
		emit_exit_jump(b, b->pc, EXIT_SYSCALL);
		return STOPPED;
	case INSN_INTERRUPT:
		if (insn->opcode == 0xcd && (uint8_t)insn->imm == 0x80) {
			emit_exit_jump(b, b->pc, EXIT_INT80);
			return STOPPED;
		}
		copy(b);
		b->pc = next;
		return STOP;
	case INSN_FAR:
	case INSN_IRET:
		emit_exit_jump(b, b->pc, EXIT_DETACH);
		return STOPPED;
	}
	b->pc = next;
	return GO_ON;
}

/* Counters that the processor has are not the program's. */
static bool is_rdpmc(const struct insn *insn)
{
	return insn->opcode == 0x33 && insn->map == 1 && insn->encoding == INSN_LEGACY;
}

/* It makes a system call of 32 bits, and comes back to where nothing is that was translated. */
static bool is_sysenter(const struct insn *insn)
{
	return insn->opcode == 0x34 && insn->map == 1 && insn->encoding == INSN_LEGACY;
}

enum next emit_insn(struct builder *b)
{
	enum next next = GO_ON;

	emit_miss_in_reach(b);
	mark_pc(b, b->pc, 0);
	filter_entry(b);
	if (b->draft)
		b->draft->insns[b->nr_insns] =
			(struct position){b->pc, offset_here(b), count_level(b),
					  count_may_enter(b) && filter_may_enter(b)};
	b->begin = b->at;
	filter_before(b);
	if (b->count.kinds)
		count_before(b);
	if (b->trace.on)
		trace_before(b);
	if (b->count.traced && b->count.kinds)
		count_traced(b);
	b->nr_insns++;
	b->source_end = b->pc + b->insn.length;
	if (__builtin_expect(insn_uses_gs(&b->insn) ||
				     (segment_is_fs() && own_fs_forbids(&b->insn)) ||
				     is_sysenter(&b->insn),
			     0)) {
		count_leave(b);
		trace_leave(b);
		emit_exit_jump(b, b->pc, EXIT_DETACH);
		next = STOPPED;
	} else if (__builtin_expect(is_rdpmc(&b->insn), 0)) {
		count_leave(b);
		trace_leave(b);
		emit_exit_jump(b, b->pc, EXIT_RDPMC);
		next = STOPPED;
	} else if (b->insn.class != INSN_PLAIN) {
		next = control(b);
	} else {
		plain(b);
		b->pc += b->insn.length;
	}
	if (b->count.kinds)
		count_after(b);
	if (b->trace.on)
		trace_after(b);
	filter_after(b);
	return next;
}
