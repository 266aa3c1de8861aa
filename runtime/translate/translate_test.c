// SPDX-License-Identifier: MIT
/*
 * Random programs, executed natively and in the translator in one process: registers, flags, memory
 * and vector registers have to agree at the end; and, single-stepped, whatever byte of the code
 * cache a signal hits, what translate_recover() makes of it has to be a state that the processor
 * went through natively, in order. Where it counts, what has been counted has to be what the
 * instructions that were single-stepped natively up to there add up to.
 *
 * Usage: test-translate [PROGRAMS [SEED]]. A program is made of its seed alone.
 */
#include "runtime/translate/test_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/model/block.h"
#include "runtime/pmu/tracer.h"
#include "runtime/translate/caches.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/tables.h"

/* ---- random numbers ---- */

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (seed >> 33) % below;
}

/* ---- the program's surroundings ---- */

enum { FUNCTIONS = 6, BLOCKS = 4, CODE_SIZE = 64 << 10, DATA_SIZE = 4096, STACK_SIZE = 16 << 10 };

/* Offsets in the code; what ends the program is at 0. */
enum { ENTRY = 256, FIRST_FUNCTION = 512 };

/*
 * What r15 points at. The program ends through finish, with rsp as it was saved, when its fuel is
 * used up or its first function returns.
 */
struct data {
	uint64_t finish;
	uint64_t fuel;
	uint64_t stack;
	uint64_t zero;
	uint64_t functions[8];
	uint64_t blocks[32];
	uint8_t vectors[16 * 32];
	_Alignas(16) uint8_t saved[512]; /* by fxsave */
	uint8_t scratch[DATA_SIZE];
};

static struct surroundings {
	uint8_t code[CODE_SIZE];
	struct data data, before;
	uint8_t stack[STACK_SIZE];
} * world;

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

