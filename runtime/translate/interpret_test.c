// SPDX-License-Identifier: MIT
/*
 * Instructions as they are interpreted, held against the processor, which executes them step by
 * step in a child: random ones, and those of programs that are named. What is counted of them is
 * held against what code counts.
 *
 * Usage: test-interpret INSTRUCTIONS SEED PROGRAM...
 */
#include "runtime/translate/test_host.h"

#include <cpuid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/kinds.h"
#include "runtime/translate/alu.h"
#include "runtime/translate/decode.h"
#include "runtime/translate/interpret.h"

enum { DF = 0x400 };

/* ---- the child ---- */

static pid_t child;
static uint64_t base_of_fs;

/* Where random instructions may write, ROOM bytes; 0: anywhere. */
enum { DATA = 4096, ROOM = 3 * DATA };
static uint64_t writable;

static struct {
	uint64_t address, value;
	unsigned int size;
} stored;

static bool copy(void *to, uint64_t from, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)from, size};

	return syscall(SYS_process_vm_readv, child, &here, 1UL, &there, 1UL, 0UL) == (long)size;
}

bool linux_load(uint64_t *value, uint64_t address, unsigned int size, bool fs)
{
	*value = 0;
	return copy(value, fs ? address + base_of_fs : address, size);
}

bool linux_load_code(uint64_t code[2], uint64_t pc)
{
	return copy(code, pc, 16);
}

/* The child itself is going to do it. Programs write where they may. */
bool linux_store(uint64_t address, uint64_t value, unsigned int size)
{
	uint64_t before;

	if (!linux_load(&before, address, size, false) ||
	    (writable && address - writable > ROOM - size))
		return false;
	stored.address = address;
	stored.value = value;
	stored.size = size;
	return true;
}

static bool began(void)
{
	int status;

	return child > 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status);
}

static void to_regs(const struct user_regs_struct *from, struct regs *to)
{
	const uint64_t gpr[16] = {from->rax, from->rcx, from->rdx, from->rbx, from->rsp, from->rbp,
				  from->rsi, from->rdi, from->r8,  from->r9,  from->r10, from->r11,
				  from->r12, from->r13, from->r14, from->r15};

	memcpy(to->gpr, gpr, sizeof(gpr));
	to->rip = from->rip;
	to->rflags = from->eflags;
}

static void from_regs(const struct regs *from, struct user_regs_struct *to)
{
	to->rax = from->gpr[0], to->rcx = from->gpr[1], to->rdx = from->gpr[2];
	to->rbx = from->gpr[3], to->rsp = from->gpr[4], to->rbp = from->gpr[5];
	to->rsi = from->gpr[6], to->rdi = from->gpr[7], to->r8 = from->gpr[8];
	to->r9 = from->gpr[9], to->r10 = from->gpr[10], to->r11 = from->gpr[11];
	to->r12 = from->gpr[12], to->r13 = from->gpr[13], to->r14 = from->gpr[14];
	to->r15 = from->gpr[15];
	to->rip = from->rip;
	to->eflags = from->rflags;
}

static void look(struct regs *regs)
{
	struct user_regs_struct all;

	ptrace(PTRACE_GETREGS, child, 0, &all);
	base_of_fs = all.fs_base;
	to_regs(&all, regs);
}

/* Returns whether it has made a step, and no signal came instead of one. */
static bool step(int *status)
{
	ptrace(PTRACE_SINGLESTEP, child, 0, 0);
	waitpid(child, status, 0);
	return WIFSTOPPED(*status) && WSTOPSIG(*status) == SIGTRAP;
}

/* ---- what has to be ---- */

/* As code counts it (count_insn.c); @taken: the condition held. */
static uint64_t counted(const uint8_t *code, bool taken)
{
	uint64_t kinds = CORE_KIND_BIT(CORE_INSTRUCTIONS);
	struct insn_effects effects;
	struct insn insn;

	if (!insn_decode(&insn, code, 16))
		return 0;
	insn_effects(&insn, &effects);
	for (unsigned int i = 0; i < effects.nr_memory; i++) {
		if (effects.memory[i].access & ACCESS_R)
			kinds |= CORE_KIND_BIT(CORE_LOADS);
		if (effects.memory[i].access & ACCESS_W)
			kinds |= CORE_KIND_BIT(CORE_STORES);
	}
	if (insn.class == INSN_PLAIN)
		return kinds;
	kinds |= CORE_KIND_BIT(CORE_BRANCHES);
	if (insn.class == INSN_JCC)
		kinds |= CORE_KIND_BIT(CORE_BRANCHES_CONDITIONAL);
	if (insn.class != INSN_JCC || taken)
		kinds |= CORE_KIND_BIT(CORE_BRANCHES_TAKEN);
	if (insn_is_call(&insn))
		kinds |= CORE_KIND_BIT(CORE_CALLS);
	if (insn.class == INSN_RET)
		kinds |= CORE_KIND_BIT(CORE_RETURNS);
	if (insn.class == INSN_CALL_INDIRECT || insn.class == INSN_JMP_INDIRECT)
		kinds |= CORE_KIND_BIT(CORE_BRANCHES_INDIRECT);
	return kinds;
}

