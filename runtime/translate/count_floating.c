// SPDX-License-Identifier: MIT
/*
 * Floating point arithmetic. Where it is counted all is counted in memory (due.c): programs that
 * compute so have no vector registers to spare.
 *
 * Where the model counts it knows nothing of this, and code that traces is left in more places than
 * code that counts. So there each such instruction has been counted when it is executed:
 *
 *	mov %rax, %gs:RAX
 *	mov %gs:COUNTER, %rax; lea AMOUNT(%rax), %rax; mov %rax, %gs:COUNTER
 *	mov %gs:RAX, %rax
 */
#include "runtime/translate/build.h"

void count_floating(struct counts *counts, const struct insn *insn)
{
	static const uint8_t flops[] = {
		[INSN_ADD] = CORE_FLOPS_ADD,	   [INSN_MULTIPLY] = CORE_FLOPS_MULTIPLY,
		[INSN_DIVIDE] = CORE_FLOPS_DIVIDE, [INSN_FMA] = CORE_FLOPS_FMA,
		[INSN_DOT] = CORE_FLOPS_MULTIPLY,  [INSN_BFLOAT] = CORE_FLOPS_BFLOAT,
	};
	const struct insn_floating f = insn_floating(insn);
	const uint8_t pair = f.vector ? __builtin_ctz(f.vector) - 3 : 0;
	const uint8_t shape = f.is_half ? CORE_FP_SCALAR_HALF + pair
					: CORE_FP_SCALAR_DOUBLE + 2 * pair + !f.is_double;

	if (f.arithmetic == INSN_NO_ARITHMETIC)
		return;
	if (f.arithmetic == INSN_BFLOAT) {
		counts->of[CORE_FLOPS_BFLOAT] = (int8_t)(4 * f.elements);
		return;
	}
	counts->of[shape] = f.arithmetic == INSN_FMA || f.arithmetic == INSN_DOT ? 2 : 1;
	if (f.arithmetic == INSN_OTHER)
		return;
	counts->of[flops[f.arithmetic]] =
		(int8_t)(f.arithmetic == INSN_FMA ? 2 * f.elements : f.elements);
	if (f.arithmetic == INSN_DOT)
		counts->of[CORE_FLOPS_ADD] = (int8_t)f.elements;
}

static bool any(const struct counts *counts)
{
	for (unsigned int kind = CORE_FP_SCALAR_DOUBLE; kind < COUNT_KINDS; kind++)
		if (counts->of[kind])
			return true;
	return false;
}

/* lea amount(%rax), %rax */
static void emit_lea(struct builder *b, int8_t amount)
{
	EMIT(b, 0x48, 0x8d, 0x40);
	emit8(b, (uint8_t)amount);
}

void count_traced(struct builder *b)
{
	struct count *c = &b->count;

	c->insn = count_insn(c, &b->insn);
	if (!any(&c->insn))
		return;
	emit_spill(b, REG_RAX, THREAD_RAX);
	mark_pc(b, b->pc, SPILL_RAX);
	for (unsigned int kind = CORE_FP_SCALAR_DOUBLE; kind < COUNT_KINDS; kind++) {
		const uint32_t counter = THREAD_EVENTS + CORE_TASK_COUNTERS + 8 * kind;

		if (!c->insn.of[kind])
			continue;
		emit_fill(b, REG_RAX, counter);
		emit_lea(b, c->insn.of[kind]);
		emit_spill(b, REG_RAX, counter);
		c->left.of[kind] -= c->insn.of[kind];
		mark_pc(b, b->pc, SPILL_RAX);
	}
	emit_fill(b, REG_RAX, THREAD_RAX);
	mark_pc(b, b->pc, 0);
}
