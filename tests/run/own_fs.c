// SPDX-License-Identifier: MIT
/*
 * FS as programs use it, whose bases and operands tally translates where FS is its own
 * (runtime/segment.h). The first case executes instructions at random with an operand that goes by
 * FS, and tells what became of the registers, the flags and the memory.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { RSP = 4, VECTORS = 4, AREA = 256 };

/* In the lowest 2 GiB, so that code reaches it by absolute addresses. */
static struct scene {
	struct values {
		uint64_t gpr[16], flags;
		uint8_t xmm[VECTORS][16];
	} in, out;
	uint64_t rsp;
	uint8_t stack[256];
	uint8_t code[1024];
} * scene;

static _Alignas(64) __thread uint8_t area[AREA];

static uint64_t random_state = 88172645463325252;

static uint64_t any(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* ---- instructions ---- */

enum kind {
	GENERAL = 1, /* ModRM.reg is a general register, of which the size may be any */
	BYTE = 2,    /* of one byte; with GENERAL */
	IMM8 = 4,
	IMM32 = 8, /* 16 bits with a prefix 66 */
	LOCKABLE = 16,
	VECTOR = 32, /* ModRM.reg is a vector register */
	BITS = 64,   /* ModRM.reg says which bit */
	STACK = 128, /* 64 bits, no REX.W */
	SHIFT = 256, /* by cl */
	VEX = 512,   /* of 16 bytes, with VECTOR; by the prefix f3 */
	EVEX = 1024, /* likewise: a short displacement counts 16 bytes */
};

static const struct form {
	uint8_t map, opcode; /* 0, 1 (0f) */
	uint8_t prefix;	     /* before REX; 0: none */
	uint8_t extension;   /* of ModRM.reg; 8: it is a register */
	uint16_t kind;
} forms[] = {
	{0, 0x8b, 0, 8, GENERAL},
	{0, 0x8a, 0, 8, GENERAL | BYTE},
	{0, 0x89, 0, 8, GENERAL},
	{0, 0x88, 0, 8, GENERAL | BYTE},
	{0, 0x01, 0, 8, GENERAL | LOCKABLE},
	{0, 0x03, 0, 8, GENERAL},
	{0, 0x29, 0, 8, GENERAL | LOCKABLE},
	{0, 0x33, 0, 8, GENERAL},
	{0, 0x39, 0, 8, GENERAL},
	{0, 0x85, 0, 8, GENERAL},
	{0, 0x87, 0, 8, GENERAL},
	{0, 0x63, 0, 8, GENERAL},
	{0, 0x69, 0, 8, GENERAL | IMM32},
	{0, 0x6b, 0, 8, GENERAL | IMM8},
	{0, 0x80, 0, 5, GENERAL | BYTE | IMM8},
	{0, 0x81, 0, 4, GENERAL | IMM32 | LOCKABLE},
	{0, 0x83, 0, 7, GENERAL | IMM8},
	{0, 0xc6, 0, 0, GENERAL | BYTE | IMM8},
	{0, 0xc7, 0, 0, GENERAL | IMM32},
	{0, 0xf7, 0, 2, GENERAL | LOCKABLE},
	{0, 0xf7, 0, 3, GENERAL},
	{0, 0xf7, 0, 0, GENERAL | IMM32},
	{0, 0xff, 0, 0, GENERAL | LOCKABLE},
	{0, 0xff, 0, 1, GENERAL},
	{0, 0xff, 0, 6, STACK},
	{0, 0x8f, 0, 0, STACK},
	{0, 0xd1, 0, 4, GENERAL},
	{0, 0xd3, 0, 5, GENERAL | SHIFT},
	{1, 0xb6, 0, 8, GENERAL},
	{1, 0xbf, 0, 8, GENERAL},
	{1, 0xa3, 0, 8, GENERAL | BITS},
	{1, 0xab, 0, 8, GENERAL | BITS | LOCKABLE},
	{1, 0xba, 0, 6, GENERAL | IMM8},
	{1, 0xb1, 0, 8, GENERAL | LOCKABLE},
	{1, 0xc1, 0, 8, GENERAL | LOCKABLE},
	{1, 0x4c, 0, 8, GENERAL},
	{1, 0x95, 0, 0, GENERAL | BYTE},
	{1, 0x10, 0, 8, VECTOR},
	{1, 0x11, 0, 8, VECTOR},
	{1, 0x6f, 0xf3, 8, VECTOR},
	{1, 0xd6, 0x66, 8, VECTOR},
	{1, 0x2a, 0xf2, 8, VECTOR},
	{1, 0x70, 0x66, 8, VECTOR | IMM8},
	{1, 0x6f, 0, 8, VECTOR | VEX},
	{1, 0x7f, 0, 8, VECTOR | VEX},
	{1, 0x6f, 0, 8, VECTOR | EVEX},
	{1, 0x7f, 0, 8, VECTOR | EVEX},
};

static uint8_t *at;

static void put(uint8_t byte)
{
	*at++ = byte;
}

static void put32(uint32_t value)
{
	memcpy(at, &value, 4);
	at += 4;
}

static uint32_t address_of(const void *what)
{
	return (uint32_t)(uintptr_t)what;
}

/* OP %reg, [absolute]: mov, of 64 bits */
static void put_move(uint8_t opcode, unsigned int reg, const void *what)
{
	put(0x48 | (reg & 8 ? 4 : 0));
	put(opcode);
	put(0x04 | (reg & 7) << 3);
	put(0x25);
	put32(address_of(what));
}

static void put_vector(uint8_t opcode, unsigned int reg, const void *what)
{
	put(0x0f);
	put(opcode);
	put(0x04 | reg << 3);
	put(0x25);
	put32(address_of(what));
}

/* An operand by FS in the middle of the area, and the registers that lead there. */
struct operand {
	unsigned int base, index; /* 16: none; rsp is never the index */
	unsigned int scale;
	unsigned int disp_size; /* 0, 1 or 4 */
	int32_t disp;
};

static struct operand any_operand(uint64_t *gpr, int granule)
{
	const uint64_t goal = (uint64_t)(area + AREA / 2 - (any(2) ? any(16) : 16 * any(4))) -
			      *(uint64_t *)__builtin_thread_pointer();
	struct operand o = {.base = (unsigned int)any(17), .index = (unsigned int)any(17)};

	/* An interrupt may come, and with it an end where rsp is not canonical. */
	if (o.index == RSP || o.index == o.base || o.base == RSP)
		o.index = 16;
	if (o.base == 16 && o.index != 16)
		o.base = o.index == 3 ? 5 : 3;
	o.scale = (unsigned int)any(4);
	o.disp_size = o.base == 16 ? 4 : any(3) ? any(2) ? 1 : 4 : 0;
	if (o.base == 16) {
		o.disp = (int32_t)goal;
		return o;
	}
	if (!o.disp_size && (o.base & 7) == 5)
		o.disp_size = 1;
	o.disp = o.disp_size == 1   ? (int8_t)any(256)
		 : o.disp_size == 4 ? (int32_t)any(1UL << 32)
				    : 0;
	gpr[o.base] = goal - (uint64_t)(int64_t)(o.disp_size == 1 ? o.disp * granule : o.disp) -
		      (o.index == 16 ? 0 : gpr[o.index] << o.scale);
	return o;
}

static void put_operand(const struct operand *o, unsigned int reg)
{
	const uint8_t mod = o->base == 16	? 0
			    : o->disp_size == 1 ? 0x40
			    : o->disp_size == 4 ? 0x80
						: 0;

	if (o->base == 16 || o->index != 16 || (o->base & 7) == 4 || any(4) == 0) {
		put(mod | (reg & 7) << 3 | 4);
		put(o->scale << 6 | (o->index == 16 ? 4 : o->index & 7) << 3 |
		    (o->base == 16 ? 5 : o->base & 7));
	} else {
		put(mod | (reg & 7) << 3 | (o->base & 7));
	}
	if (o->disp_size == 1)
		put((uint8_t)o->disp);
	if (o->disp_size == 4)
		put32((uint32_t)o->disp);
}

/* VEX or EVEX, and the opcode: reg and vvvv are of the first four. */
static void put_vex(const struct form *f, const struct operand *o)
{
	const uint8_t extended = 0x80 | (o->index != 16 && o->index & 8 ? 0 : 0x40) |
				 (o->base != 16 && o->base & 8 ? 0 : 0x20);

	if (f->kind & VEX) {
		put(0xc4), put(extended | 1), put(0x7a);
	} else {
		put(0x62), put(extended | 0x10 | 1), put(0x7e), put(0x08);
	}
	put(f->opcode);
}

static void put_instruction(const struct form *f, struct values *in)
{
	const bool word = f->kind & GENERAL && !(f->kind & BYTE) && any(4) == 0;
	const bool wide = f->kind & GENERAL && !word && any(2);
	const bool locked = f->kind & LOCKABLE && any(3) == 0;
	unsigned int reg = f->extension < 8   ? f->extension
			   : f->kind & VECTOR ? (unsigned int)any(VECTORS)
					      : (unsigned int)any(16);
	struct operand o;
	uint8_t rex;

	do
		o = any_operand(in->gpr, f->kind & EVEX ? 16 : 1);
	while (f->kind & STACK && o.base == RSP);
	if (o.base != RSP)
		in->gpr[RSP] = address_of(scene->stack + 128);
	if (f->kind & BITS) {
		/* An index of bits that is also the operand's would lead elsewhere. */
		while (reg == o.base || reg == o.index)
			reg = (reg + 1) % 16;
		in->gpr[reg] %= 64;
	}
	rex = (wide ? 8 : 0) | (reg & 8 && f->extension == 8 ? 4 : 0) |
	      (o.index != 16 && o.index & 8 ? 2 : 0) | (o.base != 16 && o.base & 8 ? 1 : 0);
	if (f->kind & (VEX | EVEX)) {
		put(0x64);
		put_vex(f, &o);
		put_operand(&o, reg);
		return;
	}
	/* Prefixes that do not count are among them. */
	if (any(8) == 0)
		put(0x65);
	if (any(8) == 0)
		put(0x4f);
	if (any(2))
		put(0x64);
	if (word)
		put(0x66);
	if (f->prefix)
		put(f->prefix);
	if (locked)
		put(0xf0);
	if (any(3) == 0 || !memchr(scene->code, 0x64, (size_t)(at - scene->code)))
		put(0x64);
	if (rex || any(3) == 0)
		put(0x40 | rex);
	if (f->map)
		put(0x0f);
	put(f->opcode);
	put_operand(&o, reg);
	if (f->kind & IMM8)
		put((uint8_t)any(256));
	if (f->kind & IMM32) {
		if (word)
			put((uint8_t)any(256)), put((uint8_t)any(256));
		else
			put32((uint32_t)any(1UL << 32));
	}
}

/* With all registers the program's, rsp among them: nothing but an instruction that says so uses
 * the stack. The program handles no signal here; the runtime's own come on a stack of its own. */
static void put_scene(const struct form *f)
{
	struct values *in = &scene->in, *out = &scene->out;
	uint8_t middle[64], *from;

	at = from = scene->code;
	put_instruction(f, in);
	memcpy(middle, from, (size_t)(at - from));
	const size_t size = (size_t)(at - from);

	at = scene->code;
	for (unsigned int reg = 0; reg < 16; reg++)
		if (reg == 3 || reg == 5 || reg >= 12) {
			if (reg & 8)
				put(0x41);
			put(0x50 | (reg & 7));
		}
	put_move(0x89, RSP, &scene->rsp);
	put(0xff), put(0x34), put(0x25), put32(address_of(&in->flags)), put(0x9d); /* push; popf */
	for (unsigned int n = 0; n < VECTORS; n++)
		put_vector(0x10, n, in->xmm[n]);
	for (unsigned int reg = 0; reg < 16; reg++)
		put_move(0x8b, reg, &in->gpr[reg]);
	memcpy(at, middle, size);
	at += size;
	for (unsigned int reg = 0; reg < 16; reg++)
		put_move(0x89, reg, &out->gpr[reg]);
	for (unsigned int n = 0; n < VECTORS; n++)
		put_vector(0x11, n, out->xmm[n]);
	put_move(0x8b, RSP, &scene->rsp);
	put(0x9c), put(0x8f), put(0x04), put(0x25), put32(address_of(&out->flags)); /* pushf; pop */
	for (unsigned int reg = 15; reg < 16; reg--)
		if (reg == 3 || reg == 5 || reg >= 12) {
			if (reg & 8)
				put(0x41);
			put(0x58 | (reg & 7));
		}
	put(0xc3);
}

/* What is about no operand: stacks, and destinations of strings. */
static void case_prefixes_of_gs_that_do_not_count(void)
{
	uint64_t value = 1, sum = 0;
	uint8_t byte = 2;
	void *to = &byte;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 ".byte 0x65\n\t"
			 "push %[value]\n\t"
			 ".byte 0x65\n\t"
			 "pop %[sum]\n\t"
			 ".byte 0x65\n\t"
			 "call 1f\n\t"
			 "add $8, %[sum]\n\t"
			 "jmp 2f\n"
			 "1:\n\t"
			 "add $4, %[sum]\n\t"
			 ".byte 0x65\n\t"
			 "ret\n"
			 "2:\n\t"
			 "mov $16, %%al\n\t"
			 ".byte 0x65\n\t"
			 "stosb\n\t"
			 "lea 128(%%rsp), %%rsp"
			 : [sum] "+r"(sum), "+D"(to)
			 : [value] "r"(value)
			 : "rax", "cc", "memory");
	say("%lu %d %d\n", sum, byte, to == &byte + 1);
}

