// SPDX-License-Identifier: MIT
/*
 * The user stack of one sample, from its registers and its copy of the top of the stack:
 *
 *	sp at the sample				sp + dyn_size
 *	|  locals  rbp  ra |  locals  rbx  rbp  ra |  ...  |  not copied
 *	          callee    ^CFA of the callee      ^CFA of its caller
 *
 * Each step finds the rules for the address, takes the CFA and from it the registers of the caller.
 * The rules are kept by address, since the same few thousand addresses make up all the stacks of a
 * program. Code without rules (what a JIT made, hand-written code) is taken to keep a frame
 * pointer.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include <asm/perf_regs.h>

#include "lib/symbol/cfi.h"
#include "lib/symbol/dso.h"
#include "lib/symbol/machine.h"

/* A power of two. */
#define NR_CACHED ((size_t)1 << 13)

struct tly_cached_rules {
	const struct tally_dso *dso; /* NULL: free */
	uint64_t address;
	bool found;
	struct tly_frame_rules rules;
};

struct frame {
	uint64_t regs[TLY_NR_REGS]; /* TLY_RA: where it is */
	uint32_t known;		    /* a bit each */
};

struct stack {
	uint64_t start, size;
	const uint8_t *bytes;
	bool ended; /* what was read lies above the copy */
};

static const uint8_t perf_register[TLY_NR_REGS] = {
	PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,	PERF_REG_X86_SI,
	PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,	PERF_REG_X86_R9,
	PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
	PERF_REG_X86_R15, PERF_REG_X86_IP,
};

static bool known(const struct frame *frame, unsigned int reg)
{
	return reg < TLY_NR_REGS && frame->known & 1U << reg;
}

static void set(struct frame *frame, unsigned int reg, uint64_t value)
{
	frame->regs[reg] = value;
	frame->known |= 1U << reg;
}

static bool read_stack(struct stack *stack, uint64_t address, unsigned int size, uint64_t *value)
{
	uint64_t at = address - stack->start;

	if (address < stack->start)
		return false;
	if (at > stack->size || stack->size - at < size) {
		/* The stack goes on for as much as a stack may have; far off is no stack. */
		stack->ended |= at < (uint64_t)1 << 30;
		return false;
	}
	*value = 0;
	memcpy(value, stack->bytes + at, size);
	return true;
}

/* The values on the expression's stack. */
struct values {
	uint64_t values[32];
	unsigned int nr;
	bool bad;
};

static void push(struct values *values, uint64_t value)
{
	if (values->nr == sizeof(values->values) / sizeof(*values->values))
		values->bad = true;
	else
		values->values[values->nr++] = value;
}

static uint64_t pop(struct values *values)
{
	if (!values->nr) {
		values->bad = true;
		return 0;
	}
	return values->values[--values->nr];
}

static void push_register(struct values *values, const struct frame *frame, uint64_t reg,
			  uint64_t offset)
{
	if (reg >= TLY_NR_REGS || !known(frame, reg))
		values->bad = true;
	else
		push(values, frame->regs[reg] + offset);
}

static void pick(struct values *values, uint64_t index)
{
	if (index >= values->nr)
		values->bad = true;
	else
		push(values, values->values[values->nr - 1 - index]);
}

static void apply_binary(struct values *values, unsigned int op)
{
	uint64_t b = pop(values), a = pop(values);
	int64_t left = (int64_t)a, right = (int64_t)b;

	switch (op) {
	case DW_OP_plus:
		push(values, a + b);
		break;
	case DW_OP_minus:
		push(values, a - b);
		break;
	case DW_OP_mul:
		push(values, a * b);
		break;
	case DW_OP_and:
		push(values, a & b);
		break;
	case DW_OP_or:
		push(values, a | b);
		break;
	case DW_OP_xor:
		push(values, a ^ b);
		break;
	case DW_OP_shl:
		push(values, b < 64 ? a << b : 0);
		break;
	case DW_OP_shr:
		push(values, b < 64 ? a >> b : 0);
		break;
	case DW_OP_shra:
		push(values, (uint64_t)(left >> (b < 64 ? b : 63)));
		break;
	case DW_OP_eq:
		push(values, left == right);
		break;
	case DW_OP_ne:
		push(values, left != right);
		break;
	case DW_OP_lt:
		push(values, left < right);
		break;
	case DW_OP_le:
		push(values, left <= right);
		break;
	case DW_OP_gt:
		push(values, left > right);
		break;
	case DW_OP_ge:
		push(values, left >= right);
		break;
	default:
		values->bad = true;
	}
}

