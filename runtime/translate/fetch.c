// SPDX-License-Identifier: MIT
/*
 * The program's code as the builder reads it: in place, or, where it may be changed meanwhile, from
 * a copy. Instructions at the end of what may be executed go through a window, so that nothing
 * behind it is touched and the builder can copy 16 bytes without asking.
 */
#include "runtime/translate/build.h"

#include <linux/signal.h>

/*
 * Where the builder asks the memory map, a rehearsal knows that the instruction was there: what is
 * on its page can be read, and what is behind only if the instruction goes on there.
 */
static unsigned int readable(struct builder *b, unsigned int want, struct build_fault *fault)
{
	struct code_range range = b->range;
	unsigned int n = 0;

	for (; n < want; n++) {
		const uint64_t pc = b->pc + n;

		if (!b->asked && (pc < range.start || pc >= range.end)) {
			const int code = memory_code(pc, &range);

			if (code) {
				*fault = (struct build_fault){SIGSEGV, code, pc};
				break;
			}
		}
		b->window[n] = *(const uint8_t *)pc;
	}
	return n;
}

static unsigned int copied(struct builder *b)
{
	const uint64_t from = b->pc - b->fragment->pc;
	unsigned int n = 0;

	for (; n < 16 && from + n < b->copied; n++)
		b->window[n] = b->copy[from + n];
	return n;
}

static bool through_window(struct builder *b, struct build_fault *fault)
{
	const unsigned int on_page = PAGE_SIZE - (b->pc & (PAGE_SIZE - 1));
	unsigned int n;

	b->code = b->window;
	if (b->copy)
		n = copied(b);
	else
		n = readable(b, b->asked && on_page < 16 ? on_page : 16, fault);
	if (insn_decode(&b->insn, b->window, n))
		return true;
	if (b->asked && !b->copy && on_page < 16 && !b->insn.length) {
		n = readable(b, 16, fault);
		return insn_decode(&b->insn, b->window, n);
	}
	return false;
}

bool fetch(struct builder *b, struct build_fault *fault)
{
	fault->signo = 0;
	if (b->pc < b->range.start || b->range.end < 16 || b->pc > b->range.end - 16) {
		if (through_window(b, fault))
			return true;
	} else {
		b->code = (const uint8_t *)b->pc;
		if (insn_decode(&b->insn, b->code, 16))
			return true;
	}
	/* Else the bytes ended too soon, and @fault says why. */
	if (b->insn.length == INSN_MAX)
		*fault = (struct build_fault){SIGSEGV, SI_KERNEL, 0};
	else if (b->insn.length)
		*fault = (struct build_fault){SIGILL, ILL_ILLOPN, b->pc};
	return false;
}