static uint64_t mixed(uint64_t hash, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
	return hash;
}

static void any_bytes(void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)bytes)[i] = (uint8_t)any(256);
}

/* What depends on where the program lies is left out: registers that lead to the operand. */
static uint64_t play(const struct form *f, uint64_t hash)
{
	uint64_t before[16];

	any_bytes(&scene->in, sizeof(scene->in));
	any_bytes(area, sizeof(area));
	any_bytes(scene->stack, sizeof(scene->stack));
	scene->in.flags = 0x202 | (any(256) & 0xd5);
	put_scene(f);
	memcpy(before, scene->in.gpr, sizeof(before));
	((void (*)(void))scene->code)();
	for (unsigned int reg = 0; reg < 16; reg++)
		if (scene->out.gpr[reg] != before[reg] && !(f->kind & STACK))
			hash = mixed(hash, &scene->out.gpr[reg], 8);
	scene->out.flags &= ~0x10UL; /* AF is undefined after some of them */
	hash = mixed(hash, scene->out.xmm, sizeof(scene->out.xmm));
	hash = mixed(hash, &(uint64_t){scene->out.flags & 0xc5}, 8);
	hash = mixed(hash, scene->stack, sizeof(scene->stack));
	return mixed(hash, area, sizeof(area));
}

static void case_operands(void)
{
	enum { ROUNDS = 40 };

	/* Always there: rsp leads to it. */
	scene = mmap((void *)0x20000000, sizeof(*scene), PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	need(scene != MAP_FAILED);
	for (unsigned int i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		uint64_t hash = 0xcbf29ce484222325;

		if ((forms[i].kind & VEX && !__builtin_cpu_supports("avx")) ||
		    (forms[i].kind & EVEX && !__builtin_cpu_supports("avx512vl")))
			continue;
		for (unsigned int round = 0; round < ROUNDS; round++)
			hash = play(&forms[i], hash);
		say("%02x %02x /%d: %016lx\n", forms[i].map, forms[i].opcode, forms[i].extension,
		    hash);
	}
}

/* ---- bases ---- */

static __thread uint64_t own = 5;

static void *count(void *by)
{
	for (int i = 0; i < 1000; i++) {
		own += (uintptr_t)by;
		if (i % 100 == 0)
			sched_yield();
	}
	return (void *)own;
}

static void case_threads(void)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	void *sum;

	for (uintptr_t i = 0; i < THREADS; i++)
		need(!pthread_create(&threads[i], NULL, count, (void *)i));
	for (int i = 0; i < THREADS; i++) {
		need(!pthread_join(threads[i], &sum));
		say("%lu\n", (unsigned long)(uintptr_t)sum);
	}
	say("%lu\n", own);
}