static void apply_deref(struct values *values, struct stack *stack, uint64_t size)
{
	uint64_t value;

	if (size > sizeof(value) || !read_stack(stack, pop(values), size, &value))
		values->bad = true;
	else
		push(values, value);
}

/* Branches do not occur in call frame information that compilers write: they are refused. */
static void apply(struct values *values, const Dwarf_Op *op, const struct frame *frame,
		  struct stack *stack, uint64_t cfa)
{
	uint64_t value;

	switch (op->atom) {
	case DW_OP_call_frame_cfa:
		push(values, cfa);
		break;
	case DW_OP_lit0 ... DW_OP_lit31:
		push(values, op->atom - DW_OP_lit0);
		break;
	case DW_OP_addr:
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		push(values, op->number);
		break;
	case DW_OP_breg0 ... DW_OP_breg31:
		push_register(values, frame, op->atom - DW_OP_breg0, op->number);
		break;
	case DW_OP_bregx:
		push_register(values, frame, op->number, op->number2);
		break;
	case DW_OP_plus_uconst:
		push(values, pop(values) + op->number);
		break;
	case DW_OP_dup:
		pick(values, 0);
		break;
	case DW_OP_over:
		pick(values, 1);
		break;
	case DW_OP_pick:
		pick(values, op->number);
		break;
	case DW_OP_drop:
		pop(values);
		break;
	case DW_OP_swap:
		value = pop(values);
		pick(values, 0);
		if (!values->bad)
			values->values[values->nr - 2] = value;
		break;
	case DW_OP_neg:
		push(values, -pop(values));
		break;
	case DW_OP_not:
		push(values, ~pop(values));
		break;
	case DW_OP_deref:
		apply_deref(values, stack, sizeof(uint64_t));
		break;
	case DW_OP_deref_size:
		apply_deref(values, stack, op->number);
		break;
	case DW_OP_nop:
	case DW_OP_stack_value: /* the kind of the rule says it */
		break;
	default:
		apply_binary(values, op->atom);
	}
}

static bool evaluate(const struct tly_rule *rule, const struct frame *frame, struct stack *stack,
		     uint64_t cfa, uint64_t *result)
{
	struct values values = {0};

	for (size_t i = 0; i < rule->nr_ops && !values.bad; i++)
		apply(&values, &rule->ops[i], frame, stack, cfa);
	*result = values.bad ? 0 : pop(&values);
	return !values.bad;
}

static bool follow(const struct tly_rule *rule, const struct frame *frame, struct stack *stack,
		   uint64_t cfa, uint64_t *value)
{
	switch ((enum tly_rule_kind)rule->kind) {
	case TLY_UNDEFINED:
		return false;
	case TLY_SAVED:
		return read_stack(stack, cfa + (uint64_t)(int64_t)rule->offset, sizeof(*value),
				  value);
	case TLY_CFA_OFFSET:
		*value = cfa + (uint64_t)(int64_t)rule->offset;
		return true;
	case TLY_REGISTER:
		*value = frame->regs[rule->other] + (uint64_t)(int64_t)rule->offset;
		return known(frame, rule->other);
	case TLY_EXPRESSION:
		return evaluate(rule, frame, stack, cfa, value) &&
		       read_stack(stack, *value, sizeof(*value), value);
	case TLY_VALUE:
		return evaluate(rule, frame, stack, cfa, value);
	}
	return false;
}

/* Turns the frame into its caller's; false when there is none or it cannot be known. */
static bool step_by_rules(const struct tly_frame_rules *rules, struct frame *frame,
			  struct stack *stack)
{
	struct frame caller = *frame;
	uint64_t cfa, value;

