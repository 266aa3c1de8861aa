// SPDX-License-Identifier: MIT
/* What lies on the stack for a handler, and what sigreturn(2) makes of it. */
#include <asm/prctl.h>
#include <cpuid.h>
#include <immintrin.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"
#include "signal_case.h"

/* ---- the frame ---- */

/* What a handler finds in its registers when it begins. */
struct entry {
	uint64_t rdi, rsi, rdx, rax, rsp, flags, back;
	uint16_t control, status;
	uint32_t mxcsr;
} entry;

static uint64_t interrupted_rsp;
static ucontext_t seen;
static uint32_t seen_mxcsr, magic[3];
static void frame_handler(int number, siginfo_t *info, void *context) __attribute__((used));
static void frame_handler(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char *state = (char *)uc->uc_mcontext.fpregs;

	(void)number;
	(void)info;
	seen = *uc;
	memcpy(&seen_mxcsr, state + 24, 4);
	memcpy(magic, state + 464, 4);
	memcpy(magic + 1, state + 464 + 16, 4);
	memcpy(magic + 2, state + magic[1], 4);
	interrupted_rsp = uc->uc_mcontext.gregs[REG_RSP];
}
void frame_entry(int, siginfo_t *, void *);
__asm__(".text\n"
	"frame_entry:\n"
	"	mov %rdi, 0+entry(%rip)\n"
	"	mov %rsi, 8+entry(%rip)\n"
	"	mov %rdx, 16+entry(%rip)\n"
	"	mov %rax, 24+entry(%rip)\n"
	"	mov %rsp, 32+entry(%rip)\n"
	"	pushfq\n"
	"	popq 40+entry(%rip)\n"
	"	mov (%rsp), %rcx\n"
	"	mov %rcx, 48+entry(%rip)\n"
	"	fnstcw 56+entry(%rip)\n"
	"	fnstsw 58+entry(%rip)\n"
	"	stmxcsr 60+entry(%rip)\n"
	"	jmp frame_handler\n");

static void case_frame(void)
{
	struct kernel_action action;
	uint32_t mxcsr = 0x1f80 | (3 << 13);
	uint16_t control = 0x037f | (3 << 10);

	handle(SIGUSR1, frame_entry, 0);
	need(raw(SYS_rt_sigaction, SIGUSR1, NULL, &action, 8) == 0);
	__asm__ volatile("ldmxcsr %0\n\tfldcw %1\n\tfldpi" : : "m"(mxcsr), "m"(control));
	long pid = getpid(), tid = gettid();
	register long r12 __asm__("r12") = 0x1212;
	long result = SYS_tgkill;
	__asm__ volatile("cmp %%ecx, %%ecx\n\tstd\n\tstc\n\tsyscall\n\tcld\n\tfstp %%st(0)"
			 : "+a"(result), "+r"(r12)
			 : "D"(pid), "S"(tid), "d"(SIGUSR1)
			 : "rcx", "r11", "memory", "cc");
	__asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(control));
	say("after: mxcsr %#x control %#x result %ld r12 %#lx\n", mxcsr, control, result, r12);
	mxcsr = 0x1f80;
	__asm__ volatile("ldmxcsr %0\n\tfninit" : : "m"(mxcsr));
	say("entry: rdi %ld rax %ld flags %#lx control %#x status %#x mxcsr %#x\n", entry.rdi,
	    entry.rax, entry.flags & 0xdff, entry.control, entry.status, entry.mxcsr);
	say("rsp %% 16 = %ld, info above it by %ld, context by %ld, restorer %d\n", entry.rsp % 16,
	    entry.rsi - entry.rsp, entry.rdx - entry.rsp, entry.back == (uint64_t)action.restorer);
	greg_t *registers = seen.uc_mcontext.gregs;
	uint64_t state = (uint64_t)seen.uc_mcontext.fpregs;
	say("state at %% 64 = %ld, below the red zone %d, above the frame %d\n", state % 64,
	    state + magic[1] + 4 <= interrupted_rsp - 128, state > entry.rdx);
	say("context: flags %#lx link %p r12 %#llx rax %lld eflags %#llx rcx is rip %d\n",
	    seen.uc_flags, (void *)seen.uc_link, registers[REG_R12], registers[REG_RAX],
	    registers[REG_EFL], registers[REG_RCX] == registers[REG_RIP]);
	say("segments %#llx\n", registers[REG_CSGSFS]);
	say("saved mxcsr %#x magic %#x size %u end %#x\n", seen_mxcsr, magic[0], magic[1],
	    magic[2]);
	need(magic[1] >= 512 && magic[1] < 16384);
}

static void edit_vectors(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct _libc_fpstate *state = uc->uc_mcontext.fpregs;
	uint64_t zero[4] = {0};

	(void)number;
	(void)info;
	for (int i = 0; i < 16; i++)
		state->_xmm[i].element[0] += 0x100;
	state->cwd = 0x27f;
	state->mxcsr = 0x9f80;
	__asm__ volatile("movups %0, %%xmm3\n\tmovups %0, %%xmm7" : : "m"(zero) : "xmm3", "xmm7");
}

