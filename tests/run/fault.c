// SPDX-License-Identifier: MIT
/*
 * Every way for an instruction to fault: what the handler is told, with what registers, and that
 * what it writes into the context is what the program goes on with.
 *
 * A site loads all registers, runs one instruction and leaves by `leave`, which stores them again.
 * The handler prints the context, adds 0x100 to each register and resumes at `leave`.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

#define R8     0
#define RDI    8
#define RSI    9
#define RBP    10
#define RBX    11
#define RDX    12
#define RAX    13
#define RCX    14
#define RSP    15
#define RIP    16
#define EFL    17
#define ERR    19
#define TRAPNO 20
#define CR2    22

/* Numbered as gregs: r8 .. r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp. 0 for rsp: as it is. */
uint64_t before[16], after[17];
static char names[16][4] = {"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
			    "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp"};
uint64_t saved_rsp;

/* clang-format off */
__asm__(".text\n"
	"enter:\n" /* called by each site: loads the registers but keeps the flags clean */
	"	mov 0+before(%rip), %r8\n"
	"	mov 8+before(%rip), %r9\n"
	"	mov 16+before(%rip), %r10\n"
	"	mov 24+before(%rip), %r11\n"
	"	mov 32+before(%rip), %r12\n"
	"	mov 40+before(%rip), %r13\n"
	"	mov 48+before(%rip), %r14\n"
	"	mov 56+before(%rip), %r15\n"
	"	mov 64+before(%rip), %rdi\n"
	"	mov 72+before(%rip), %rsi\n"
	"	mov 80+before(%rip), %rbp\n"
	"	mov 88+before(%rip), %rbx\n"
	"	mov 96+before(%rip), %rdx\n"
	"	mov 104+before(%rip), %rax\n"
	"	mov 112+before(%rip), %rcx\n"
	"	ret\n"
	"leave:\n"
	"	mov %r8, 0+after(%rip)\n"
	"	mov %r9, 8+after(%rip)\n"
	"	mov %r10, 16+after(%rip)\n"
	"	mov %r11, 24+after(%rip)\n"
	"	mov %r12, 32+after(%rip)\n"
	"	mov %r13, 40+after(%rip)\n"
	"	mov %r14, 48+after(%rip)\n"
	"	mov %r15, 56+after(%rip)\n"
	"	mov %rdi, 64+after(%rip)\n"
	"	mov %rsi, 72+after(%rip)\n"
	"	mov %rbp, 80+after(%rip)\n"
	"	mov %rbx, 88+after(%rip)\n"
	"	mov %rdx, 96+after(%rip)\n"
	"	mov %rax, 104+after(%rip)\n"
	"	mov %rcx, 112+after(%rip)\n"
	"	mov %rsp, 120+after(%rip)\n"
	"	mov saved_rsp(%rip), %rsp\n"
	"	pushfq\n"
	"	popq 128+after(%rip)\n"
	"	fnclex\n"
	"	cld\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	pop %r12\n"
	"	pop %r13\n"
	"	pop %r14\n"
	"	pop %r15\n"
	"	ret\n");

extern char leave[];

#define SITE(name, instruction)                                                                    \
	extern char at_##name[], after_##name[];                                                   \
	void name(void);                                                                           \
	__asm__(".text\n"                                                                          \
		#name ":\n"                                                                        \
		"	push %r15\n"                                                               \
		"	push %r14\n"                                                               \
		"	push %r13\n"                                                               \
		"	push %r12\n"                                                               \
		"	push %rbp\n"                                                               \
		"	push %rbx\n"                                                               \
		"	mov %rsp, saved_rsp(%rip)\n"                                               \
		"	call enter\n"                                                              \
		"	cmpq $0, 120+before(%rip)\n"                                               \
		"	je 1f\n"                                                                   \
		"	mov 120+before(%rip), %rsp\n"                                              \
		"1:	cmp %r8, %r8\n"                                                           \
		"	stc\n"                                                                     \
		"at_" #name ":\n"                                                                  \
		"	" instruction "\n"                                                         \
		"after_" #name ":\n"                                                               \
		"	jmp leave\n");