	if (!follow(&rules->cfa, frame, stack, 0, &cfa))
		return false;
	caller.known &= ~(1U << TLY_RA);
	set(&caller, TLY_RSP, cfa);
	for (size_t i = 0; i < rules->nr; i++) {
		const struct tly_rule *rule = &rules->rules[i];

		if (follow(rule, frame, stack, cfa, &value))
			set(&caller, rule->reg, value);
		else
			caller.known &= ~(1U << rule->reg);
	}
	if (!known(&caller, TLY_RA) || !known(&caller, TLY_RSP))
		return false;
	/* A stack grows down: a caller below its callee is no progress. */
	if (!rules->signal && caller.regs[TLY_RSP] <= frame->regs[TLY_RSP])
		return false;
	*frame = caller;
	return true;
}

static bool step_by_frame_pointer(struct frame *frame, struct stack *stack)
{
	uint64_t rbp = frame->regs[TLY_RBP], caller_rbp, ra;

	if (!known(frame, TLY_RBP) || rbp < frame->regs[TLY_RSP] ||
	    !read_stack(stack, rbp, sizeof(caller_rbp), &caller_rbp) ||
	    !read_stack(stack, rbp + 8, sizeof(ra), &ra))
		return false;
	frame->known = 0;
	set(frame, TLY_RBP, caller_rbp);
	set(frame, TLY_RSP, rbp + 16);
	set(frame, TLY_RA, ra);
	return true;
}

static const struct tly_frame_rules *rules_at(struct tally_machine *machine,
					      const struct tly_map *map, uint64_t ip)
{
	struct tly_cached_rules *cached;
	uint64_t address;

	if (!tly_map_address(map, ip, &address))
		return NULL;
	if (!machine->rules)
		machine->rules = calloc(NR_CACHED, sizeof(*machine->rules));
	if (!machine->rules)
		return NULL;
	cached = &machine->rules[(address ^ (uintptr_t)map->dso) * 0x9e3779b97f4a7c15 >> 32 &
				 (NR_CACHED - 1)];
	if (cached->dso != map->dso || cached->address != address) {
		cached->dso = map->dso;
		cached->address = address;
		cached->found = tly_cfi_rules(map->dso, address, &cached->rules);
	}
	return cached->found ? &cached->rules : NULL;
}

/* Where there are registers, and of a 64-bit program. */
static bool first_frame(const struct tally_regs *regs, struct frame *frame)
{
	uint64_t value;

	frame->known = 0;
	if (regs->abi != PERF_SAMPLE_REGS_ABI_64)
		return false;
	for (unsigned int reg = 0; reg < TLY_NR_REGS; reg++) {
		if (tally_regs_get(regs, perf_register[reg], &value))
			set(frame, reg, value);
	}
	return known(frame, TLY_RA);
}

size_t tally_machine_unwind(struct tally_machine *machine, uint32_t pid, uint64_t time,
			    const struct tally_sample *sample, uint64_t *ips, size_t max,
			    bool *truncated)
{
	struct stack stack = {.bytes = sample->stack, .size = sample->stack_dyn_size};
	bool interrupted = true; /* it is where it was stopped, not where a call returns to */
	struct frame frame;
	size_t nr = 0;

	if (truncated)
		*truncated = false;
	if (!first_frame(&sample->regs_user, &frame))
		return 0;
	if (stack.size > sample->stack_size)
		stack.size = sample->stack_size;
	stack.start = frame.regs[TLY_RSP];
	while (nr < max) {
		const struct tly_frame_rules *rules;
		const struct tly_map *map;
		uint64_t ip = frame.regs[TLY_RA];

		if (!ip)
			break;
		/* A call may be the last instruction of its function: look within the call. */
		map = tly_machine_find_user(machine, pid, time, ip - !interrupted);
		if (!map && nr)
			break; /* a word that is no address of code */
		ips[nr++] = ip;
		if (!known(&frame, TLY_RSP))
			break;
		rules = map ? rules_at(machine, map, ip - !interrupted) : NULL;
		if (rules) {
			if (!step_by_rules(rules, &frame, &stack))
				break;
			interrupted = rules->signal;
		} else {
			if (!step_by_frame_pointer(&frame, &stack))
				break;
			interrupted = false;
		}
	}
	if (truncated)
		*truncated = stack.ended;
	return nr;
}
