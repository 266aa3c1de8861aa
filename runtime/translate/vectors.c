// SPDX-License-Identifier: MIT
/*
 * Code that counts (count.c) or traces (trace.c) has vector registers of its own. While a thread is
 * in it, the program's values of them lie in the thread; what the code has there goes home when it
 * is left (enter.S, recover.c): to the place that struct lookup names. Instructions of the program
 * that touch such a register get it:
 *
 *	movaps %xmm15, %gs:HOME; movaps %gs:VECTORS, %xmm15
 *	...
 *	movaps %xmm15, %gs:VECTORS; movaps %gs:HOME, %xmm15
 *
 * and keep it until the code needs it. All this is done by instructions without VEX, since they
 * leave the rest of ymm15 and zmm15 alone, which so remain the program's own all the time.
 */
#include "runtime/translate/vectors.h"

#include "runtime/translate/build.h"

_Static_assert(VECTORS_MAX == sizeof((struct thread){0}.vectors) / 16, "");

/* movaps between the register and %gs:word */
static void emit_move(struct builder *b, uint8_t opcode, unsigned int n, uint32_t word)
{
	emit8(b, segment_prefix);
	EMIT(b, 0x44, 0x0f);
	emit8(b, opcode);
	emit8(b, 0x04 | (7 - n) << 3);
	emit8(b, 0x25);
	emit32(b, word);
}

static void emit_store(struct builder *b, unsigned int n, uint32_t word)
{
	emit_move(b, 0x29, n, word);
}

static void emit_load(struct builder *b, unsigned int n, uint32_t word)
{
	emit_move(b, 0x28, n, word);
}

static uint32_t home(const struct builder *b, unsigned int n)
{
	return b->cache->lookup.home + 16 * n;
}

static uint32_t program_value(unsigned int n)
{
	return THREAD_VECTORS + 16 * n;
}

void vectors_store(struct builder *b, uint8_t vectors)
{
	for_each_vector(n, vectors)
		emit_store(b, n, home(b, n));
}

void vectors_lend(struct builder *b, uint8_t vectors)
{
	for_each_vector(n, vectors & ~b->theirs) {
		emit_store(b, n, home(b, n));
		emit_load(b, n, program_value(n));
		b->theirs |= 1u << n;
		mark_pc(b, b->pc, 0);
	}
}

void vectors_take_back(struct builder *b)
{
	for_each_vector(n, b->theirs) {
		emit_store(b, n, program_value(n));
		emit_load(b, n, home(b, n));
		b->theirs &= ~(1u << n);
		mark_pc(b, b->pc, 0);
	}
}

uint8_t vectors_asked(const struct builder *b)
{
	const uint16_t asked = insn_vectors(&b->insn);
	uint8_t vectors = 0;

	if (__builtin_expect(asked >> (16 - VECTORS_MAX) == 0, 1))
		return 0;
	for (unsigned int n = 0; n < b->cache->lookup.vectors; n++)
		vectors |= (asked >> (15 - n) & 1) << n;
	return vectors;
}
