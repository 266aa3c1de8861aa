// SPDX-License-Identifier: MIT
/* Nothing is written before everything has been read that may fault, and memory before
 * registers. */
#include "runtime/translate/interpret.h"

#include <stdbool.h>

#include "core/kinds.h"
#include "runtime/thread.h"
#include "runtime/translate/alu.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/translate.h"

/* ---- the instruction at hand ---- */

struct at {
	struct regs *regs;
	const uint8_t *next; /* byte */
	const uint8_t *code;
	uint64_t flags; /* as they become */
	uint64_t kinds;
	uint64_t target; /* where it goes on, if it is a branch */
	unsigned int size;
	bool fs, has_rex;
	uint8_t rex;
	uint8_t mod, reg, rm;
	uint64_t address; /* of the r/m operand, unless mod is 3 */
};

/* With more an instruction could be too long. */
enum { PREFIXES = 3 };

/* Little-endian, with sign; of 8 bytes only 4 are there but in one instruction. */
static uint64_t take(struct at *at, unsigned int size)
{
	int64_t value;

	switch (size) {
	case 1:
		value = (int8_t)at->next[0];
		break;
	case 2:
		value = (int16_t)(at->next[0] | at->next[1] << 8);
		size = 2;
		break;
	default: {
		int32_t four;

		__builtin_memcpy(&four, at->next, sizeof(four));
		value = four;
		size = 4;
	}
	}
	at->next += size;
	return (uint64_t)value;
}

static uint64_t truncate(uint64_t value, unsigned int size)
{
	return size == 8 ? value : value & ((1UL << 8 * size) - 1);
}

/* ah, ch, dh and bh */
static bool is_high(const struct at *at, unsigned int reg, unsigned int size)
{
	return size == 1 && !at->has_rex && reg >= 4;
}

static uint64_t get(const struct at *at, unsigned int reg, unsigned int size)
{
	if (is_high(at, reg, size))
		return at->regs->gpr[reg - 4] >> 8 & 0xff;
	return truncate(at->regs->gpr[reg], size);
}

static void put(const struct at *at, unsigned int reg, unsigned int size, uint64_t value)
{
	uint64_t *to = &at->regs->gpr[reg];

	switch (size) {
	case 1:
		if (is_high(at, reg, size)) {
			to = &at->regs->gpr[reg - 4];
			*to = (*to & ~0xff00UL) | (value & 0xff) << 8;
		} else {
			*to = (*to & ~0xffUL) | (value & 0xff);
		}
		break;
	case 2:
		*to = (*to & ~0xffffUL) | (value & 0xffff);
		break;
	case 4:
		*to = (uint32_t)value;
		break;
	default:
		*to = value;
	}
}

static bool load(struct at *at, uint64_t address, unsigned int size, uint64_t *value)
{
	at->kinds |= CORE_KIND_BIT(CORE_LOADS);
	return linux_load(value, address, size, at->fs);
}

static bool store(struct at *at, uint64_t address, unsigned int size, uint64_t value)
{
	at->kinds |= CORE_KIND_BIT(CORE_STORES);
	return !at->fs && linux_store(address, value, size);
}

/* The address of the r/m operand; @immediate bytes follow, from behind which rip counts. */
static uint64_t address_of(struct at *at, unsigned int immediate)
{
	const uint64_t *gpr = at->regs->gpr;
	unsigned int base = at->rm;
	uint64_t address = 0;

	if (base == 4) {
		const uint8_t sib = *at->next++;
		const unsigned int index = (sib >> 3 & 7) | (at->rex & REX_X ? 8 : 0);

		base = sib & 7;
		if (index != 4)
			address = gpr[index] << (sib >> 6);
	} else if (base == 5 && !at->mod) {
		address = take(at, 4);
		return address + at->regs->rip + (uint64_t)(at->next - at->code) + immediate;
	}
	if (base == 5 && !at->mod)
		return address + take(at, 4);
	address += gpr[base | (at->rex & REX_B ? 8 : 0)];
	if (at->mod)
		address += take(at, at->mod == 1 ? 1 : 4);
	return address;
}

static void take_modrm(struct at *at, unsigned int immediate)
{
	const uint8_t modrm = *at->next++;

	at->mod = modrm >> 6;
	at->reg = (modrm >> 3 & 7) | (at->rex & REX_R ? 8 : 0);
	at->rm = modrm & 7;
	if (at->mod != 3)
		at->address = address_of(at, immediate);
	else
		at->rm |= at->rex & REX_B ? 8 : 0;
}