static void case_vectors(void)
{
	uint32_t values[16][4], out[16][4], mxcsr;
	uint16_t control;
	long result = SYS_tgkill;

	for (int i = 0; i < 64; i++)
		values[i / 4][i % 4] = i;
	handle(SIGUSR1, edit_vectors, 0);
#define EACH(op)                                                                                   \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13)    \
		op(14) op(15)
#define LOAD(n)	 "movups 16*" #n "(%1), %%xmm" #n "\n\t"
#define STORE(n) "movups %%xmm" #n ", 16*" #n "(%2)\n\t"
	__asm__ volatile(EACH(LOAD) "syscall\n\t" EACH(STORE) "stmxcsr %3\n\tfnstcw %4\n\tfninit"
			 : "+a"(result)
			 : "r"(values), "r"(out), "m"(mxcsr), "m"(control), "D"(getpid()),
			   "S"(gettid()), "d"(SIGUSR1)
			 : "rcx", "r11", "memory");
	for (int i = 0; i < 16; i++)
		say("xmm%d %#x %#x %#x %#x\n", i, out[i][0], out[i][1], out[i][2], out[i][3]);
	say("mxcsr %#x control %#x\n", mxcsr, control);
	mxcsr = 0x1f80;
	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}

/* ---- sigreturn made by hand ---- */

static char *copied;
void sigreturn_on(void *stack);
__asm__(".text\n"
	"sigreturn_on:\n"
	"	mov %rdi, %rsp\n"
	"	mov $15, %eax\n"
	"	syscall\n"
	"	ud2\n");

/* Returns through a copy of the frame elsewhere: rt_sigreturn looks at rsp alone. */
static void return_through_copy(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char *state = (char *)uc->uc_mcontext.fpregs;
	uint32_t size;

	(void)number;
	(void)info;
	memcpy(&size, state + 480, 4);
	memcpy(copied, uc, sizeof(*uc));
	char *moved = copied + 4096;
	memcpy(moved, state, size + 4);
	((ucontext_t *)copied)->uc_mcontext.fpregs = (void *)moved;
	((ucontext_t *)copied)->uc_mcontext.gregs[REG_R12] = 0xc0c0;
	((ucontext_t *)copied)->uc_mcontext.gregs[REG_RAX] = 77;
	sigaddset(&((ucontext_t *)copied)->uc_sigmask, SIGTERM);
	sigreturn_on(copied);
}

static void return_without_vectors(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	uc->uc_mcontext.fpregs = NULL;
}

static void return_to_nowhere(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (number == SIGSEGV) {
		say("signal %d code %d rip %#llx\n", number, info->si_code,
		    uc->uc_mcontext.gregs[REG_RIP]);
		_exit(5);
	}
	uc->uc_mcontext.gregs[REG_RIP] = 0x8000000000001234;
}

static void spoil_vectors(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (number == SIGSEGV) {
		say("signal %d code %d\n", number, info->si_code);
		_exit(6);
	}
	uc->uc_mcontext.fpregs->mxcsr = 0xffffffff;
}

static void case_sigreturn(void)
{
	copied = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(copied != MAP_FAILED);
	handle(SIGUSR1, return_through_copy, 0);
	register long r12 __asm__("r12") = 0x1212;
	long result = SYS_tgkill;
	__asm__ volatile("syscall"
			 : "+a"(result), "+r"(r12)
			 : "D"(getpid()), "S"(gettid()), "d"(SIGUSR1)
			 : "rcx", "r11", "memory");
	say("result %ld r12 %#lx\n", result, r12);
	say_my_mask("mask");
	no_core();

	pid_t child = fork();
	if (child == 0) {
		handle(SIGSEGV, say_info, SA_ONSTACK);
		sigreturn_on((void *)64);
	}
	say_end("frame at 64", child);
	child = fork();
	if (child == 0) {
		handle(SIGUSR1, return_to_nowhere, 0);
		handle(SIGSEGV, return_to_nowhere, 0);
		send_self(SIGUSR1);
		_exit(4);
	}
	say_end("to a place that is not canonical", child);
	child = fork();
	if (child == 0) {
		handle(SIGUSR1, spoil_vectors, 0);
		handle(SIGSEGV, spoil_vectors, 0);
		send_self(SIGUSR1);
		_exit(4);
	}
	say_end("reserved bits in mxcsr", child);
	handle(SIGUSR1, return_without_vectors, 0);
	uint32_t mxcsr = 0x9f80;
	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	send_self(SIGUSR1);
	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	say("without state: mxcsr %#x\n", mxcsr);
}

/* ---- handlers that cannot be run ---- */