static void alu_rip_relative(void)
{
	const unsigned int reg = any_reg();

	PUT(0x40 | any(2) << 3 | (reg & 8 ? 4 : 0), any(8) << 3 | (any(2) ? 3 : 1),
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

static void any_instruction(void)
{
	static void (*const kinds[])(void) = {
		alu_registers, alu_registers,	 alu_memory,	   alu_rip_relative,
		shift,	       increment,	 conditional_move, immediate_rip_relative,
		odd,	       lea_rip_relative, load_immediate,   push_pop,
		alu_registers, alu_memory,	 vector_memory,	   repeated_string,
		vector_wide,
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

/* ---- natively ---- */

/*
 * void native_run(struct regs *regs): the counterpart of host_run(). The program ends at
 * native_finish.
 */
__asm__(".pushsection .bss\n"
	"native_regs: .skip 8\n"
	"native_stack: .skip 8\n"
	".popsection\n"
	".globl native_run\n"
	"native_run:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rdi, native_regs(%rip)\n"
	"	mov %rsp, native_stack(%rip)\n"
	"	mov 0*8(%rdi), %rax; mov 1*8(%rdi), %rcx; mov 2*8(%rdi), %rdx\n"
	"	mov 3*8(%rdi), %rbx; mov 5*8(%rdi), %rbp; mov 6*8(%rdi), %rsi\n"
	"	mov 8*8(%rdi), %r8; mov 9*8(%rdi), %r9; mov 10*8(%rdi), %r10\n"
	"	mov 11*8(%rdi), %r11; mov 12*8(%rdi), %r12; mov 13*8(%rdi), %r13\n"
	"	mov 14*8(%rdi), %r14; mov 15*8(%rdi), %r15; mov 4*8(%rdi), %rsp\n"
	"	push 16*8(%rdi); push 17*8(%rdi); mov 7*8(%rdi), %rdi; popf; ret\n"
	".globl native_finish\n"
	"native_finish:\n"
	"	pushf; push %rdi\n"
	"	mov native_regs(%rip), %rdi\n"
	"	mov %rax, 0*8(%rdi); mov %rcx, 1*8(%rdi); mov %rdx, 2*8(%rdi)\n"
	"	mov %rbx, 3*8(%rdi); mov %rbp, 5*8(%rdi); mov %rsi, 6*8(%rdi)\n"
	"	mov %r8, 8*8(%rdi); mov %r9, 9*8(%rdi); mov %r10, 10*8(%rdi)\n"
	"	mov %r11, 11*8(%rdi); mov %r12, 12*8(%rdi); mov %r13, 13*8(%rdi)\n"
	"	mov %r14, 14*8(%rdi); mov %r15, 15*8(%rdi)\n"
	"	pop 7*8(%rdi); pop 17*8(%rdi)\n"
	"	mov %rsp, 4*8(%rdi)\n"
	"	mov native_stack(%rip), %rsp\n"
	"	pushf; andl $~0x100, (%rsp); popf; cld\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");

void native_run(struct regs *regs);
extern const char native_finish[];

/* ---- comparing ---- */

#define TRAP_FLAG 0x100
#define FLAGS	  0xcd5 /* CF PF AF ZF SF DF OF */

static void start_state(struct regs *regs, const char *finish, uint64_t flags)
{
	uint64_t *top = (uint64_t *)(world->stack + STACK_SIZE - 1024);

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

static bool same_state(const struct regs *a, const struct regs *b)
{
	return !memcmp(a->gpr, b->gpr, sizeof(a->gpr)) && a->rip == b->rip &&
	       !((a->rflags ^ b->rflags) & FLAGS);
}

static void show(const char *what, const struct regs *regs)
{
	printf("# %s rip %#lx flags %#lx\n#", what, regs->rip, regs->rflags & FLAGS);
	for (unsigned int i = 0; i < 16; i++)
		printf(" %lx", regs->gpr[i]);
	printf("\n");
}

static bool differ(uint64_t program, const char *what, const struct regs *native,
		   const struct regs *translated)
{
	printf("# program %#lx: %s\n", program, what);
	show("native", native);
	show("translated", translated);
	return false;
}

/* ---- single steps ---- */

#define TRACE_MAX 20000

struct sums {
	int64_t of[COUNT_KINDS];
};

/* Of a state: xmm0 and on. */
struct vectors {
	uint8_t xmm[16][16];
};

static struct trace {
	struct regs *states;
	struct vectors *vectors;
	struct sums *sums;   /* of all before each state */
	uint8_t *live_flags; /* enum insn_flag: which the program asks for before it sets them */
	unsigned int n;
	/* Of the run in the translator. */
	unsigned int now, points;
	struct sums start; /* of the counters */
	struct regs wrong;
	struct sums wrong_sums;
	bool failed;
} trace;

/* What the code has to do that the tests run in. */
static struct instrumentation does;

static uint8_t (*frame_vectors(const ucontext_t *context))[16]
{
	return (uint8_t(*)[16])context->uc_mcontext.fpregs->_xmm;
}

static void on_native_step(int signo, siginfo_t *info, void *context)
{
	struct regs regs;

	(void)signo, (void)info;
	host_regs(context, &regs);
	if (regs.rip - (uint64_t)world->code >= CODE_SIZE || trace.n >= TRACE_MAX)
		return;
	memcpy(trace.vectors[trace.n].xmm, frame_vectors(context), sizeof(struct vectors));
	trace.states[trace.n++] = regs;
}

/* ---- what the native run adds up to ---- */

static bool repeats(const struct insn *insn, unsigned int i)
{
	return insn->prefixes & (PREFIX_REP | PREFIX_REPNE) && i + 1 < trace.n &&
	       trace.states[i + 1].rip == trace.states[i].rip;
}

/* Of a jcc: where it leads does not tell, since it may lead to the next instruction. */
static bool holds(unsigned int condition, uint64_t rflags)
{
	const bool c = rflags & 1, p = rflags & 4, z = rflags & 0x40, s = rflags & 0x80,
		   o = rflags & 0x800;
	const bool bases[] = {o, c, z, c || z, s, p, s != o, z || s != o};

	return bases[condition >> 1 & 7] != (condition & 1);
}

/* loopne, loope, loop, jrcxz. Where one goes does not tell: that may be the next instruction. */
static bool loops(const struct insn *insn, const struct regs *regs)
{
	const bool z = regs->rflags & 0x40;
	uint64_t rcx = regs->gpr[REG_RCX];

	if (insn->prefixes & PREFIX_ADDRESS)
		rcx = (uint32_t)rcx;
	switch (insn->opcode & 3) {
	case 0:
		return rcx != 1 && !z;
	case 1:
		return rcx != 1 && z;
	case 2:
		return rcx != 1;
	}
	return !rcx;
}

static bool jumps(const struct insn *insn, const struct regs *regs)
{
	return insn->class == INSN_JCC ? holds(insn->opcode, regs->rflags) : loops(insn, regs);
}

static void add_insn(struct sums *sums, const struct insn *insn, unsigned int i)
{
	struct insn_effects effects;

	insn_effects(insn, &effects);
	sums->of[CORE_INSTRUCTIONS]++;
	for (unsigned int m = 0; m < effects.nr_memory; m++) {
		sums->of[CORE_LOADS] += effects.memory[m].access & ACCESS_R ? 1 : 0;
		sums->of[CORE_STORES] += effects.memory[m].access & ACCESS_W ? 1 : 0;
	}
	switch (insn->class) {
	case INSN_JCC:
	case INSN_LOOP:
		sums->of[CORE_BRANCHES_CONDITIONAL]++;
		sums->of[CORE_BRANCHES_TAKEN] += jumps(insn, &trace.states[i]);
		break;
	case INSN_CALL_INDIRECT:
	case INSN_JMP_INDIRECT:
		sums->of[CORE_BRANCHES_INDIRECT]++;
		/* fall through */
	case INSN_CALL:
	case INSN_JMP:
	case INSN_RET:
		sums->of[CORE_BRANCHES_TAKEN]++;
		sums->of[CORE_RETURNS] += insn->class == INSN_RET;
		sums->of[CORE_CALLS] +=
			insn->class == INSN_CALL || insn->class == INSN_CALL_INDIRECT;
		break;
	default:
		return;
	}
	sums->of[CORE_BRANCHES]++;
}

static void add_up(void)
{
	struct sums sums = {{0}};
	struct insn insn;
	uint8_t live = 0xff;

	for (unsigned int i = 0; i < trace.n; i++) {
		trace.sums[i] = sums;
		insn_decode(&insn, (const uint8_t *)trace.states[i].rip, INSN_MAX);
		if (!repeats(&insn, i))
			add_insn(&sums, &insn, i);
	}
	trace.sums[trace.n] = sums;
	for (unsigned int i = trace.n; i--;) {
		struct insn_effects effects;

		insn_decode(&insn, (const uint8_t *)trace.states[i].rip, INSN_MAX);
		insn_effects(&insn, &effects);
		live = (live & ~effects.flags_written) | effects.flags_read;
		trace.live_flags[i] = live;
	}
}

/* What the records of the trace add that nobody has taken in yet. */
static void add_record(struct sums *sums, const struct block *block, unsigned int insns,
		       uint64_t next)
{
	const unsigned int all = block->counts & 0xffff;

	sums->of[CORE_INSTRUCTIONS] += insns < all ? insns : all;
	if (insns >= all) {
		sums->of[CORE_LOADS] += block->counts >> 16 & 0xffff;
		sums->of[CORE_STORES] += block->counts >> 32 & 0xffff;
		sums->of[CORE_BRANCHES] += block->counts >> 48;
		sums->of[CORE_BRANCHES_CONDITIONAL] += block->end == BLOCK_CONDITIONAL;
		sums->of[CORE_CALLS] +=
			block->end == BLOCK_CALL || block->end == BLOCK_CALL_INDIRECT;
		sums->of[CORE_RETURNS] += block->end == BLOCK_RETURN;
		sums->of[CORE_BRANCHES_INDIRECT] +=
			block->end == BLOCK_JUMP_INDIRECT || block->end == BLOCK_CALL_INDIRECT;
		sums->of[CORE_BRANCHES_TAKEN] += block->end == BLOCK_CONDITIONAL
							 ? next != block->pc + block->length
							 : block->end != BLOCK_ON;
		return;
	}
	for (unsigned int i = 0; i < block->nr_accesses; i++) {
		const struct block_access *a = &block->accesses[i];

		if ((a->insn & ~BLOCK_MODIFIES) >= insns)
			continue;
		sums->of[CORE_LOADS] += !(a->what & BLOCK_STORE);
		sums->of[CORE_STORES] += a->what & BLOCK_STORE || a->insn & BLOCK_MODIFIES;
	}
}

static void add_trace(struct sums *sums, uint8_t cut, uint64_t pc)
{
	const uint64_t *record, *end = (const uint64_t *)host_thread()->trace;

	for (record = tracer_start(host_thread()); record < end;) {
		const struct block *block = record_block(*record);
		unsigned int insns = 0xffff;

		record += block->words;
		if (record >= end && cut)
			insns = cut == CUT_LAST ? (block->counts & 0xffff) - 1 : cut - 1u;
		add_record(sums, block, insns, record < end ? record_block(*record)->pc : pc);
	}
}

/* Where code has counters in registers, @xmm has them. */
static struct sums counted(const struct counts *more, uint64_t pc, uint8_t (*xmm)[16])
{
	const struct thread *thread = host_thread();
	struct sums sums;

	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++) {
		int64_t counter = thread->events.counter[kind];

		if (kind / 2 < thread->lookup->vectors && more->vectors >> kind / 2 & 1)
			memcpy(&counter, xmm[15 - kind / 2] + kind % 2 * 8, 8);
		sums.of[kind] = counter + more->of[kind];
	}
	if (does.counted & CORE_KINDS_MODEL)
		add_trace(&sums, more->cut, pc);
	return sums;
}

static bool same_sums(const struct sums *a, const struct sums *b)
{
	for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
		if (does.counted >> kind & 1 && a->of[kind] - trace.start.of[kind] != b->of[kind])
			return false;
	return true;
}

/* The bits of rflags for those of enum insn_flag. */
static uint64_t rflags_of(uint8_t flags)
{
	static const uint16_t bits[] = {0x800, 0x80, 0x40, 0x10, 4, 1, 0x400, 0x200};
	uint64_t rflags = 0;

	for (unsigned int i = 0; i < 8; i++)
		rflags |= flags >> i & 1 ? bits[i] : 0;
	return rflags;
}

/* Where something is counted, flags that nobody asks for may be lost. */
static bool as_in_trace(unsigned int i, const struct regs *regs, const struct sums *sums,
			const struct vectors *vectors)
{
	struct regs native = trace.states[i];
	const uint64_t dead = does.counted ? ~rflags_of(trace.live_flags[i]) : 0;

	native.rflags = (native.rflags & ~dead) | (regs->rflags & dead);
	/* It begins by loading them. */
	return same_state(&native, regs) && same_sums(sums, &trace.sums[i]) &&
	       (i < 16 || !memcmp(vectors, &trace.vectors[i], sizeof(*vectors)));
}

/* Whether the instruction at @i did nothing but jump: there need not be a byte that stands for it.
 */
static bool only_jumps(unsigned int i)
{
	struct regs there = trace.states[i + 1];

	there.rip = trace.states[i].rip;
	return same_state(&trace.states[i], &there);
}

/* The state has to be the one that the last point had, or the next one. */
static bool follows(const struct regs *regs, const struct sums *sums, const struct vectors *vectors)
{
	unsigned int last = trace.now + 1;

	while (last + 1 < trace.n && only_jumps(last))
		last++;
	for (unsigned int i = trace.now; i <= last && i < trace.n; i++)
		if (as_in_trace(i, regs, sums, vectors)) {
			trace.now = i;
			return true;
		}
	return false;
}

/* What translate_count() would make of a frame. */
static struct vectors vectors_recovered(uint8_t (*xmm)[16], const struct counts *more)
{
	const struct thread *thread = host_thread();
	struct vectors vectors;

	memcpy(vectors.xmm, xmm, sizeof(vectors));
	for (unsigned int i = 0; i < thread->lookup->vectors; i++)
		if (more->vectors & (COUNT_SAVED | 1u << i))
			memcpy(vectors.xmm[15 - i], thread->vectors[i], 16);
	return vectors;
}

static void on_translated_step(int signo, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	struct vectors vectors;
	struct counts counts;
	struct sums sums;
	struct regs regs;

	(void)signo, (void)info;
	host_regs(c, &regs);
	switch (translate_recover(host_thread(), &regs, &counts)) {
	case TRANSLATE_ELSEWHERE:
		/* It comes back with the program's flags. */
		c->uc_mcontext.gregs[17] &= ~TRAP_FLAG;
		return;
	case TRANSLATE_LEAVING:
		return;
	case TRANSLATE_INSIDE:
		break;
	}
	trace.points++;
	if (trace.failed || regs.rip - (uint64_t)world->code >= CODE_SIZE)
		return;
	sums = counted(&counts, regs.rip, frame_vectors(c));
	vectors = vectors_recovered(frame_vectors(c), &counts);
	trace.failed = !follows(&regs, &sums, &vectors);
	trace.wrong = regs;
	trace.wrong_sums = sums;
}

static void on_step(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	static char *stack;

	if (!stack) {
		stack = malloc(256 << 10);
		sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 256 << 10}, NULL);
	}
	sigaction(SIGTRAP, &action, NULL);
}

/* ---- the tests ---- */

static int protection;

static void new_program(uint64_t program)
{
	seed = program;
	mprotect(world->code, CODE_SIZE, PROT_READ | PROT_WRITE);
	make_program();
	mprotect(world->code, CODE_SIZE, protection);
	for (unsigned int i = 0; i < DATA_SIZE; i++)
		world->data.scratch[i] = any(256);
	memcpy(&world->before, &world->data, sizeof(world->data));
	translate_lock();
	translate_invalidate((uint64_t)world->code, (uint64_t)world->code + CODE_SIZE);
	translate_unlock();
}

/* What the two runs left behind, but for what lies below the stack pointer. */
static bool same_memory(struct data *native)
{
	struct data *now = &world->data;

	now->finish = native->finish;
	for (unsigned int i = 0; i < sizeof(*now); i++)
		if (((uint8_t *)native)[i] != ((uint8_t *)now)[i]) {
			printf("# at %u: %#x %#x\n", i, ((uint8_t *)native)[i],
			       ((uint8_t *)now)[i]);
			return false;
		}
	return true;
}

static bool agrees(uint64_t program)
{
	static struct data native_data;
	struct regs native, translated;

	new_program(program);
	start_state(&native, native_finish, 0);
	native_run(&native);
	memcpy(&native_data, &world->data, sizeof(native_data));
	/* The second time everything is linked. */
	for (unsigned int round = 0; round < 2; round++) {
		start_state(&translated, host_finish, 0);
		host_run(&translated);
		translated.rip = native.rip;
		if (!same_state(&native, &translated))
			return differ(program, "registers differ", &native, &translated);
		if (!same_memory(&native_data))
			return differ(program, "memory differs", &native, &translated);
	}
	return true;
}

static bool recovers(uint64_t program)
{
	struct regs regs;

	new_program(program);
	trace.n = trace.now = 0;
	trace.failed = false;
	on_step(on_native_step);
	start_state(&regs, native_finish, TRAP_FLAG);
	native_run(&regs);
	add_up();
	on_step(on_translated_step);
	start_state(&regs, host_finish, TRAP_FLAG);
	trace.start = counted(&(struct counts){{0}}, 0, NULL);
	host_run(&regs);
	if (trace.failed && getenv("SHOW"))
		for (unsigned int i = trace.now ? trace.now - 1 : 0; i < trace.now + 4; i++)
			show("#", &trace.states[i]);
	if (trace.failed && does.counted)
		for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
			printf("# kind %u: %ld, native %ld\n", kind,
			       trace.wrong_sums.of[kind] - trace.start.of[kind],
			       trace.sums[trace.now].of[kind]);
	if (trace.failed)
		return differ(program, "a state that never was", &trace.states[trace.now],
			      &trace.wrong);
	if (trace.now + 1 < trace.n)
		return differ(program, "states are missing", &trace.states[trace.now], &regs);
	return true;
}

/* What host_finish does until it is left. */
static const struct sums finish = {{[CORE_INSTRUCTIONS] = 5, [CORE_STORES] = 3}};

/* Running freely it counts the same. */
static bool sums_agree(uint64_t program)
{
	struct regs regs;
	struct sums sums;

	for (unsigned int round = 0; round < 2; round++) {
		start_state(&regs, host_finish, 0);
		trace.start = counted(&(struct counts){{0}}, 0, NULL);
		host_run(&regs);
		sums = counted(&(struct counts){{0}}, 0, NULL);
		for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
			sums.of[kind] -= finish.of[kind];
		if (!same_sums(&sums, &trace.sums[trace.n])) {
			printf("# program %#lx:", program);
			for (unsigned int kind = 0; kind < COUNT_KINDS; kind++)
				printf(" %ld/%ld", sums.of[kind] - trace.start.of[kind],
				       trace.sums[trace.n].of[kind]);
			printf("\n");
			return false;
		}
	}
	return true;
}

/* Some kinds, or all of them. */
static bool counts(uint64_t program)
{
	/*
	 * Those of stops(), too, as there can be few caches. The trace does not tell whether a jump
	 * to the next instruction was taken.
	 */
	static const struct instrumentation all[] = {
		{.counted = CORE_KINDS_EXACT},
		{.counted = 3},
		{.counted = CORE_KINDS_EXACT, .checked = CORE_KINDS_EXACT},
		{CORE_KINDS_EXACT, CORE_KINDS_EXACT, INSTRUMENT_FINE},
		{.counted = 0x180},
		{.counted = (CORE_KINDS_EXACT & ~CORE_KIND_BIT(CORE_BRANCHES_TAKEN)) |
			    CORE_KINDS_MODEL},
	};
	bool good;

	does = all[program % 6];
	good = translate_instrument(host_thread(), &does) && recovers(program) &&
	       sums_agree(program);
	if (!good)
		printf("# kinds %#lx\n", does.counted);
	does = (struct instrumentation){0};
	return translate_instrument(host_thread(), &does) && good;
}

static void run(const char *name, bool (*test)(uint64_t), unsigned int n, uint64_t first)
{
	static unsigned int number;
	unsigned int i;

	number++;
	for (i = 0; i < n && test(first + i); i++)
		;
	printf("%sok %u - %s: %u programs from seed %#lx on\n", i < n ? "not " : "", number, name,
	       i, first);
}

/* Counters that are looked at each time that they have counted @period. */
static struct {
	unsigned int kind;
	int64_t period;
	int64_t next; /* as the native run counts */
	bool failed;
} watch;

/* An instruction may count more than one: then the counter is beyond 0. */
static void on_due(struct thread *thread)
{
	const int64_t beyond = thread->events.counter[watch.kind];
	const struct regs *regs = &thread->regs;
	unsigned int i = 0;

	while (i < trace.n && trace.sums[i].of[watch.kind] < watch.next)
		i++;
	if (!watch.failed && i < trace.n) {
		watch.failed = trace.sums[i].of[watch.kind] != watch.next + beyond ||
			       regs->rip != trace.states[i].rip ||
			       memcmp(regs->gpr, trace.states[i].gpr, sizeof(regs->gpr));
		if (watch.failed)
			differ(watch.next, "an overflow elsewhere", &trace.states[i], regs);
	}
	watch.next += beyond + watch.period;
	thread->events.counter[watch.kind] = -watch.period;
	translate_instrument(thread, &does);
}

/* Each overflow is where the native run has counted as much. */
static bool stops(uint64_t program)
{
	static const uint8_t kinds[] = {CORE_INSTRUCTIONS, CORE_BRANCHES_TAKEN, CORE_STORES};
	struct core_task *task = &host_thread()->events;
	struct regs regs;
	int64_t total;

	if (!recovers(program))
		return false;
	watch.kind = kinds[program % sizeof(kinds)];
	/* Also so long that code is gone through that looks only whether it is near. */
	watch.period = watch.next =
		program % 2 ? 1 + (int64_t)(program % 37) : 100 + 9 * (int64_t)(program % 37);
	watch.failed = false;
	does = (struct instrumentation){
		.counted = CORE_KINDS_EXACT,
		.checked = CORE_KINDS_EXACT,
	};
	host_due = on_due;
	task->counter[watch.kind] = -watch.period;
	task->counting_down = CORE_KIND_BIT(watch.kind);
	start_state(&regs, host_finish, 0);
	if (!translate_instrument(host_thread(), &does))
		return false;
	host_run(&regs);
	task->counter[watch.kind] = CORE_COUNTER_START;
	task->counting_down = 0;
	host_due = NULL;
	does = (struct instrumentation){0};
	total = trace.sums[trace.n].of[watch.kind];
	if (watch.next <= total)
		printf("# program %#lx: the last at %ld, not at %ld of %ld\n", program,
		       watch.next - watch.period, watch.next, total);
	return translate_instrument(host_thread(), &does) && !watch.failed && watch.next > total;
}

/* Code that nobody wrote for this: the C library's, far away from the cache. */
static unsigned long printed;

static void print_numbers(long n)
{
	char line[200];

	printed = 0;
	for (long i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "%ld %s %.7g %lx", i, "and", (double)i / 3, i * i);
		printed = printed * 31 + line[strlen(line) - 1];
	}
}

static bool runs_library(uint64_t n)
{
	unsigned long native;

	print_numbers(n);
	native = printed;
	host_call(print_numbers, n);
	return native == printed;
}

/* time(2) where old programs call it. */
static void ask_time(long unused)
{
	(void)unused;
	printed = ((long (*)(long *))0xffffffffff600400)(NULL);
}

static bool has_vsyscall(uint64_t unused)
{
	const uint64_t before = time(NULL);

	(void)unused;
	host_call(ask_time, 0);
	return printed >= before && printed <= (uint64_t)time(NULL);
}

/* What is emitted depends on where the program is. */
static void new_world(int flags, int prot)
{
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	protection = prot;
	mprotect(world->code, CODE_SIZE, prot);
	host_maps();
}

/* Makes the translator think that data lies between the code, so that fragments check themselves.
 */
static bool heat(uint64_t program)
{
	const uint64_t code = (uint64_t)world->code, page = 4096;
	bool hot = agrees(program);

	for (uint64_t p = code; p < code + CODE_SIZE; p += page)
		for (unsigned int i = 0; i < 32; i++)
			translate_written(host_thread(), p);
	return hot && cache_is_hot(cache_number(0), code / page);
}

/* Makes it nearly full: somewhere on the way it is emptied, and all goes on. */
static bool is_emptied(uint64_t program)
{
	struct cache *cache = cache_number(0);
	unsigned int rounds = 0;

	cache->code_next = cache->stubs - 2 * FRAGMENT_BYTES;
	while (cache->code_next > cache->stubs / 2 && rounds++ < 20)
		if (!agrees(program))
			return false;
	return cache->code_next < cache->stubs / 2 && agrees(program);
}

/* In caches for more and more instrumentation, and, when there can be no more, in the last. */
static bool has_many_caches(uint64_t program)
{
	struct instrumentation wanted = {.counted = program % (2 * CACHES_MAX)};
	struct cache *cache;

	if (!translate_instrument(host_thread(), &wanted))
		return false;
	cache = (struct cache *)host_thread()->lookup;
	if (wanted.counted & ~cache->does.counted)
		return false;
	if (!agrees(program) || cache->nr_fragments < 3)
		return false;
	return translate_instrument(host_thread(), &(struct instrumentation){0}) &&
	       host_thread()->lookup == &cache_number(0)->lookup && agrees(program);
}

/* Without memory for the model's cache the thread stays where it is, and is told. */
static bool is_refused(uint64_t program)
{
	const struct instrumentation cycles = {.counted = CORE_KIND_BIT(CORE_CYCLES)},
				     misses = {.counted = CORE_KIND_BIT(CORE_BRANCH_MISSES) |
							  CORE_KIND_BIT(CORE_INSTRUCTIONS),
					       .checked = CORE_KIND_BIT(CORE_INSTRUCTIONS)};
	const struct lookup *plain = host_thread()->lookup, *traced;

	host_short_of_memory = true;
	if (translate_instrument(host_thread(), &cycles) || host_thread()->lookup != plain)
		return false;
	host_short_of_memory = false;
	if (!translate_instrument(host_thread(), &cycles) || host_thread()->lookup == plain)
		return false;
	/* One does for all. */
	traced = host_thread()->lookup;
	if (!translate_instrument(host_thread(), &misses) || host_thread()->lookup != traced)
		return false;
	return agrees(program) && translate_instrument(host_thread(), &(struct instrumentation){0});
}

/* Processors that branches are emitted for. */
static const struct processor {
	const char *name;
	enum table_index index;
	bool quick_loop;
} processors[] = {
	{"intel", INDEX_PEXT, false},
	{"amd", INDEX_PEXT, true},
	{"zen2", INDEX_RORX, true},
	{"old", INDEX_MOVZX, false},
};

static void be(const char *name)
{
	for (unsigned int i = 0; i < sizeof(processors) / sizeof(*processors); i++) {
		const struct processor *processor = &processors[i];

		if (strcmp(name, processor->name))
			continue;
		if (processor->index != INDEX_MOVZX && !__builtin_cpu_supports("bmi2")) {
			printf("1..0 # SKIP the processor has no BMI2\n");
			exit(0);
		}
		tables_choose(processor->index, processor->quick_loop);
		return;
	}
	fprintf(stderr, "no processor is called %s\n", name);
	exit(2);
}

/* test-translate [PROGRAMS [SEED [PROCESSOR]]] */
int main(int argc, char **argv)
{
	const unsigned int programs = argc > 1 ? strtoul(argv[1], NULL, 0) : 100;
	const uint64_t first =
		argc > 2 && *argv[2] ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 3)
		be(argv[3]);
	printf("1..17\n");
	trace.states = malloc(TRACE_MAX * sizeof(*trace.states));
	trace.vectors = malloc(TRACE_MAX * sizeof(*trace.vectors));
	trace.sums = malloc((TRACE_MAX + 1) * sizeof(*trace.sums));
	trace.live_flags = malloc(TRACE_MAX);
	host_start();
	run("the C library runs", runs_library, 3, 1000);
	run("vsyscalls are made", has_vsyscall, 1, 0);
	new_world(MAP_32BIT, PROT_READ | PROT_EXEC);
	run("what there is no memory for is refused", is_refused, 1, first << 20);
	run("random programs in low memory end alike", agrees, programs, first << 20);
	run("every step has a true state", recovers, programs / 20 + 1, first << 20);
	run("every step is counted", counts, programs / 10 + 1, first << 20);
	new_world(0, PROT_READ | PROT_EXEC);
	run("overflows stop where they are due", stops, programs / 4 + 5, first << 21);
	run("random programs in high memory end alike", agrees, programs, first << 21);
	run("every step has a true state", recovers, programs / 20 + 1, first << 21);
	run("every step is counted", counts, programs / 10 + 1, first << 21);
	run("a full cache is emptied", is_emptied, 10, first << 20);
	run("a thread goes from cache to cache", has_many_caches, 4 * CACHES_MAX, first << 20);
	new_world(0, PROT_READ | PROT_WRITE | PROT_EXEC);
	run("programs that may be written to are counted", counts, programs / 20 + 1, first << 20);
	run("pages become hot", heat, 1, first << 20);
	run("programs between data end alike", agrees, programs / 4 + 1, first << 22);
	run("every step has a true state", recovers, programs / 20 + 1, first << 22);
	run("every step is counted", counts, programs / 10 + 1, first << 22);
	return 0;
}
