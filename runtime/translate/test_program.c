// SPDX-License-Identifier: MIT
#include "runtime/translate/test_program.h"

#include <string.h>
#include <sys/mman.h>

struct surroundings *world;

/* ---- random numbers ---- */

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (seed >> 33) % below;
}

/* ---- bytes ---- */

enum { FUNCTIONS = 6, BLOCKS = 4 };

/* Offsets in the code; what ends the program is at 0. */
enum { ENTRY = 256, FIRST_FUNCTION = 512 };

static uint8_t *at;

static void put(const void *bytes, unsigned int n)
{
	memcpy(at, bytes, n);
	at += n;
}

#define PUT(...)                                                                                   \
	do {                                                                                       \
		const uint8_t bytes_[] = {__VA_ARGS__};                                            \
                                                                                                   \
		put(bytes_, sizeof(bytes_));                                                       \
	} while (0)

static void put32(uint32_t value)
{
	put(&value, 4);
}

static void put_relative(const void *target)
{
	put32((uint32_t)((const uint8_t *)target - (at + 4)));
}

/* modrm and disp32 for [r15 + offset of member] */
#define MEMBER(m) ((uint32_t)offsetof(struct data, m))

static void put_member(unsigned int reg, uint32_t offset)
{
	PUT(0x87 | reg << 3);
	put32(offset);
}

/* ---- instructions ---- */

/* Any register but rsp and r15. */
static unsigned int any_reg(void)
{
	unsigned int reg;

	do
		reg = any(15);
	while (reg == REG_RSP);
	return reg;
}

static uint32_t any_scratch(void)
{
	return MEMBER(scratch) + any(DATA_SIZE - 64);
}

static void rex_rr(bool wide, unsigned int reg, unsigned int rm)
{
	PUT(0x40 | (wide ? 8 : 0) | (reg & 8 ? 4 : 0) | (rm & 8 ? 1 : 0));
}