SITE(undefined, "ud2")
SITE(undefined_ud1, "ud1 %rax, %rcx")
SITE(locked_jump, ".byte 0xf0, 0xeb, 0")
SITE(no_opcode, ".byte 0x06")
SITE(breakpoint, "int3")
SITE(breakpoint_long, ".byte 0xcd, 3")
SITE(icebp, ".byte 0xf1")
SITE(overflow_gate, "int $4")
SITE(interrupt, "int $0x21")
SITE(halt, "hlt")
SITE(port, "in %dx, %al")
SITE(clear_interrupts, "cli")
SITE(control_register, "mov %rax, %cr0")
SITE(load, "mov (%rax), %rbx")
SITE(store, "movb $1, (%rax)")
SITE(read_modify_write, "addq $1, 8(%rax)") /* locked across lines it is the kernel's to slow down */
SITE(load_rsp_based, "mov 16(%rsp), %rbx")
SITE(push, "push %rax")
SITE(push_memory, "push (%rax)")
SITE(pop_memory, "pop (%rax)")
SITE(call_direct, "call leave")
SITE(call_register, "call *%rax")
SITE(call_memory, "call *8(%rax)")
SITE(jump_register, "jmp *%rax")
SITE(jump_memory, "jmp *8(%rax,%rcx,8)")
SITE(return_near, "ret")
SITE(return_pop, "ret $16")
SITE(divide, "div %rcx")
SITE(divide_signed, "idivl %ecx")
SITE(divide_memory, "divq (%rsi)")
SITE(string_move, "rep movsb")
SITE(string_store, "rep stosq")
SITE(string_compare, "repe cmpsb")
SITE(aligned_vector, "movaps (%rax), %xmm0")
SITE(wide_exchange, "lock cmpxchg16b (%rsi)")
SITE(xmm_divide, "divsd %xmm1, %xmm0")
SITE(x87_wait, "fwait")
SITE(relative_load, "mov forbidden(%rip), %rbx")
SITE(relative_store, "movl $7, forbidden+8(%rip)")
SITE(relative_call, "call *forbidden+16(%rip)")
SITE(relative_jump, "jmp *forbidden+24(%rip)")
SITE(relative_wide, "cmpl $0x12345678, forbidden+32(%rip)")
SITE(thread_load, "mov %fs:(%rax), %rbx")
SITE(leave_frame, "leave")
SITE(enter_frame, "enter $16, $0")
SITE(table_lookup, "xlat")
SITE(masked_store, "maskmovdqu %xmm1, %xmm0")
SITE(legacy_call, "int $0x80")
SITE(probe_call, "syscall")
/* clang-format on */

char forbidden_page[2 * 4096] __attribute__((aligned(4096)));
/* Another name, for the assembler. */
extern char forbidden[];
__asm__(".set forbidden, forbidden_page");

static char *unmapped, *pages; /* pages: read-write, read-only, nothing, then unmapped */
static char *site;
static bool tell_little; /* only what the signal itself says */
static char alternate[65536];

/* An address as the case knows it. */
static const char *place(uint64_t address)
{
	static char text[4][48];
	static unsigned int turn;
	static const struct {
		const char *name;
		char **base;
		size_t size;
	} regions[] = {{"unmapped", &unmapped, 4096}, {"pages", &pages, 5 * 4096}};
	char *out = text[turn++ % 4];

	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
		uint64_t base = (uint64_t)*regions[i].base;

		if (address - base < regions[i].size) {
			snprintf(out, 48, "%s+%#lx", regions[i].name, address - base);
			return out;
		}
	}
	if (address - (uint64_t)site < 16)
		snprintf(out, 48, "site+%lu", address - (uint64_t)site);
	else if (address - (uint64_t)forbidden < 8192)
		snprintf(out, 48, "forbidden+%lu", address - (uint64_t)forbidden);
	else if (address - (saved_rsp - 4096) < 8192)
		snprintf(out, 48, "stack%+ld", (long)(address - saved_rsp));
	else if (address == (uint64_t)leave)
		snprintf(out, 48, "leave");
	else
		snprintf(out, 48, "%#lx", address);
	return out;
}

/* Not canonical: the kernel cannot come back there everywhere. */
#define WILD	 0x8000000000000100
#define NOT_WILD 0x100

