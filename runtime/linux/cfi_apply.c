// SPDX-License-Identifier: MIT
/* From a frame to its caller's, by a row of what compilers say of it; expressions among that. */
#include "runtime/linux/cfi.h"

#include <dwarf.h>

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
	case DW_OP_and:
		return a & b;
	case DW_OP_minus:
		return a - b;
	case DW_OP_mul:
		return a * b;
	case DW_OP_or:
		return a | b;
	case DW_OP_plus:
		return a + b;
	case DW_OP_shl:
		return b < 64 ? a << b : 0;
	case DW_OP_shr:
		return b < 64 ? a >> b : 0;
	case DW_OP_xor:
		return a ^ b;
	case DW_OP_eq:
		return a == b;
	case DW_OP_ge:
		return (int64_t)a >= (int64_t)b;
	case DW_OP_gt:
		return (int64_t)a > (int64_t)b;
	case DW_OP_le:
		return (int64_t)a <= (int64_t)b;
	case DW_OP_lt:
		return (int64_t)a < (int64_t)b;
	case DW_OP_ne:
		return a != b;
	}
	*bad = true;
	return 0;
}

static void operate(struct machine *m, struct cursor *c, uint8_t operation)
{
	uint64_t a;

	if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31) {
		push(m, operation - DW_OP_lit0);
		return;
	}
	if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31) {
		push_register(m, operation - DW_OP_breg0, cursor_sleb(c));
		return;
	}
	if (operation >= DW_OP_const1u && operation <= DW_OP_const8s) {
		const unsigned int size = 1U << (operation - DW_OP_const1u) / 2;

		push(m, operation & 1 ? cursor_signed(c, size) : cursor_get(c, size));
		return;
	}
	switch (operation) {
	case DW_OP_deref:
		push(m, load(pop(m), &m->bad));
		return;
	case DW_OP_constu:
		push(m, cursor_uleb(c));
		return;
	case DW_OP_consts:
		push(m, cursor_sleb(c));
		return;
	case DW_OP_dup:
		a = pop(m);
		push(m, a);
		push(m, a);
		return;
	case DW_OP_drop:
		pop(m);
		return;
	case DW_OP_plus_uconst:
		push(m, pop(m) + cursor_uleb(c));
		return;
	case DW_OP_bregx:
		a = cursor_uleb(c);
		push_register(m, a < CFI_REGISTERS ? (unsigned int)a : CFI_REGISTERS,
			      cursor_sleb(c));
		return;
	case DW_OP_nop:
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