static void case_children(void)
{
	pid_t pid;

	own = 7;
	pid = fork();
	if (!pid) {
		own++;
		_exit((int)own);
	}
	say_end("fork", pid);
	pid = vfork();
	if (!pid) {
		own++;
		_exit((int)own);
	}
	say_end("vfork", pid);
	say("%lu\n", own);
}

static void case_base(void)
{
	uint64_t base = 0;

	need(!raw(SYS_arch_prctl, ARCH_GET_FS, &base));
	say("%d\n", base == (uint64_t)__builtin_thread_pointer());
	say("%s\n", errno_name((int)-raw(SYS_arch_prctl, ARCH_GET_FS, 8)));
	say("%s\n", errno_name((int)-raw(SYS_arch_prctl, ARCH_SET_FS, 1UL << 47)));
	say("%s\n", errno_name((int)-raw(SYS_arch_prctl, ARCH_SET_FS, 1UL << 63)));
	say("%lu\n", own);
}

/* A thread without a libc: it has what FS leads to, and nothing else. */
static uint64_t tls[2][64];
static char stack[2][65536];
static uint32_t running = 1;
static uint64_t found[4];

static long by_fs(unsigned long offset)
{
	long value;

	__asm__ volatile("mov %%fs:(%1), %0" : "=r"(value) : "r"(offset));
	return value;
}