static bool read_rm(struct at *at, unsigned int size, uint64_t *value)
{
	if (at->mod != 3)
		return load(at, at->address, size, value);
	*value = get(at, at->rm, size);
	return true;
}

static bool write_rm(struct at *at, unsigned int size, uint64_t value)
{
	if (at->mod != 3)
		return store(at, at->address, size, value);
	put(at, at->rm, size, value);
	return true;
}

static bool push(struct at *at, uint64_t value)
{
	if (!store(at, at->regs->gpr[REG_RSP] - 8, 8, value))
		return false;
	at->regs->gpr[REG_RSP] -= 8;
	return true;
}

static bool pop(struct at *at, uint64_t *value)
{
	if (at->fs || !load(at, at->regs->gpr[REG_RSP], 8, value))
		return false;
	at->regs->gpr[REG_RSP] += 8;
	return true;
}

static uint64_t here(const struct at *at)
{
	return at->regs->rip + (uint64_t)(at->next - at->code);
}

/* ---- branches ---- */

#define BRANCH CORE_KIND_BIT(CORE_BRANCHES)
#define TAKEN  (BRANCH | CORE_KIND_BIT(CORE_BRANCHES_TAKEN))

static void go(struct at *at, uint64_t target, uint64_t kinds)
{
	at->target = target;
	at->kinds |= kinds | TAKEN;
}

static void jump_if(struct at *at, unsigned int code, unsigned int size)
{
	const uint64_t distance = take(at, size);

	at->kinds |= BRANCH | CORE_KIND_BIT(CORE_BRANCHES_CONDITIONAL);
	/* One that leads to what follows is not taken. */
	if (distance && alu_condition(at->flags, code))
		go(at, here(at) + distance, 0);
}

static bool call(struct at *at, uint64_t target, uint64_t kinds)
{
	go(at, target, kinds | CORE_KIND_BIT(CORE_CALLS));
	return push(at, here(at));
}

static bool return_from(struct at *at, uint64_t more)
{
	uint64_t target;

	if (!pop(at, &target))
		return false;
	at->regs->gpr[REG_RSP] += more;
	go(at, target, CORE_KIND_BIT(CORE_RETURNS));
	return true;
}

/* ---- the rest ---- */

/* To the r/m operand. */
static bool operate_on_rm(struct at *at, unsigned int which, uint64_t b, unsigned int size)
{
	uint64_t a;

	if (!read_rm(at, size, &a))
		return false;
	alu_operations[which](&a, b, size, &at->flags);
	return which == ALU_CMP || write_rm(at, size, a);
}

static void operate_on(struct at *at, unsigned int reg, unsigned int which, uint64_t b,
		       unsigned int size)
{
	uint64_t a = get(at, reg, size);

	alu_operations[which](&a, b, size, &at->flags);
	if (which != ALU_CMP)
		put(at, reg, size, a);
}

/* Opcodes 00 to 3f, by rows of eight. */
static bool arithmetic(struct at *at, uint8_t opcode)
{
	const unsigned int which = opcode >> 3, size = opcode & 1 ? at->size : 1;
	uint64_t b;

	switch (opcode & 7) {
	case 0:
	case 1:
		take_modrm(at, 0);
		return operate_on_rm(at, which, get(at, at->reg, size), size);
	case 2:
	case 3:
		take_modrm(at, 0);
		if (!read_rm(at, size, &b))
			return false;
		operate_on(at, at->reg, which, b, size);
		return true;
	case 4:
	case 5:
		operate_on(at, REG_RAX, which, take(at, size), size);
		return true;
	}
	return false;
}

static bool test(struct at *at, uint64_t b, unsigned int size)
{
	uint64_t a;

	if (!read_rm(at, size, &a))
		return false;
	alu_operations[ALU_AND](&a, b, size, &at->flags);
	return true;
}

static bool shift_rm(struct at *at, uint64_t by, unsigned int size, bool constant)
{
	const unsigned int which = at->reg & 7;
	uint64_t a;

	if (!alu_shifts(which) || !read_rm(at, size, &a))
		return false;
	alu_shift(which, &a, by, size, constant, &at->flags);
	return write_rm(at, size, a);
}

/* inc, dec: which leave CF alone */
static bool step_rm(struct at *at, unsigned int which, unsigned int size)
{
	const uint64_t flags = at->flags;
	uint64_t a;

	if (!read_rm(at, size, &a))
		return false;
	alu_operations[which](&a, 1, size, &at->flags);
	at->flags = (at->flags & ~(uint64_t)CF) | (flags & CF);
	return write_rm(at, size, a);
}

