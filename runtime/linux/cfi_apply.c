// SPDX-License-Identifier: MIT
/* From a frame to its caller's, by a row of what compilers say of it; expressions among that. */
#include "runtime/linux/cfi.h"

#include "runtime/linux/cfi_read.h"
#include "runtime/linux/copy.h"

enum { STACK_MAX = 16 };

/* ---- expressions ---- */

struct machine {
	const struct cfi_frame *frame;
	uint64_t stack[STACK_MAX];
	unsigned int depth;
	bool bad;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_MAX)
		m->bad = true;
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth)
		return m->stack[--m->depth];
	m->bad = true;
	return 0;
}

static uint64_t load(uint64_t address, bool *bad)
{
	uint64_t value = 0;

	if (copy_word(&value, address))
		*bad = true;
	return value;
}

static void push_register(struct machine *m, unsigned int number, uint64_t offset)
{
	if (number < CFI_REGISTERS)
		push(m, m->frame->reg[number] + offset);
	else
		m->bad = true;
}

/* Of two operands, @b the upper one. */
static uint64_t binary(uint8_t operation, uint64_t a, uint64_t b, bool *bad)
{
	switch (operation) {
	case 0x1a:
		return a & b;
	case 0x1c:
		return a - b;
	case 0x1e:
		return a * b;
	case 0x21:
		return a | b;
	case 0x22:
		return a + b;
	case 0x24:
		return b < 64 ? a << b : 0;
	case 0x25:
		return b < 64 ? a >> b : 0;
	case 0x27:
		return a ^ b;
	case 0x29:
		return a == b;
	case 0x2a:
		return (int64_t)a >= (int64_t)b;
	case 0x2b:
		return (int64_t)a > (int64_t)b;
	case 0x2c:
		return (int64_t)a <= (int64_t)b;
	case 0x2d:
		return (int64_t)a < (int64_t)b;
	case 0x2e:
		return a != b;
	}
	*bad = true;
	return 0;
}

static void operate(struct machine *m, struct cursor *c, uint8_t operation)
{
	uint64_t a;

	if (operation >= 0x30 && operation <= 0x4f) { /* lit0 ... */
		push(m, operation - 0x30U);
		return;
	}
	if (operation >= 0x70 && operation <= 0x8f) { /* breg0 ... */
		push_register(m, operation - 0x70U, cursor_sleb(c));
		return;
	}
	if (operation >= 0x08 && operation <= 0x0f) { /* const1u, const1s, const2u ... */
		const unsigned int size = 1U << (operation - 8) / 2;

		push(m, operation & 1 ? cursor_signed(c, size) : cursor_get(c, size));
		return;
	}
	switch (operation) {
	case 0x06: /* deref */
		push(m, load(pop(m), &m->bad));
		return;
	case 0x10: /* constu, consts */
		push(m, cursor_uleb(c));
		return;
	case 0x11:
		push(m, cursor_sleb(c));
		return;
	case 0x12: /* dup */
		a = pop(m);
		push(m, a);
		push(m, a);
		return;
	case 0x13: /* drop */
		pop(m);
		return;
	case 0x23: /* plus_uconst */
		push(m, pop(m) + cursor_uleb(c));
		return;
	case 0x92: /* bregx */
		a = cursor_uleb(c);
		push_register(m, a < CFI_REGISTERS ? (unsigned int)a : CFI_REGISTERS,
			      cursor_sleb(c));
		return;
	case 0x96: /* nop */
		return;
	}
	a = pop(m);
	push(m, binary(operation, pop(m), a, &m->bad));
}

/* The rules of registers begin with the frame's @end on the stack; its own has none. */
static uint64_t evaluate(const struct cfi_frame *frame, const struct cfi_rule *rule,
			 const uint64_t *end, bool *bad)
{
	struct machine m = {.frame = frame};
	uint8_t buffer[64];
	struct cursor c = {.at = buffer, .end = buffer + rule->length};
	uint64_t result;

	if (rule->length > sizeof(buffer) || copy_in(buffer, rule->value, rule->length)) {
		*bad = true;
		return 0;
	}
	if (end)
		push(&m, *end);
	while (c.at < c.end && !c.bad && !m.bad)
		operate(&m, &c, (uint8_t)cursor_get(&c, 1));
	result = pop(&m);
	*bad |= c.bad || m.bad;
	return result;
}

