// SPDX-License-Identifier: MIT
/*
 * Code on pages that are written to again and again, because data lies beside it or a compiler is
 * at work. To be told of each write by a fault would cost a thousand times what is written, so
 * these pages stay writable and each fragment begins by comparing what it was made from with what
 * is there now. It has one entry and ends with the first instruction that branches or writes, since
 * that could change what comes next.
 */
#include "runtime/translate/build.h"

/* The longest run of the program's code that is compared. */
#define CHECKED_BYTES 48

static bool writes_memory(const struct insn *insn)
{
	struct insn_effects effects;

	insn_effects(insn, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++)
		if (effects.memory[i].access & ACCESS_W)
			return true;
	return false;
}

bool plan_check(struct builder *b, struct build_fault *fault)
{
	const uint64_t start = b->pc;
	unsigned int n = 0;
	bool last = false;

	while (!last && b->pc - start <= CHECKED_BYTES - INSN_MAX && fetch(b, fault)) {
		last = b->insn.class != INSN_PLAIN || writes_memory(&b->insn);
		b->pc += b->insn.length;
		n++;
	}
	b->fragment->checked = b->pc - start;
	b->limit = n;
	b->pc = start;
	return n;
}

/* mov with zero extension of @size bytes at (%rdx) to rdx */
static void emit_load(struct builder *b, unsigned int size)
{
	switch (size) {
	case 8:
		EMIT(b, 0x48, 0x8b, 0x12);
		break;
	case 4:
		EMIT(b, 0x8b, 0x12);
		break;
	case 2:
		EMIT(b, 0x0f, 0xb7, 0x12);
		break;
	case 1:
		EMIT(b, 0x0f, 0xb6, 0x12);
		break;
	}
}

/* A word of the program's code: in place, or where a rehearsal has it. It makes no difference there
 * what it is. */
static uint64_t word_at(const struct builder *b, uint64_t pc, unsigned int size)
{
	uint64_t word = 0;

	if (!b->asked)
		__builtin_memcpy(&word, (const void *)pc, size);
	return word;
}

/*
 *	movabs $-word, %rcx; movabs $pc, %rdx; mov (%rdx), %rdx; lea (%rcx, %rdx), %rcx
 *	jrcxz 1f; jmp stale; 1:
 */
static void emit_compare(struct builder *b, uint64_t pc, unsigned int size, uint8_t *stale)
{
	EMIT(b, 0x48, 0xb9);
	emit64(b, -word_at(b, pc, size));
	EMIT(b, 0x48, 0xba);
	emit64(b, pc);
	emit_load(b, size);
	EMIT(b, 0x48, 0x8d, 0x0c, 0x11, 0xe3, 5, 0xe9);
	emit32(b, (uint32_t)(stale - (b->at + 4)));
}

static void emit_restore(struct builder *b)
{
	emit_fill(b, REG_RCX, THREAD_RCX);
	emit_fill(b, REG_RDX, THREAD_RDX);
	mark_pc(b, b->pc, 0);
}

/*
 *	jmp 2f
 * stale: restore; exit
 * 2:	spill; compare ...; restore
 */
void emit_check(struct builder *b)
{
	const uint8_t spills = SPILL_RCX | SPILL_RDX;
	const uint64_t end = b->pc + b->fragment->checked;
	uint8_t *skip, *stale;

	EMIT(b, 0xeb, 0);
	skip = stale = b->at;
	mark_pc(b, b->pc, spills);
	emit_restore(b);
	emit_exit_jump(b, b->pc, EXIT_STALE);
	skip[-1] = b->at - skip;
	emit_spill(b, REG_RCX, THREAD_RCX);
	emit_spill(b, REG_RDX, THREAD_RDX);
	mark_pc(b, b->pc, spills);
	for (uint64_t pc = b->pc; pc < end;) {
		unsigned int size = 8;

		while (size > end - pc)
			size /= 2;
		emit_compare(b, pc, size, stale);
		pc += size;
	}
	emit_restore(b);
}