static void multiply_long(struct at *at, uint64_t by, unsigned int size, bool has_sign)
{
	uint64_t *gpr = at->regs->gpr, rax_rdx[2] = {gpr[REG_RAX]};

	alu_multiply_long(rax_rdx, by, size, has_sign, &at->flags);
	gpr[REG_RAX] = rax_rdx[0];
	gpr[REG_RDX] = rax_rdx[1];
}

/* f6, f7 */
static bool group_3(struct at *at, unsigned int size)
{
	const unsigned int immediate = size > 4 ? 4 : size;
	uint64_t a, zero = 0;

	/* Whether there is an immediate is said by the byte at hand. */
	take_modrm(at, (*at->next >> 3 & 7) < 2 ? immediate : 0);
	switch (at->reg & 7) {
	case 0:
	case 1: {
		const uint64_t b = take(at, immediate);

		return test(at, b, size);
	}
	case 2:
		return read_rm(at, size, &a) && write_rm(at, size, ~a);
	case 3:
		if (!read_rm(at, size, &a))
			return false;
		alu_operations[ALU_SUB](&zero, a, size, &at->flags);
		return write_rm(at, size, zero);
	case 4:
	case 5:
		if (size < 4 || !read_rm(at, size, &a))
			return false;
		multiply_long(at, a, size, at->reg & 1);
		return true;
	}
	return false;
}

/* fe, ff */
static bool group_5(struct at *at, unsigned int size)
{
	uint64_t target;

	take_modrm(at, 0);
	switch (at->reg & 7) {
	case 0:
		return step_rm(at, ALU_ADD, size);
	case 1:
		return step_rm(at, ALU_SUB, size);
	}
	if (size == 1 || at->size == 2 || !read_rm(at, 8, &target))
		return false;
	switch (at->reg & 7) {
	case 2:
		return call(at, target, CORE_KIND_BIT(CORE_BRANCHES_INDIRECT));
	case 4:
		go(at, target, CORE_KIND_BIT(CORE_BRANCHES_INDIRECT));
		return true;
	case 6:
		return push(at, target);
	}
	return false;
}

static bool extend(struct at *at, unsigned int from, bool has_sign)
{
	const unsigned int bits = 64 - 8 * from;
	uint64_t value;

	take_modrm(at, 0);
	if (!read_rm(at, from, &value))
		return false;
	if (has_sign)
		value = (uint64_t)((int64_t)(value << bits) >> bits);
	put(at, at->reg, at->size, value);
	return true;
}

static bool multiply_rm(struct at *at, unsigned int immediate)
{
	uint64_t a, b;

	take_modrm(at, immediate);
	b = immediate ? take(at, immediate) : get(at, at->reg, at->size);
	if (!read_rm(at, at->size, &a))
		return false;
	alu_multiply(&a, b, at->size, &at->flags);
	put(at, at->reg, at->size, a);
	return true;
}

static bool test_bit(struct at *at, uint64_t bit)
{
	if (at->mod != 3)
		return false;
	bit = get(at, at->rm, at->size) >> (bit & (8 * at->size - 1)) & 1;
	at->flags = (at->flags & ~(uint64_t)CF) | bit;
	return true;
}

/* Opcodes behind 0f. */
static bool extended(struct at *at)
{
	const uint8_t opcode = *at->next++;
	const unsigned int size = at->size;
	uint64_t value;

	switch (opcode) {
	case 0x1f: /* nop */
		take_modrm(at, 0);
		return true;
	case 0x40 ... 0x4f: /* cmov */
		take_modrm(at, 0);
		if (!read_rm(at, size, &value))
			return false;
		put(at, at->reg, size,
		    alu_condition(at->flags, opcode) ? value : get(at, at->reg, size));
		return true;
	case 0x80 ... 0x8f:
		jump_if(at, opcode, 4);
		return size != 2;
	case 0x90 ... 0x9f: /* set */
		take_modrm(at, 0);
		return write_rm(at, 1, alu_condition(at->flags, opcode));
	case 0xa3: /* bt */
		take_modrm(at, 0);
		return test_bit(at, get(at, at->reg, size));
	case 0xaf:
		return multiply_rm(at, 0);
	case 0xb6:
	case 0xb7:
		return extend(at, opcode & 1 ? 2 : 1, false);
	case 0xbe:
	case 0xbf:
		return extend(at, opcode & 1 ? 2 : 1, true);
	case 0xba:
		take_modrm(at, 1);
		return (at->reg & 7) == 4 && test_bit(at, take(at, 1));
	}
	return false;
}