static void on_fault(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	bool page_fault = registers[TRAPNO] == 14;

	say("  signal %d code %d", number, info->si_code);
	say(" addr %s", place((uint64_t)info->si_addr));
	registers[EFL] ^= 1;
	if (tell_little) {
		say(" trap %lld error %#llx\n", registers[TRAPNO], registers[ERR]);
		registers[RIP] = (greg_t)leave;
		return;
	}
	say(" rip %s trap %lld error %#llx", place(registers[RIP]), registers[TRAPNO],
	    registers[ERR]);
	say(" cr2 %s flags %#llx\n", page_fault ? place(registers[CR2]) : "-",
	    (registers[EFL] ^ 1) & 0x250ed5);
	for (int i = 0; i < 16; i++)
		if (i == RSP || (uint64_t)registers[i] != before[i])
			say("  %s %s\n", names[i], place(registers[i]));
	for (int i = 0; i < RSP; i++)
		registers[i] += 0x100;
	if ((uint64_t)registers[RSP] == WILD)
		registers[RSP] = NOT_WILD;
	registers[RIP] = (greg_t)leave;
}

static void prepare(void)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

	need(sigaltstack(&stack, NULL) == 0);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		handle(signals[i], on_fault, SA_ONSTACK);
	pages = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(pages != MAP_FAILED);
	need(mprotect(pages + 4096, 4096, PROT_READ) == 0);
	need(mprotect(pages + 2 * 4096, 4096, PROT_NONE) == 0);
	need(munmap(pages + 3 * 4096, 2 * 4096) == 0);
	unmapped = pages + 3 * 4096;
	need(mprotect(forbidden_page, sizeof(forbidden_page), PROT_NONE) == 0);
}

static void fresh(void)
{
	for (int i = 0; i < 15; i++)
		before[i] = 0x1111111111111111u * (i + 1);
	before[RSP] = 0;
}

static void at(const char *name, void (*run)(void), char *address)
{
	say("%s\n", name);
	site = address;
	run();
	if (tell_little) {
		fresh();
		return;
	}
	for (int i = 0; i < RSP; i++)
		if (after[i] != before[i] + 0x100)
			say("  then %s %s\n", names[i], place(after[i]));
	say("  then rsp %s flags %#lx\n", place(after[RSP]), after[16] & 0x250ed5);
	fresh();
}
#define AT(name) at(#name, name, at_##name)

static void plain(void)
{
	AT(undefined);
	AT(undefined_ud1);
	AT(locked_jump);
	AT(no_opcode);
	AT(breakpoint);
	AT(breakpoint_long);
	AT(icebp);
	AT(overflow_gate);
	AT(interrupt);
	AT(halt);
	before[RDX] = 0x80;
	AT(port);
	AT(clear_interrupts);
	AT(control_register);
}

static void memory(void)
{
	before[RAX] = 0;
	AT(load);
	before[RAX] = (uint64_t)unmapped + 5;
	AT(load);
	before[RAX] = 0x8000000000001234;
	AT(load);
	before[RAX] = (uint64_t)pages + 2 * 4096 + 9;
	AT(load);
	before[RAX] = (uint64_t)pages + 4096 + 9;
	AT(store);
	before[RAX] = (uint64_t)pages + 2 * 4096 - 4; /* crosses from read-only into nothing */
	AT(load);
	before[RAX] = (uint64_t)pages + 4096 - 8 - 8 + 5;
	AT(read_modify_write); /* crosses into read-only */
	before[RAX] = (uint64_t)pages + 1;
	AT(aligned_vector);
	before[RSI] = (uint64_t)pages + 8;
	AT(wide_exchange);
	before[RAX] = 0x7000000000000000;
	AT(thread_load);
	before[RBX] = (uint64_t)unmapped;
	before[RAX] = 7;
	AT(table_lookup);
	before[RDI] = (uint64_t)unmapped + 16;
	AT(masked_store); /* mask all zeroes or not: no matter, the handler says */
}

static void relative(void)
{
	AT(relative_load);
	AT(relative_store);
	AT(relative_call);
	AT(relative_jump);
	AT(relative_wide);
}