static bool is_amd(void)
{
	unsigned int a, name = 0, c, d;

	__cpuid(0, a, name, c, d);
	return name == signature_AMD_ebx;
}

/* Flags of which the manuals say what the instruction does to them, or on which all processors
 * agree with themselves: a bit test is done in another way, and so is a rotation by a constant,
 * but by AMD's. */
static uint64_t known_flags(const uint8_t *code)
{
	struct insn insn;
	bool rotates, tests;

	if (!insn_decode(&insn, code, 16))
		return 0;
	rotates = insn.map == 0 && (insn.opcode == 0xc0 || insn.opcode == 0xc1) &&
		  (insn.modrm >> 3 & 7) < 4;
	tests = insn.map == 1 && (insn.opcode == 0xa3 || insn.opcode == 0xba);
	return DF | (rotates && !is_amd() ? STATUS & ~OF : tests ? CF | ZF : STATUS);
}

static bool has_stored(void)
{
	uint64_t value;

	return !stored.size || (linux_load(&value, stored.address, stored.size, false) &&
				!memcmp(&value, &stored.value, stored.size));
}

static void show(const char *what, const struct regs *regs)
{
	printf("# %s rip %#lx flags %#lx\n#", what, regs->rip, regs->rflags);
	for (unsigned int i = 0; i < 16; i++)
		printf(" %lx", regs->gpr[i]);
	printf("\n");
}

static bool complain(const char *what, const uint8_t *code, const struct regs *before,
		     const struct regs *native, const struct regs *ours)
{
	printf("# %s:", what);
	for (unsigned int i = 0; i < 15; i++)
		printf(" %02x", code[i]);
	printf("\n");
	show("before", before);
	show("native", native);
	show("ours  ", ours);
	return false;
}

/* Of an instruction of @before that was done as @ours, with @kinds, and that the child has done. */
static bool agree(const uint8_t *code, const struct regs *before, const struct regs *native,
		  const struct regs *ours, uint64_t kinds)
{
	const uint64_t flags = known_flags(code);

	if (memcmp(native->gpr, ours->gpr, sizeof(native->gpr)) || native->rip != ours->rip ||
	    (native->rflags ^ ours->rflags) & flags)
		return complain("state differs", code, before, native, ours);
	if (!has_stored())
		return complain("memory differs", code, before, native, ours);
	if (kinds != counted(code, kinds >> CORE_BRANCHES_TAKEN & 1))
		return complain("counts differ", code, before, native, ours);
	return true;
}

/* ---- programs ---- */

static bool begin_program(const char *program)
{
	child = fork();
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) || !freopen("/dev/null", "w", stdout) ||
		    !freopen("/dev/null", "r", stdin))
			_exit(2);
		execl("/bin/sh", "sh", "-c", program, (char *)NULL);
		_exit(2);
	}
	return began();
}

/* As many of its instructions as there are, @most at most. */
static bool agrees_on(const char *program, unsigned long most, unsigned long *done)
{
	struct regs before, ours, native;
	unsigned long insns = 0;
	bool same = true;
	int status = 0;

	*done = 0;
	look(&before);
	for (; same && insns < most; insns++, before = native) {
		uint8_t code[INTERPRET_ROOM] = {0};
		uint64_t kinds = 0;

		ours = before;
		stored.size = 0;
		if (linux_load_code((uint64_t *)code, before.rip))
			kinds = interpret(&ours, code);
		if (!kinds && memcmp(&ours, &before, sizeof(ours)))
			same = complain("changed", code, &before, &before, &ours);
		if (!step(&status))
			break;
		look(&native);
		if (!kinds)
			continue;
		same &= agree(code, &before, &native, &ours, kinds);
		++*done;
	}
	if (!WIFEXITED(status)) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	printf("# %s: %lu of %lu\n", program, *done, insns);
	return same;
}

/* ---- random instructions ---- */

static uint64_t seed;

static uint64_t any(uint64_t below)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (seed >> 33) % below;
}

static uint64_t any64(void)
{
	static const uint64_t edges[] = {0,	     1,		 0x7f,	    0x80,
					 0xff,	     0x7fff,	 0x8000,    0x7fffffff,
					 0x80000000, 0xffffffff, 1UL << 63, ~0UL};

	if (!any(3))
		return edges[any(sizeof(edges) / sizeof(*edges))];
	return any(1UL << 31) << 33 ^ any(1UL << 31) << 11 ^ any(1UL << 31);
}