/* ---- opcodes of one byte ---- */

static void exchange(const struct at *at, unsigned int one, unsigned int other, unsigned int size)
{
	const uint64_t a = get(at, one, size), b = get(at, other, size);

	put(at, one, size, b);
	put(at, other, size, a);
}

/* xchg: with memory it is locked */
static bool exchange_rm(struct at *at, unsigned int size)
{
	take_modrm(at, 0);
	if (at->mod != 3)
		return false;
	exchange(at, at->reg, at->rm, size);
	return true;
}

/* mov to a register */
static bool move_rm(struct at *at, unsigned int size)
{
	uint64_t value;

	take_modrm(at, 0);
	if (!read_rm(at, size, &value))
		return false;
	put(at, at->reg, size, value);
	return true;
}

/* The only immediate that may have 8 bytes. */
static void move_immediate(struct at *at, unsigned int reg)
{
	uint64_t value;

	if (at->size == 8) {
		__builtin_memcpy(&value, at->next, sizeof(value));
		at->next += sizeof(value);
	} else {
		value = take(at, at->size);
	}
	put(at, reg, at->size, value);
}

/* c6, c7 */
static bool move_immediate_to_rm(struct at *at, unsigned int immediate, unsigned int size)
{
	uint64_t value;

	take_modrm(at, immediate);
	value = take(at, immediate);
	return !(at->reg & 7) && write_rm(at, size, value);
}

static bool load_address(struct at *at)
{
	take_modrm(at, 0);
	if (at->mod == 3)
		return false;
	put(at, at->reg, at->size, at->address);
	return true;
}

/* 80, 81, 83 */
static bool group_1(struct at *at, unsigned int immediate, unsigned int size)
{
	uint64_t value;

	take_modrm(at, immediate);
	value = take(at, immediate);
	return operate_on_rm(at, at->reg & 7, value, size);
}

/* c0, c1, d0 to d3, with the count at hand */
static bool group_2(struct at *at, uint8_t opcode, unsigned int size)
{
	if (opcode < 0xd0) {
		take_modrm(at, 1);
		return shift_rm(at, take(at, 1), size, true);
	}
	take_modrm(at, 0);
	if (opcode < 0xd2)
		return shift_rm(at, 1, size, true);
	return shift_rm(at, at->regs->gpr[REG_RCX] & 0xff, size, false);
}

static void test_rax(struct at *at, unsigned int immediate, unsigned int size)
{
	uint64_t value = get(at, REG_RAX, size);

	alu_operations[ALU_AND](&value, take(at, immediate), size, &at->flags);
}

/* cbw, cwde, cdqe */
static void widen_rax(struct at *at)
{
	const unsigned int bits = 64 - 4 * at->size;
	const int64_t value = (int64_t)(at->regs->gpr[REG_RAX] << bits) >> bits;

	put(at, REG_RAX, at->size, (uint64_t)value);
}

/* cwd, cdq, cqo */
static void sign_into_rdx(struct at *at)
{
	const uint64_t sign = get(at, REG_RAX, at->size) >> (8 * at->size - 1);

	put(at, REG_RDX, at->size, -sign);
}

static bool pop_register(struct at *at, unsigned int reg)
{
	uint64_t value;

	if (at->size == 2 || !pop(at, &value))
		return false;
	put(at, reg, 8, value);
	return true;
}

static bool leave(struct at *at)
{
	uint64_t value;

	if (at->size == 2 || at->fs || !load(at, at->regs->gpr[REG_RBP], 8, &value))
		return false;
	at->regs->gpr[REG_RSP] = at->regs->gpr[REG_RBP] + 8;
	at->regs->gpr[REG_RBP] = value;
	return true;
}

static bool jump(struct at *at, unsigned int size)
{
	const uint64_t distance = take(at, size);

	go(at, here(at) + distance, 0);
	return at->size != 2;
}