static void case_no_handler(void)
{
	pid_t child;

	no_core();
	child = fork();
	if (child == 0) {
		signal(SIGUSR1, (void (*)(int))0x10);
		send_self(SIGUSR1);
		_exit(0);
	}
	say_end("handler at 16", child);
	child = fork();
	if (child == 0) {
		handle(SIGSEGV, say_info, 0);
		sigset_t set = set_of(SIGSEGV, 0);
		sigprocmask(SIG_BLOCK, &set, NULL);
		*(volatile int *)8 = 1;
		_exit(0);
	}
	say_end("fault while blocked", child);
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_IGN);
		kill(getpid(), SIGSEGV);
		say("ignored\n");
		*(volatile int *)8 = 1;
		_exit(0);
	}
	say_end("fault while ignored", child);
	child = fork();
	if (child == 0) {
		stack_t stack = {.ss_sp = (void *)4096, .ss_size = 65536};

		sigaltstack(&stack, NULL);
		handle(SIGUSR1, say_info, SA_ONSTACK);
		send_self(SIGUSR1);
		_exit(0);
	}
	say_end("no memory below the stack", child);
	child = fork();
	if (child == 0) {
		stack_t stack = {.ss_sp = (void *)4096, .ss_size = 65536};

		sigaltstack(&stack, NULL);
		handle(SIGUSR1, say_info, SA_ONSTACK);
		handle(SIGSEGV, say_info, 0);
		send_self(SIGUSR1);
		_exit(0);
	}
	say_end("the same with a handler for it", child);
}

/* ---- tiles (AMX), which a program asks for when it runs already ---- */

#define TILE_DATA 18
#define AMX_TILE  (1U << 24) /* of CPUID's leaf 7, in edx */

struct tile_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t bytes[16];
	uint8_t rows[16];
};

/* Not on a stack: compilers are told of the first eight bytes alone. */
static const struct tile_config one_tile = {.palette = 1, .bytes[1] = 64, .rows[1] = 16};
static struct tile_config in_handler;

__attribute__((target("amx-tile"))) static void tiles_handler(int number, siginfo_t *info,
							      void *context)
{
	static uint8_t zeros[1024];

	(void)number, (void)info, (void)context;
	_tile_storeconfig(&in_handler);
	_tile_loadconfig(&one_tile);
	_tile_loadd(1, zeros, 64);
}

__attribute__((target("amx-tile"))) static void case_tiles(void)
{
	static uint8_t in[1024], out[1024];
	unsigned int eax, ebx, ecx, edx;

	if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(edx & AMX_TILE) ||
	    syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA))
		return;
	for (unsigned int i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7);
	handle(SIGUSR1, tiles_handler, 0);
	_tile_loadconfig(&one_tile);
	_tile_loadd(1, in, 64);
	raise(SIGUSR1);
	_tile_stored(1, out, 64);
	_tile_release();
	say("palette %d in the handler, %s behind it\n", in_handler.palette,
	    memcmp(in, out, sizeof(in)) ? "others" : "the same");
}

/* ---- a stack pointer that is not canonical ---- */

#define NOT_CANONICAL ((greg_t)0x8badf00d5aadc0de)

/* Some processors do not return from the kernel to a program that has one: SIGSEGV then, at the
 * latest at the next interrupt. On others it goes on to the SIGILL. */
static void say_stack_pointer(int number, siginfo_t *info, void *context)
{
	(void)info;
	say("%s, the stack pointer is %s\n",
	    number == SIGILL || number == SIGSEGV ? "a fault" : "something else",
	    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RSP] == NOT_CANONICAL ? "the same"
										 : "another");
	_exit(0);
}

void illegal(void);
__asm__(".text\n"
	"illegal:\n"
	"	ud2\n");

static void return_to_illegal(int number, siginfo_t *info, void *context)
{
	greg_t *to = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number, (void)info;
	to[REG_RIP] = (greg_t)illegal;
	to[REG_RSP] = NOT_CANONICAL;
}

static void load_stack_pointer(void)
{
	__asm__ volatile("mov %0, %%rsp\n"
			 "	ud2\n"
			 :
			 : "r"(NOT_CANONICAL)
			 : "memory");
	__builtin_unreachable();
}

static void return_with_stack_pointer(void)
{
	handle(SIGUSR1, return_to_illegal, 0);
	send_self(SIGUSR1);
	_exit(4);
}

static void say_with_stack(const char *what, void (*take)(void))
{
	static char room[65536];
	const stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	pid_t child = fork();

	if (!child) {
		need(!sigaltstack(&stack, NULL));
		handle(SIGILL, say_stack_pointer, SA_ONSTACK);
		handle(SIGSEGV, say_stack_pointer, SA_ONSTACK);
		take();
	}
	say_end(what, child);
}

static void case_not_canonical(void)
{
	say_with_stack("loaded", load_stack_pointer);
	say_with_stack("from a frame", return_with_stack_pointer);
}

const struct test_case cases[] = {
	{"frame", case_frame},
	{"vectors", case_vectors},
	{"tiles", case_tiles},
	{"sigreturn", case_sigreturn},
	{"not_canonical", case_not_canonical},
	{"no_handler", case_no_handler},
	{NULL, NULL},
};
