// SPDX-License-Identifier: MIT
#include "runtime/linux/seccomp_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>

#include "runtime/string.h"

struct machine {
	uint32_t a, x;
	uint32_t memory[BPF_MEMWORDS];
	const struct seccomp_data *data;
};

static uint32_t word_at(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

static uint32_t loaded(const struct machine *m, const struct sock_filter *insn)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_IMM:
		return insn->k;
	case BPF_MEM:
		return m->memory[insn->k];
	case BPF_ABS:
		return word_at(m->data, insn->k);
	default: /* BPF_LEN */
		return sizeof(*m->data);
	}
}

static uint32_t computed(uint32_t a, uint16_t code, uint32_t by)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + by;
	case BPF_SUB:
		return a - by;
	case BPF_MUL:
		return a * by;
	case BPF_DIV:
		return a / by;
	case BPF_AND:
		return a & by;
	case BPF_OR:
		return a | by;
	case BPF_XOR:
		return a ^ by;
	case BPF_LSH:
		return a << (by & 31);
	case BPF_RSH:
		return a >> (by & 31);
	default: /* BPF_NEG */
		return -a;
	}
}

static bool holds(uint32_t a, uint16_t code, uint32_t with)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == with;
	case BPF_JGT:
		return a > with;
	case BPF_JGE:
		return a >= with;
	default: /* BPF_JSET */
		return a & with;
	}
}

uint32_t seccomp_filter_run(const struct sock_filter *instructions, const struct seccomp_data *data)
{
	struct machine m = {.data = data};

	/* Jumps lead ahead only, and the last instruction returns. */
	for (const struct sock_filter *insn = instructions;; insn++) {
		const uint32_t operand = BPF_SRC(insn->code) == BPF_X ? m.x : insn->k;

		switch (BPF_CLASS(insn->code)) {
		case BPF_LD:
			m.a = loaded(&m, insn);
			break;
		case BPF_LDX:
			m.x = loaded(&m, insn);
			break;
		case BPF_ST:
			m.memory[insn->k] = m.a;
			break;
		case BPF_STX:
			m.memory[insn->k] = m.x;
			break;
		case BPF_ALU:
			if (BPF_OP(insn->code) == BPF_DIV && !operand)
				return SECCOMP_RET_KILL_THREAD; /* as the kernel: 0 */
			m.a = computed(m.a, insn->code, operand);
			break;
		case BPF_JMP:
			if (BPF_OP(insn->code) == BPF_JA)
				insn += insn->k;
			else
				insn += holds(m.a, insn->code, operand) ? insn->jt : insn->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(insn->code) == BPF_A ? m.a : insn->k;
		default: /* BPF_MISC */
			if (BPF_MISCOP(insn->code) == BPF_TAX)
				m.x = m.a;
			else
				m.a = m.x;
		}
	}
}