/* Opcodes that interpret.c has, and whatever else. */
static unsigned int any_code(uint8_t *code)
{
	static const uint8_t prefixes[] = {0x66, 0x66, 0x2e, 0x3e, 0x64};
	unsigned int n = 0;

	while (!any(5))
		code[n++] = prefixes[any(sizeof(prefixes))];
	if (any(2))
		code[n++] = 0x40 | any(16);
	if (!any(4))
		code[n++] = 0x0f;
	code[n++] = any(256);
	for (unsigned int i = n; i < 16; i++)
		code[i] = any(3) ? any(256) : 0;
	return n;
}

static void any_regs(struct regs *regs, uint64_t data)
{
	for (unsigned int i = 0; i < 16; i++)
		regs->gpr[i] = any(2) ? data + DATA / 4 + any(DATA / 2) : any64();
	if (any(4))
		regs->gpr[REG_RSP] = data + DATA / 4 + 8 * any(DATA / 16);
	/* With one that is not canonical some processors do not return to the program. */
	regs->gpr[REG_RSP] &= (1UL << 47) - 1;
	regs->rflags = (any64() & STATUS) | 0x202;
}

static bool begin_empty(uint8_t **memory)
{
	*memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (*memory == MAP_FAILED)
		return false;
	child = fork();
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(2);
		raise(SIGSTOP);
		_exit(0);
	}
	return began();
}

/* One: true if they agree, or there is nothing to compare. */
static bool agrees_once(struct user_regs_struct *all, uint8_t *memory, unsigned long *done)
{
	uint8_t *const at = memory + 2 * DATA + DATA / 2;
	static uint8_t data[2 * DATA];
	uint8_t code[INTERPRET_ROOM] = {0};
	struct regs before, ours, native;
	uint64_t kinds;
	int status;

	any_code(code);
	memcpy(at, code, 16);
	any_regs(&before, (uint64_t)memory);
	before.rip = (uint64_t)at;
	memcpy(data, memory, sizeof(data));
	ours = before;
	stored.size = 0;
	kinds = interpret(&ours, code);
	if (!kinds)
		return !memcmp(&ours, &before, sizeof(ours)) ||
		       complain("changed", code, &before, &before, &ours);
	from_regs(&before, all);
	ptrace(PTRACE_SETREGS, child, 0, all);
	if (!step(&status)) {
		/* Where it has gone there is nothing, or it may not be told so: the jump itself. */
		look(&native);
		if (WIFSTOPPED(status) && kinds & CORE_KIND_BIT(CORE_BRANCHES_TAKEN))
			return true;
		return complain("a signal instead", code, &before, &native, &ours);
	}
	look(&native);
	++*done;
	if (!agree(code, &before, &native, &ours, kinds))
		return false;
	/* And nothing else is written. */
	for (unsigned int i = 0; i < stored.size; i++)
		if (stored.address - (uint64_t)memory + i < sizeof(data))
			data[stored.address - (uint64_t)memory + i] =
				(uint8_t)(stored.value >> 8 * i);
	return !memcmp(data, memory, sizeof(data)) ||
	       complain("other memory differs", code, &before, &native, &ours);
}

static bool agrees_on_any(unsigned long insns)
{
	struct user_regs_struct all;
	unsigned long done = 0;
	uint8_t *memory;
	bool same = true;

	if (!begin_empty(&memory))
		return false;
	ptrace(PTRACE_GETREGS, child, 0, &all);
	base_of_fs = all.fs_base;
	all.orig_rax = -1UL;
	writable = (uint64_t)memory;
	for (unsigned int i = 0; i < 2 * DATA; i++)
		memory[i] = any(256);
	for (unsigned long i = 0; same && i < insns; i++)
		same = agrees_once(&all, memory, &done);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	writable = 0;
	printf("# %lu of %lu\n", done, insns);
	return same && done > insns / 20;
}

static bool can_trace(void)
{
	uint8_t *memory;
	uint64_t word;
	bool can = begin_empty(&memory);

	if (can) {
		can = copy(&word, (uint64_t)memory, sizeof(word));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return can;
}

int main(int argc, char **argv)
{
	const unsigned long insns = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	unsigned long done;
	int failed = 0;
	bool good;

	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	if (!can_trace()) {
		printf("1..0 # SKIP ptrace(2) or process_vm_readv(2): %s\n", strerror(errno));
		return 0;
	}
	printf("1..%d\n", argc > 3 ? argc - 2 : 1);
	good = agrees_on_any(insns);
	failed += !good;
	printf("%s 1 - random instructions from seed %lu on\n", good ? "ok" : "not ok",
	       argc > 2 ? strtoul(argv[2], NULL, 0) : 1);
	for (int i = 3; i < argc; i++) {
		good = begin_program(argv[i]) && agrees_on(argv[i], insns, &done) &&
		       done > insns / 2;
		failed += !good;
		printf("%s %d - instructions of '%s'\n", good ? "ok" : "not ok", i - 1, argv[i]);
	}
	return failed != 0;
}