/* ---- the caller ---- */

static uint64_t end_of(const struct cfi_row *row, const struct cfi_frame *frame, bool *bad)
{
	if (row->end.kind == CFI_IS_EXPRESSION)
		return evaluate(frame, &row->end, NULL, bad);
	if (row->end.kind == CFI_REGISTER_OFFSET && row->end.length < CFI_REGISTERS)
		return frame->reg[row->end.length] + row->end.value;
	*bad = true;
	return 0;
}

static uint64_t value_of(const struct cfi_rule *rule, unsigned int number,
			 const struct cfi_frame *frame, uint64_t end, bool *bad)
{
	switch (rule->kind) {
	case CFI_SAME:
		return number == CFI_RSP ? end : frame->reg[number];
	case CFI_AT:
		return load(end + rule->value, bad);
	case CFI_IS:
		return end + rule->value;
	case CFI_IN:
		if (rule->value < CFI_REGISTERS)
			return frame->reg[rule->value];
		break;
	case CFI_AT_EXPRESSION:
		return load(evaluate(frame, rule, &end, bad), bad);
	case CFI_IS_EXPRESSION:
		return evaluate(frame, rule, &end, bad);
	}
	if (rule->kind != CFI_UNDEFINED || number == CFI_RIP)
		*bad = true;
	return 0;
}

/* Only a handler may have a stack of its own. */
static bool is_complete(bool signal, uint64_t end, const struct cfi_frame *frame)
{
	return signal || end > frame->reg[CFI_RSP];
}

bool cfi_apply(const struct cfi_row *row, struct cfi_frame *frame)
{
	struct cfi_frame caller = *frame;
	bool bad = false;
	const uint64_t end = end_of(row, frame, &bad);

	if (bad || !is_complete(row->signal, end, frame))
		return false;
	for (unsigned int i = 0; i < CFI_RULES; i++)
		caller.reg[cfi_numbers[i]] =
			value_of(&row->of[i], cfi_numbers[i], frame, end, &bad);
	caller.called = !row->signal;
	if (bad || !caller.reg[CFI_RIP])
		return false;
	*frame = caller;
	return true;
}

/* ---- most frames ---- */

static bool is_plain(const struct cfi_rule *rule)
{
	const int64_t words = (int64_t)rule->value / 8;

	return rule->kind == CFI_SAME ||
	       (rule->kind == CFI_AT && rule->value % 8 == 0 && words == (int8_t)words);
}

bool cfi_make_plain(struct cfi_plain *plain, const struct cfi_row *row)
{
	enum { RIP, RSP = CFI_RULES - 1 };

	if (row->signal || row->end.kind != CFI_REGISTER_OFFSET ||
	    row->end.length >= CFI_REGISTERS || row->of[RIP].kind != CFI_AT ||
	    row->of[RSP].kind != CFI_SAME || (int64_t)row->end.value != (int32_t)row->end.value)
		return false;
	*plain = (struct cfi_plain){
		.end = (int32_t)row->end.value,
		.end_register = (uint8_t)row->end.length,
	};
	for (unsigned int i = 0; i < RSP; i++) {
		if (!is_plain(&row->of[i]))
			return false;
		if (row->of[i].kind != CFI_AT)
			continue;
		plain->saved |= (uint8_t)(1U << i);
		plain->words[i] = (int8_t)((int64_t)row->of[i].value / 8);
	}
	return true;
}

bool cfi_apply_plain(const struct cfi_plain *plain, struct cfi_frame *frame)
{
	const uint64_t end = frame->reg[plain->end_register] + (uint64_t)(int64_t)plain->end;

	if (!is_complete(false, end, frame))
		return false;
	for (unsigned int left = plain->saved; left; left &= left - 1) {
		const int i = __builtin_ctz(left);

		if (copy_word(&frame->reg[cfi_numbers[i]],
			      end + 8 * (uint64_t)(int64_t)plain->words[i]))
			return false;
	}
	frame->reg[CFI_RSP] = end;
	frame->called = true;
	return frame->reg[CFI_RIP];
}