/* Of what some virtual machines have not: in a child, since it may never end. */
static int status_of(void (*run)(void))
{
	enum { TRIES = 400, TRY_US = 5000 };
	const pid_t child = fork();
	int status;
	pid_t ended = 0;

	need(child >= 0);
	if (!child) {
		need(!close(STDOUT_FILENO) && open("/dev/null", O_WRONLY) == STDOUT_FILENO);
		run();
		_exit(0);
	}
	for (int i = 0; i < TRIES && !ended; i++) {
		usleep(TRY_US);
		ended = waitpid(child, &status, WNOHANG);
	}
	if (!ended) {
		need(!kill(child, SIGKILL));
		ended = waitpid(child, &status, 0);
	}
	need(ended == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void stack(void)
{
	before[RSP] = (uint64_t)unmapped + 0x100;
	AT(push);
	before[RSP] = (uint64_t)unmapped + 0x100;
	AT(load_rsp_based);
	before[RSP] = (uint64_t)pages + 4096 + 0x100;
	AT(call_direct);
	before[RSP] = (uint64_t)unmapped + 0x100;
	before[RAX] = (uint64_t)leave;
	AT(call_register);
	before[RSP] = (uint64_t)unmapped + 0x100;
	before[RAX] = (uint64_t)pages;
	AT(call_memory);
	before[RSP] = (uint64_t)unmapped + 0x100;
	AT(return_near);
	before[RSP] = (uint64_t)unmapped + 0x100;
	AT(return_pop);
	before[RSP] = WILD;
	AT(push);
	before[RSP] = WILD;
	AT(return_near);
	before[RAX] = (uint64_t)unmapped + 3;
	AT(push_memory);
	before[RAX] = (uint64_t)pages + 4096;
	before[RSP] = (uint64_t)pages;
	AT(pop_memory);
	before[RBP] = (uint64_t)unmapped + 0x40;
	AT(leave_frame);
	before[RSP] = (uint64_t)unmapped + 0x40;
	AT(enter_frame);
}

static void transfer(void)
{
	static uint64_t zeroes[2];

	before[RAX] = 0;
	AT(jump_register);
	before[RAX] = (uint64_t)unmapped + 0x123;
	AT(jump_register);
	before[RAX] = (uint64_t)pages + 0x123; /* not executable */
	AT(jump_register);
	before[RAX] = 0xffffffff81000000; /* the kernel's */
	AT(jump_register);
	before[RAX] = 0;
	AT(call_register);
	before[RAX] = (uint64_t)pages + 0x123;
	AT(call_register);
	before[RAX] = (uint64_t)unmapped;
	AT(call_memory);
	before[RAX] = (uint64_t)unmapped;
	before[RCX] = 2;
	AT(jump_memory);
	before[RAX] = (uint64_t)zeroes - 8;
	before[RCX] = 0;
	AT(jump_memory);
	before[RSP] = (uint64_t)pages + 0x100; /* holds zeroes */
	AT(return_near);
	before[RSP] = (uint64_t)pages + 0x100;
	AT(return_pop);
	*(uint64_t *)(pages + 0x100) = (uint64_t)pages + 4096;
	before[RSP] = (uint64_t)pages + 0x100;
	AT(return_near);
}

/* Where no address can be. That is noticed before the branch is done or after it: docs/runtime.md.
 */
static void nowhere(void)
{
	tell_little = true;
	before[RAX] = 0x8000000000000123;
	AT(jump_register);
	before[RAX] = 0x8000000000000123;
	AT(call_register);
	*(uint64_t *)(pages + 0x100) = 0x8000000000000123;
	before[RSP] = (uint64_t)pages + 0x100;
	AT(return_near);
}

static void arithmetic(void)
{
	unsigned int control;
	uint16_t word;

	before[RCX] = 0;
	AT(divide);
	before[RCX] = 1;
	before[RDX] = 1;
	AT(divide); /* the quotient does not fit */
	before[RAX] = 0x80000000;
	before[RDX] = 0xffffffff;
	before[RCX] = 0xffffffff;
	AT(divide_signed);
	*(uint64_t *)pages = 0;
	before[RSI] = (uint64_t)pages;
	AT(divide_memory);

	__asm__ volatile("stmxcsr %0" : "=m"(control));
	control &= ~(1u << 9);
	__asm__ volatile("ldmxcsr %0\n\t"
			 "xorps %%xmm1, %%xmm1\n\t"
			 "mov $1, %%eax\n\t"
			 "cvtsi2sd %%eax, %%xmm0"
			 :
			 : "m"(control)
			 : "eax", "xmm0", "xmm1");
	AT(xmm_divide);
	control |= 1u << 9;
	__asm__ volatile("ldmxcsr %0" : : "m"(control));

	__asm__ volatile("fnstcw %0" : "=m"(word));
	word &= ~(1u << 2);
	__asm__ volatile("fldcw %0\n\tfld1\n\tfldz\n\tfdivrp" : : "m"(word));
	AT(x87_wait);
	__asm__ volatile("fninit");
}

static void string(void)
{
	memset(pages, 0x5a, 4096);
	before[RSI] = (uint64_t)pages;
	before[RDI] = (uint64_t)pages + 4096 - 100;
	before[RCX] = 300;
	AT(string_move);
	before[RDI] = (uint64_t)pages + 4096 - 64;
	before[RCX] = 300;
	AT(string_store);
	memset(pages, 0, 4096);
	before[RSI] = (uint64_t)pages + 4096 + 4000;
	before[RDI] = (uint64_t)pages;
	before[RCX] = 300;
	AT(string_compare);
}

static void fetch(void)
{
	static const uint8_t wide[] = {0x48, 0xb8, 1, 2, 3, 4}; /* mov $imm64, %rax, cut off */
	char *code = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(code != MAP_FAILED);
	/* For place(): these two pages are what `pages` was. */
	char *old = pages;
	pages = code;
	memcpy(code + 4096 - sizeof(wide), wide, sizeof(wide));
	need(mprotect(code + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
	before[RAX] = (uint64_t)code + 4096 - sizeof(wide);
	AT(jump_register); /* into a page that is not executable */
	need(munmap(code + 4096, 8192) == 0);
	before[RAX] = (uint64_t)code + 4096 - sizeof(wide);
	AT(jump_register); /* into nothing */
	code[4095] = (char)0x90;
	before[RAX] = (uint64_t)code + 4095;
	AT(jump_register); /* a nop, and the next is not there */
	memset(code, 0x90, 4094);
	code[4094] = 0x0f;
	code[4095] = 0x0b;
	before[RAX] = (uint64_t)code + 4000;
	AT(jump_register); /* ud2 as the last bytes of a page */
	memset(code + 1000, 0x66, 15);
	code[1015] = (char)0x90;
	before[RAX] = (uint64_t)code + 1000;
	AT(jump_register); /* 16 bytes */
	before[RAX] = (uint64_t)code + 1001;
	code[1016] = 0x0f;
	code[1017] = 0x0b;
	AT(jump_register); /* 15 bytes are no mistake, but what follows is */
	pages = old;
}

/* What `int $0x80` does depends on the kernel's configuration; it does the same natively. */
/* uretprobe(2), which answers by a signal who is not on the kernel's own page of such calls. */
static void probe_returned(void)
{
	tell_little = true;
	before[RAX] = 335;
	AT(probe_call);
	say("  from %s: %ld\n", place(after[RCX]), (long)after[RAX]);
	tell_little = false;
}

static void call_legacy(void)
{
	before[RAX] = 20; /* getpid */
	site = at_legacy_call;
	legacy_call();
	_exit(after[RAX] != (uint64_t)getpid());
}

static void legacy(void)
{
	const int status = status_of(call_legacy);

	say("legacy_call: %d\n", status);
	if (status)
		return;
	before[RAX] = 20; /* getpid */
	site = at_legacy_call;
	legacy_call();
	if (after[RAX] == (uint64_t)getpid())
		say("  the process id\n");
	for (int i = 0; i < RSP; i++)
		if (i != RAX && after[i] != before[i])
			say("  then %s %s\n", names[i], place(after[i]));
	fresh();
	probe_returned();
}

#define FAULT_CASE(name)                                                                           \
	static void case_##name(void)                                                              \
	{                                                                                          \
		prepare();                                                                         \
		fresh();                                                                           \
		name();                                                                            \
	}
FAULT_CASE(plain)
FAULT_CASE(memory)
FAULT_CASE(relative)
FAULT_CASE(stack)
FAULT_CASE(transfer)
FAULT_CASE(nowhere)
FAULT_CASE(arithmetic)
FAULT_CASE(string)
FAULT_CASE(fetch)
FAULT_CASE(legacy)

const struct test_case cases[] = {
	{"plain", case_plain},
	{"memory", case_memory},
	{"relative", case_relative},
	{"stack", case_stack},
	{"transfer", case_transfer},
	{"nowhere", case_nowhere},
	{"arithmetic", case_arithmetic},
	{"string", case_string},
	{"fetch", case_fetch},
	{"legacy", case_legacy},
	{NULL, NULL},
};
