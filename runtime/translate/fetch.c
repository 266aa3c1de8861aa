// SPDX-License-Identifier: MIT
/*
 * The program's code as the builder reads it: in place, or, where it may be changed meanwhile, from
 * a copy. Instructions at the end of what may be executed go through a window, so that nothing
 * behind it is touched and the builder can copy 16 bytes without asking. So do those that a probe
 * hides.
 */
#include "runtime/translate/build.h"

#include <linux/signal.h>

/* Whether the kernel hides the @byte there behind a breakpoint. */
static bool is_probe(const uint8_t *code, uint64_t pc, uint8_t *byte)
{
	return __builtin_expect(*code == 0xcc, 0) && linux_probed(pc, byte);
}

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
	if (n && !b->range.writable)
		is_probe(b->window, b->pc, b->window);
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

bool look_at(struct insn *insn, uint64_t pc, size_t size)
{
	const uint8_t *code = (const uint8_t *)pc;
	uint8_t window[16];

	if (!insn_decode(insn, code, size))
		return false;
	if (!is_probe(code, pc, window))
		return true;
	if (size > sizeof(window))
		size = sizeof(window);
	for (size_t n = 1; n < size; n++)
		window[n] = code[n];
	return insn_decode(insn, window, size);
}

/* What is not copied is none with a prefix that the processor refuses there. */
static bool is_refused(const struct insn *insn)
{
	return insn->class != INSN_PLAIN && insn->prefixes & PREFIX_LOCK;
}

static bool decodes(struct builder *b, struct build_fault *fault)
{
	fault->signo = 0;
	b->code = (const uint8_t *)b->pc;
	if (b->pc < b->range.start || b->range.end < 16 || b->pc > b->range.end - 16 ||
	    (!b->range.writable && is_probe(b->code, b->pc, b->window))) {
		if (through_window(b, fault))
			return true;
	} else if (insn_decode(&b->insn, b->code, 16)) {
		return true;
	}
	/* Else the bytes ended too soon, and @fault says why. */
	if (b->insn.length == INSN_MAX)
		*fault = (struct build_fault){SIGSEGV, SI_KERNEL, 0};
	else if (b->insn.length)
		*fault = (struct build_fault){SIGILL, ILL_ILLOPN, b->pc};
	return false;
}

bool fetch(struct builder *b, struct build_fault *fault)
{
	if (!decodes(b, fault))
		return false;
	if (__builtin_expect(!is_refused(&b->insn), 1))
		return true;
	*fault = (struct build_fault){SIGILL, ILL_ILLOPN, b->pc};
	return false;
}
