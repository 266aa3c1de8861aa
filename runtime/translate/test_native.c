// SPDX-License-Identifier: MIT
#include "runtime/translate/test_native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/translate/decode.h"
#include "runtime/translate/test_program.h"

#define TRACE_MAX 20000

struct trace trace;

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

/* ---- states ---- */

#define FLAGS 0xcd5 /* CF PF AF ZF SF DF OF */

bool same_state(const struct regs *a, const struct regs *b)
{
	return !memcmp(a->gpr, b->gpr, sizeof(a->gpr)) && a->rip == b->rip &&
	       !((a->rflags ^ b->rflags) & FLAGS);
}

void show_state(const char *what, const struct regs *regs)
{
	printf("# %s rip %#lx flags %#lx\n#", what, regs->rip, regs->rflags & FLAGS);
	for (unsigned int i = 0; i < 16; i++)
		printf(" %lx", regs->gpr[i]);
	printf("\n");
}

bool differ(uint64_t program, const char *what, const struct regs *native,
	    const struct regs *translated)
{
	printf("# program %#lx: %s\n", program, what);
	show_state("native", native);
	show_state("translated", translated);
	return false;
}

/* ---- what the steps add up to ---- */

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

/* Where it leads to what follows it is taken neither way. */
static bool jumps(const struct insn *insn, const struct regs *regs)
{
	if (insn_target(insn, regs->rip) == regs->rip + insn->length)
		return false;
	return insn->class == INSN_JCC ? holds(insn->opcode, regs->rflags) : loops(insn, regs);
}

static void add_floating(struct sums *sums, const struct insn *insn)
{
	const struct insn_floating f = insn_floating(insn);
	unsigned int kind = f.is_double ? CORE_FP_SCALAR_DOUBLE : CORE_FP_SCALAR_SINGLE;

	if (!f.arithmetic)
		return;
	if (f.vector == 16)
		kind = f.is_double ? CORE_FP_128_DOUBLE : CORE_FP_128_SINGLE;
	sums->of[kind]++; /* there is no FMA among them */
	if (f.arithmetic == INSN_ADD)
		sums->of[CORE_FLOPS_ADD] += f.elements;
	if (f.arithmetic == INSN_MULTIPLY)
		sums->of[CORE_FLOPS_MULTIPLY] += f.elements;
	if (f.arithmetic == INSN_DIVIDE)
		sums->of[CORE_FLOPS_DIVIDE] += f.elements;
}

static void add_insn(struct sums *sums, const struct insn *insn, unsigned int i)
{
	struct insn_effects effects;

	insn_effects(insn, &effects);
	add_floating(sums, insn);
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
		sums->of[CORE_CALLS] += insn_is_call(insn);
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

/* ---- single steps ---- */

void on_step(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	static char *stack;

	if (!stack) {
		stack = malloc(256 << 10);
		sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 256 << 10}, NULL);
	}
	sigaction(SIGTRAP, &action, NULL);
}

uint8_t (*frame_vectors(const ucontext_t *context))[16]
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

static void allocate(void)
{
	trace.states = malloc(TRACE_MAX * sizeof(*trace.states));
	trace.vectors = malloc(TRACE_MAX * sizeof(*trace.vectors));
	trace.sums = malloc((TRACE_MAX + 1) * sizeof(*trace.sums));
	trace.live_flags = malloc(TRACE_MAX);
}

void native_trace(void)
{
	struct regs regs;

	if (!trace.states)
		allocate();
	trace.n = 0;
	on_step(on_native_step);
	program_start(&regs, native_finish, TRAP_FLAG);
	native_run(&regs);
	add_up();
}