static bool one_byte(struct at *at)
{
	const uint8_t opcode = *at->next++;
	const unsigned int size = opcode & 1 ? at->size : 1;
	const unsigned int immediate = size > 4 ? 4 : size;
	const unsigned int reg = (opcode & 7) | (at->rex & REX_B ? 8 : 0);
	uint64_t value;

	switch (opcode) {
	case 0x0f:
		return extended(at);
	case 0x00 ... 0x0e:
	case 0x10 ... 0x3f:
		return arithmetic(at, opcode);
	case 0x50 ... 0x57:
		return at->size != 2 && push(at, at->regs->gpr[reg]);
	case 0x58 ... 0x5f:
		return pop_register(at, reg);
	case 0x63: /* movsxd */
		return at->size != 2 && extend(at, 4, true);
	case 0x68:
		return at->size != 2 && push(at, take(at, 4));
	case 0x69:
		return multiply_rm(at, at->size == 2 ? 2 : 4);
	case 0x6a:
		return at->size != 2 && push(at, take(at, 1));
	case 0x6b:
		return multiply_rm(at, 1);
	case 0x70 ... 0x7f:
		jump_if(at, opcode, 1);
		return at->size != 2;
	case 0x80:
	case 0x81:
		return group_1(at, immediate, size);
	case 0x83:
		return group_1(at, 1, size);
	case 0x84:
	case 0x85:
		take_modrm(at, 0);
		return test(at, get(at, at->reg, size), size);
	case 0x86:
	case 0x87:
		return exchange_rm(at, size);
	case 0x88:
	case 0x89:
		take_modrm(at, 0);
		return write_rm(at, size, get(at, at->reg, size));
	case 0x8a:
	case 0x8b:
		return move_rm(at, size);
	case 0x8d:
		return load_address(at);
	case 0x90 ... 0x97:
		if (reg != REG_RAX)
			exchange(at, REG_RAX, reg, at->size);
		return true;
	case 0x98:
		widen_rax(at);
		return true;
	case 0x99:
		sign_into_rdx(at);
		return true;
	case 0xa8:
	case 0xa9:
		test_rax(at, immediate, size);
		return true;
	case 0xb0 ... 0xb7:
		put(at, reg, 1, take(at, 1));
		return true;
	case 0xb8 ... 0xbf:
		move_immediate(at, reg);
		return true;
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
		return group_2(at, opcode, size);
	case 0xc2:
		value = take(at, 2);
		return at->size != 2 && return_from(at, value & 0xffff);
	case 0xc3:
		return at->size != 2 && return_from(at, 0);
	case 0xc6:
	case 0xc7:
		return move_immediate_to_rm(at, immediate, size);
	case 0xc9:
		return leave(at);
	case 0xe8:
		value = take(at, 4);
		return at->size != 2 && call(at, here(at) + value, 0);
	case 0xe9:
		return jump(at, 4);
	case 0xeb:
		return jump(at, 1);
	case 0xf6:
	case 0xf7:
		return group_3(at, size);
	case 0xfe:
	case 0xff:
		return group_5(at, size);
	}
	return false;
}

/* Those but REX; returns whether operands have 16 bits. */
static bool take_legacy_prefixes(struct at *at)
{
	bool is_word = false;

	for (unsigned int i = 0; i < PREFIXES; i++, at->next++) {
		switch (*at->next) {
		case 0x66:
			is_word = true;
			continue;
		case 0x64:
			at->fs = true;
			continue;
		case 0x2e: /* these are of no effect here */
		case 0x3e:
			continue;
		}
		break;
	}
	/* A return that was made for old processors. */
	if (at->next[0] == 0xf3 && at->next[1] == 0xc3)
		at->next++;
	return is_word;
}

static bool may_be_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x64 || byte == 0x2e || byte == 0x3e || byte == 0xf3;
}

static void take_prefixes(struct at *at)
{
	const bool is_word = may_be_prefix(*at->next) && take_legacy_prefixes(at);

	at->has_rex = (*at->next & 0xf0) == 0x40;
	at->rex = at->has_rex ? *at->next++ : 0;
	at->size = at->rex & REX_W ? 8 : is_word ? 2 : 4;
}

static bool is_endbr(const uint8_t *code)
{
	return code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa;
}

uint64_t interpret(struct regs *regs, const uint8_t code[INTERPRET_ROOM])
{
	struct at at;

	/* The rest is set before it is asked for. */
	at.regs = regs;
	at.code = at.next = code;
	at.flags = regs->rflags;
	at.kinds = 0;
	at.fs = false;

	if (is_endbr(code)) {
		at.next += 4;
	} else {
		take_prefixes(&at);
		if (!one_byte(&at))
			return 0;
	}
	regs->rip = at.kinds & CORE_KIND_BIT(CORE_BRANCHES_TAKEN) ? at.target : here(&at);
	regs->rflags = at.flags;
	return at.kinds | CORE_KIND_BIT(CORE_INSTRUCTIONS);
}