static int bare(void *unused)
{
	(void)unused;
	found[0] = (uint64_t)by_fs(8);
	__asm__ volatile("syscall"
			 : "=a"(found[1])
			 : "a"(SYS_arch_prctl), "D"(ARCH_GET_FS), "S"(&found[2])
			 : "rcx", "r11", "memory");
	__asm__ volatile("syscall"
			 : "=a"(found[1])
			 : "a"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(tls[1])
			 : "rcx", "r11", "memory");
	found[3] = (uint64_t)by_fs(8);
	return 0;
}

static void case_a_bare_thread(void)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			  CLONE_SYSVSEM | CLONE_SETTLS | CLONE_CHILD_CLEARTID;

	tls[0][1] = 11;
	tls[1][1] = 12;
	need(clone(bare, stack[0] + sizeof(stack[0]), flags, NULL, NULL, tls[0], &running) > 0);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
		sched_yield();
	say("%lu %d %lu\n", found[0], found[2] == (uint64_t)tls[0], found[3]);
	say("%lu\n", own);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	own += 100;
	errno = ENOENT;
}

/* Of a fault at such an operand the registers are the program's. */
static uint64_t skip_to;

static void on_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	say("at %p rax %llx rcx %llx rbx %llx\n", info->si_addr,
	    (unsigned long long)uc->uc_mcontext.gregs[REG_RAX],
	    (unsigned long long)uc->uc_mcontext.gregs[REG_RCX],
	    (unsigned long long)uc->uc_mcontext.gregs[REG_RBX]);
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)skip_to;
}

static void case_signals(void)
{
	const uint64_t away = 0x123000 - (uint64_t)__builtin_thread_pointer();

	handle(SIGUSR1, on_signal, 0);
	handle(SIGSEGV, on_fault, 0);
	raise(SIGUSR1);
	say("%lu %s\n", own, errno_name(errno));
	__asm__ volatile("lea 1f(%%rip), %%rdx\n\t"
			 "mov %%rdx, %0\n\t"
			 "mov $0x1111, %%eax\n\t"
			 "mov $0x2222, %%ecx\n\t"
			 "mov $0x3333, %%ebx\n\t"
			 "mov %%eax, %%fs:(%1)\n"
			 "1:"
			 : "=m"(skip_to)
			 : "r"(away)
			 : "rax", "rbx", "rcx", "rdx", "memory");
	say("%lu\n", own);
}

const struct test_case cases[] = {
	{"operands", case_operands},
	{"prefixes_of_gs_that_do_not_count", case_prefixes_of_gs_that_do_not_count},
	{"threads", case_threads},
	{"children", case_children},
	{"base", case_base},
	{"a_bare_thread", case_a_bare_thread},
	{"signals", case_signals},
	{0},
};