static void alu_registers(void)
{
	const unsigned int reg = any_reg(), rm = any_reg();

	rex_rr(any(2), reg, rm);
	PUT(any(8) << 3 | 1, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

static void alu_memory(void)
{
	const unsigned int reg = any_reg();

	PUT(0x41 | any(2) << 3 | (reg & 8 ? 4 : 0), any(8) << 3 | (any(2) ? 3 : 1));
	put_member(reg & 7, any_scratch());
}

/* REX.X and REX.B are of no effect; of addresses the lower half is used, where that is all of
 * them. */
static void alu_rip_relative(void)
{
	const unsigned int reg = any_reg();

	if (!((uint64_t)world >> 32) && any(2))
		PUT(0x67);
	PUT(0x40 | any(2) << 3 | (reg & 8 ? 4 : 0) | any(4), any(8) << 3 | (any(2) ? 3 : 1),
	    0x05 | (reg & 7) << 3);
	put_relative(world->data.scratch + any(DATA_SIZE - 64));
}

/* The operand has bytes behind it. */
static void immediate_rip_relative(void)
{
	uint8_t *disp;
	uint32_t value;

	PUT(0x48, 0x81, 0x05 | any(8) << 3);
	disp = at;
	put32(0);
	put32(any(1 << 30));
	value = (uint32_t)(world->data.scratch + any(DATA_SIZE - 64) - at);
	memcpy(disp, &value, 4);
}

static void lea_rip_relative(void)
{
	const unsigned int reg = any_reg();

	PUT(0x48 | (reg & 8 ? 4 : 0), 0x8d, 0x05 | (reg & 7) << 3);
	put_relative(world->data.scratch + any(DATA_SIZE));
}

static void load_immediate(void)
{
	const unsigned int reg = any_reg();
	const uint64_t value = (uint64_t)any(1u << 31) << 33 ^ any(1u << 31);

	rex_rr(true, 0, reg);
	PUT(0xb8 | (reg & 7));
	put(&value, 8);
}

static void shift(void)
{
	const unsigned int reg = any_reg();

	rex_rr(any(2), 0, reg);
	if (any(2))
		PUT(0xc1, 0xc0 | any(8) << 3 | (reg & 7), any(64));
	else
		PUT(0xd3, 0xc0 | any(8) << 3 | (reg & 7));
}

static void increment(void)
{
	const unsigned int reg = any_reg();

	rex_rr(any(2), 0, reg);
	PUT(0xff, 0xc0 | any(2) << 3 | (reg & 7));
}

static void conditional_move(void)
{
	const unsigned int reg = any_reg(), rm = any_reg();

	rex_rr(true, reg, rm);
	PUT(0x0f, 0x40 | any(16), 0xc0 | (reg & 7) << 3 | (rm & 7));
}

/* Those in which counters are more often than others. */
static unsigned int any_vector(void)
{
	return any(2) ? any(16) : 11 + any(5);
}

static void vector_memory(void)
{
	static const uint8_t opcodes[] = {0xfe, 0xd4, 0xef, 0xeb, 0x6f};
	const unsigned int reg = any_vector(), high = reg & 8 ? 4 : 0, from = any_vector();

	PUT(0xf3, 0x41 | high, 0x0f, 0x6f); /* movdqu [r15 + ...], xmm */
	put_member(reg & 7, any_scratch());
	PUT(0x66, 0x40 | high | (from & 8 ? 1 : 0), 0x0f, opcodes[any(5)],
	    0xc0 | (reg & 7) << 3 | (from & 7));
	if (!any(4)) {
		PUT(0xf3, 0x40 | high, 0x0f, 0x6f, 0x05 | (reg & 7) << 3); /* [rip + ...], xmm */
		put_relative(world->data.scratch + any(DATA_SIZE - 64));
	}
}

/* Arithmetic and what resembles it, scalar and packed, in single and double precision. */
static void arithmetic(void)
{
	static const uint8_t prefixes[] = {0x3e, 0x66, 0xf3, 0xf2}; /* the first means nothing */
	static const uint8_t opcodes[] = {0x51, 0x58, 0x59, 0x5c, 0x5d, 0x5e, 0x5f, 0x5a};
	const unsigned int reg = any_vector(), from = any_vector(), prefix = any(4);
	const uint8_t high = reg & 8 ? 4 : 0;

	PUT(prefixes[prefix]);
	if (any(2) || prefix < 2) {
		PUT(0x40 | high | (from & 8 ? 1 : 0), 0x0f, opcodes[any(8)],
		    0xc0 | (reg & 7) << 3 | (from & 7));
		return;
	}
	PUT(0x41 | high, 0x0f, opcodes[any(8)]); /* [r15 + ...], xmm */
	put_member(reg & 7, any_scratch());
}

/* What has all of ymm, or all of them. */
static void vector_wide(void)
{
	const unsigned int reg = any_vector(), high = reg & 8 ? 0 : 0x80, from = any_vector();

	if (!__builtin_cpu_supports("avx2")) {
		vector_memory();
		return;
	}
	switch (any(6)) {
	case 0: /* vmovdqu [r15 + ...], ymm */
		PUT(0xc4, 0x41 | high, 0x7e, 0x6f);
		put_member(reg & 7, any_scratch());
		break;
	case 1: /* vpaddq xmm, ymm, ymm */
		PUT(0xc5, 0x05 | high | (15 - from) << 3, 0xd4, 0xc0 | (reg & 7) << 3 | any(8));
		break;
	case 2: /* vmovdqa ymm, xmm, which clears the rest */
		PUT(0xc5, 0x79 & (0x7f | high), 0x6f, 0xc0 | (reg & 7) << 3 | any(8));
		break;
	case 3:
		PUT(0xc5, 0xf8, 0x77); /* vzeroupper */
		break;
	case 4:
		PUT(0x49, 0x0f, 0xae); /* fxsave64 [r15 + ...], and back */
		put_member(0, MEMBER(saved));
		PUT(0x49, 0x0f, 0xae);
		put_member(1, MEMBER(saved));
		break;
	case 5:
		PUT(0xc5, 0xfc, 0x77); /* vzeroall */
		break;
	}
}

static void push_pop(void)
{
	const unsigned int from = any_reg(), to = any_reg();

	rex_rr(false, 0, from);
	PUT(0x50 | (from & 7));
	rex_rr(false, 0, to);
	PUT(0x58 | (to & 7));
}

/* lock xadd, cmpxchg, bts with a register, bswap */
static void odd(void)
{
	switch (any(4)) {
	case 0:
		PUT(0xf0, 0x49, 0x0f, 0xc1);
		put_member(any(3), any_scratch());
		break;
	case 1:
		PUT(0x49, 0x0f, 0xb1);
		put_member(REG_RDX, any_scratch());
		break;
	case 2:
		PUT(0x48, 0x0f, 0xc8 | any(4));
		break;
	case 3:
		PUT(0x48, 0x0f, 0xa2 + 1, 0xc0 | REG_RDX << 3 | REG_RBX);
		break;
	}
}

static void repeated_string(void)
{
	PUT(0xb9); /* mov ecx, few */
	put32(any(6));
	PUT(0x49, 0x8d); /* lea rdi, [r15 + ...] */
	put_member(REG_RDI, MEMBER(scratch) + any(256));
	PUT(0xf3, any(2) ? 0xaa : 0xab);
}

/* add [r15 + reg * scale + ...], rcx, or the other way round; in 32 bits where that is all of
 * it. */
static void indexed(void)
{
	const unsigned int reg = any_reg(), other = any_reg(), scale = any(4);
	const bool narrow = !((uint64_t)world >> 32) && !any(4);

	PUT(0x40 | (reg & 8 ? 1 : 0), 0xb8 | (reg & 7)); /* mov reg, few */
	put32(any(16));
	if (narrow)
		PUT(0x67);
	PUT(0x49 | (reg & 8 ? 2 : 0) | (other & 8 ? 4 : 0), any(2) ? 0x01 : 0x03,
	    0x84 | (other & 7) << 3, scale << 6 | (reg & 7) << 3 | 7);
	put32(MEMBER(scratch) + 128 + any(DATA_SIZE - 512));
}

/* Of a base that is any register: lea, and an access of some size. */
static void based(void)
{
	static const uint8_t opcodes[] = {0x88, 0x8a, 0x89, 0x8b, 0x87};
	const unsigned int reg = any_reg(), other = any_reg();

	PUT(0x49 | (reg & 8 ? 4 : 0), 0x8d);
	put_member(reg & 7, any_scratch());
	if (!any(4))
		PUT(0x66);
	PUT(0x40 | any(2) << 3 | (reg & 8 ? 1 : 0) | (other & 8 ? 4 : 0),
	    opcodes[any(sizeof(opcodes))], 0x44 | (other & 7) << 3,
	    (reg & 7) == 4 ? 0x24 : 0x20 | (reg & 7), 4);
}

/* What FS says of itself, by constants and by registers. */
static void in_fs(void)
{
	const unsigned int reg = any_reg(), base = any_reg();

	if (any(2)) {
		PUT(0x64, 0x48 | (reg & 8 ? 4 : 0), 0x03, 0x04 | (reg & 7) << 3, 0x25);
		put32(0x10);
		return;
	}
	PUT(0x40 | (base & 8 ? 1 : 0), 0xb8 | (base & 7));
	put32(8);
	PUT(0x64, 0x48 | (base & 8 ? 1 : 0) | (reg & 8 ? 4 : 0), 0x33, 0x44 | (reg & 7) << 3,
	    0x20 | (base & 7), 8);
}

static void any_instruction(void)
{
	static void (*const kinds[])(void) = {
		alu_registers, alu_registers,	 alu_memory,	   alu_rip_relative,
		shift,	       increment,	 conditional_move, immediate_rip_relative,
		odd,	       lea_rip_relative, load_immediate,   push_pop,
		alu_registers, alu_memory,	 vector_memory,	   repeated_string,
		vector_wide,   arithmetic,	 indexed,	   based,
		in_fs,
	};

	kinds[any(sizeof(kinds) / sizeof(*kinds))]();
}

/* ---- control flow ---- */

/* Blocks are placed in order; branches forward or back are filled in at the end. */
static struct patch {
	uint8_t *at;
	unsigned int block;
	unsigned int size;
} patches[1024];
static unsigned int nr_patches;

static uint8_t *blocks[FUNCTIONS * BLOCKS];

static void branch_to(unsigned int block, unsigned int size)
{
	patches[nr_patches++] = (struct patch){at, block, size};
	at += size;
}

static void fill_in(void)
{
	for (unsigned int i = 0; i < nr_patches; i++) {
		const struct patch *p = &patches[i];
		const int32_t relative = (int32_t)(blocks[p->block] - (p->at + p->size));

		memcpy(p->at, &relative, p->size);
	}
}

/* Keeps rsp as it is; calls only functions with higher numbers, so that it ends. */
static void any_call(unsigned int function)
{
	unsigned int callee, reg = any_reg();

	if (function + 1 >= FUNCTIONS)
		return;
	callee = function + 1 + any(FUNCTIONS - function - 1);
	switch (any(5)) {
	case 0:
	case 1:
		PUT(0xe8);
		branch_to(callee * BLOCKS, 4);
		break;
	case 2: /* call [r15 + ...] */
		PUT(0x41, 0xff);
		put_member(2, MEMBER(functions) + 8 * callee);
		break;
	case 3: /* call [rip + ...] */
		PUT(0xff, 0x15);
		put_relative(&world->data.functions[callee]);
		break;
	case 4: /* call reg */
		PUT(0x49 | (reg & 8 ? 4 : 0), 0x8b);
		put_member(reg & 7, MEMBER(functions) + 8 * callee);
		rex_rr(false, 0, reg);
		PUT(0xff, 0xd0 | (reg & 7));
		break;
	}
	/* Odd functions take 16 bytes of the stack with them. */
	if (callee & 1)
		PUT(0x48, 0x8d, 0x64, 0x24, 0xf0);
}

/* A call that is also come to by a way past what lies before it. */
static void call_or_skip(unsigned int function)
{
	uint8_t *hop;

	PUT(0x70 | any(16), 0);
	hop = at;
	any_instruction();
	hop[-1] = at - hop;
	any_call(function);
}

/* Leaves the program when the fuel is used up. Flags change; that is as good as any. */
static void burn(const uint8_t *bail)
{
	PUT(0x49, 0xff); /* dec qword [r15 + fuel] */
	put_member(1, MEMBER(fuel));
	PUT(0x0f, 0x88);
	put_relative(bail);
}

static void any_end(unsigned int function, unsigned int number)
{
	const unsigned int first = function * BLOCKS, next = first + number + 1;
	const unsigned int target = first + any(BLOCKS), reg = any_reg();
	uint8_t *hop;

	switch (any(7)) {
	case 0:
	case 1:
		PUT(0x0f, 0x80 | any(16));
		branch_to(target, 4);
		break;
	case 2: /* a loop of a few rounds */
		PUT(0xb9);
		put32(1 + any(5));
		hop = at;
		PUT(0x49, 0x01); /* add [r15 + ...], rcx */
		put_member(REG_RCX, any_scratch());
		PUT(0xe0 + any(3), (uint8_t)(hop - (at + 2)));
		break;
	case 3: /* jrcxz over something */
		PUT(0xe3, 0);
		hop = at;
		any_instruction();
		hop[-1] = at - hop;
		break;
	case 4: /* jmp [r15 + ...] */
		PUT(0x41, 0xff);
		put_member(4, MEMBER(blocks) + 8 * next);
		break;
	case 5: /* push the address and return to it */
		PUT(0x49 | (reg & 8 ? 4 : 0), 0x8b);
		put_member(reg & 7, MEMBER(blocks) + 8 * next);
		rex_rr(false, 0, reg);
		PUT(0x50 | (reg & 7), 0xc3);
		break;
	case 6:
		PUT(0xe9);
		branch_to(next, 4);
		break;
	}
}

static void make_function(unsigned int function, const uint8_t *bail)
{
	for (unsigned int number = 0; number < BLOCKS; number++) {
		const unsigned int block = function * BLOCKS + number;

		blocks[block] = at;
		world->data.blocks[block] = (uint64_t)at;
		burn(bail);
		for (unsigned int n = any(8); n; n--)
			any_instruction();
		if (any(2))
			any_call(function);
		else if (any(2))
			call_or_skip(function);
		for (unsigned int n = any(3); n; n--)
			any_instruction();
		if (number + 1 < BLOCKS)
			any_end(function, number);
	}
	if (function & 1)
		PUT(0xc2, 16, 0);
	else
		PUT(0xc3);
}

/* vmovdqu or movdqu from or to [r15 + ...] */
static void put_vector(unsigned int reg, uint8_t opcode, uint32_t offset)
{
	if (__builtin_cpu_supports("avx2"))
		PUT(0xc4, 0x41 | (reg & 8 ? 0 : 0x80), 0x7e, opcode);
	else
		PUT(0xf3, 0x41 | (reg & 8 ? 4 : 0), 0x0f, opcode);
	put_member(reg & 7, offset);
}

/* The first function returns to what ends the program. */
static void make_program(void)
{
	uint8_t *bail;

	nr_patches = 0;
	at = world->code + ENTRY;
	for (unsigned int i = 0; i < 16; i++)
		put_vector(i, 0x6f, MEMBER(scratch) + 32 * i);
	PUT(0xe9);
	branch_to(0, 4);
	at = world->code;
	bail = at;
	PUT(0x49, 0x8b); /* mov rsp, [r15 + stack] */
	put_member(REG_RSP, MEMBER(stack));
	for (unsigned int i = 0; i < 16; i++)
		put_vector(i, 0x7f, MEMBER(vectors) + 32 * i);
	PUT(0x41, 0xff); /* jmp [r15 + finish] */
	put_member(4, MEMBER(finish));
	at = world->code + FIRST_FUNCTION;
	for (unsigned int function = 0; function < FUNCTIONS; function++) {
		at += any(40);
		world->data.functions[function] = (uint64_t)at;
		make_function(function, bail);
	}
	fill_in();
}

/* ---- the world ---- */

static int code_protection;

void program_place(int flags, int protection)
{
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	code_protection = protection;
	mprotect(world->code, CODE_SIZE, protection);
	host_maps();
}

void program_new(uint64_t program)
{
	seed = program;
	mprotect(world->code, CODE_SIZE, PROT_READ | PROT_WRITE);
	make_program();
	mprotect(world->code, CODE_SIZE, code_protection);
	for (unsigned int i = 0; i < DATA_SIZE; i++)
		world->data.scratch[i] = any(256);
	memcpy(&world->before, &world->data, sizeof(world->data));
	translate_lock();
	translate_invalidate((uint64_t)world->code, (uint64_t)world->code + CODE_SIZE);
	translate_unlock();
}

void program_start(struct regs *regs, const char *finish, uint64_t flags)
{
	uint64_t *top = (uint64_t *)(world->stack + STACK_SIZE - 1024);

	__builtin_ia32_ldmxcsr(0x1f80); /* what came before sets flags */
	memcpy(&world->data, &world->before, sizeof(world->data));
	memset(world->stack, 0, STACK_SIZE);
	*top = (uint64_t)world->code;
	world->data.finish = (uint64_t)finish;
	world->data.stack = (uint64_t)(top + 1);
	world->data.fuel = 200;
	*regs = (struct regs){.rip = (uint64_t)world->code + ENTRY, .rflags = 0x202 | flags};
	for (unsigned int i = 0; i < 16; i++)
		regs->gpr[i] = i * 0x0101010101010101;
	regs->gpr[REG_R15] = (uint64_t)&world->data;
	regs->gpr[REG_RSP] = (uint64_t)top;
}
