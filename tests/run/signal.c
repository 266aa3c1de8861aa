// SPDX-License-Identifier: MIT
/* Delivery: who is told what, on which stack, under which mask, in which order. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

static volatile sig_atomic_t count;

static void counting(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	count++;
}

static void send_self(int number)
{
	need(raw(SYS_tgkill, getpid(), gettid(), number) == 0);
}

static void say_mask(const char *what, const sigset_t *mask)
{
	say("%s:", what);
	for (int i = 1; i <= 64; i++)
		if (sigismember(mask, i) == 1)
			say(" %d", i);
	say("\n");
}

static void say_my_mask(const char *what)
{
	sigset_t mask;

	need(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
	say_mask(what, &mask);
}

static sigset_t set_of(int first, int second)
{
	sigset_t set;

	sigemptyset(&set);
	if (first)
		sigaddset(&set, first);
	if (second)
		sigaddset(&set, second);
	return set;
}

/* ---- what the handler is told ---- */

static void say_info(int number, siginfo_t *info, void *context)
{
	(void)context;
	say("signal %d: si_signo %d si_code %d si_errno %d", number, info->si_signo, info->si_code,
	    info->si_errno);
	if (info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE)
		say(" mine %d uid %d", info->si_pid == getpid(), info->si_uid == getuid());
	if (info->si_code == SI_QUEUE)
		say(" value %#lx", (long)info->si_value.sival_ptr);
	say("\n");
}

static void case_info(void)
{
	handle(SIGUSR1, say_info, 0);
	handle(SIGRTMIN + 3, say_info, 0);
	handle(SIGSEGV, say_info, 0);
	kill(getpid(), SIGUSR1);
	raise(SIGUSR1);
	union sigval value = {.sival_ptr = (void *)0x123456789abcdef0};
	sigqueue(getpid(), SIGRTMIN + 3, value);
	kill(getpid(), SIGSEGV);
	kill(0x7ffffff0, SIGUSR1);
	say("kill nobody: %s\n", errno_name(errno));
	say("kill 65: %s\n", result_name(kill(getpid(), 65)));
	siginfo_t info = {.si_code = -77, .si_signo = SIGUSR1, .si_errno = 5};
	raw(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &info);
}

/* ---- masks and nesting ---- */

static int depth;

static void nested(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	say("%*sin %d\n", depth++, "", number);
	say_my_mask("mask");
	if (number == SIGUSR1 && depth < 3)
		send_self(SIGUSR1);
	if (number == SIGUSR1)
		send_self(SIGUSR2);
	say("%*sout %d\n", --depth, "", number);
}

static void case_nesting(void)
{
	struct sigaction action = {.sa_sigaction = nested, .sa_flags = SA_SIGINFO};

	say("blocked while it is handled\n");
	sigaddset(&action.sa_mask, SIGUSR2);
	sigaddset(&action.sa_mask, SIGRTMAX);
	need(sigaction(SIGUSR1, &action, NULL) == 0);
	handle(SIGUSR2, nested, 0);
	depth = 2;
	send_self(SIGUSR1);
	say("SA_NODEFER\n");
	action.sa_flags |= SA_NODEFER;
	sigemptyset(&action.sa_mask);
	need(sigaction(SIGUSR1, &action, NULL) == 0);
	depth = 0;
	send_self(SIGUSR1);
	say_my_mask("after");
}

static void order(int number, siginfo_t *info, void *context)
{
	(void)context;
	say("%d value %d\n", number, info->si_code == SI_QUEUE ? info->si_value.sival_int : -1);
}

/* Several at once: frames are stacked before any handler has run an instruction. */
static void case_order(void)
{
	sigset_t all;

	sigfillset(&all);
	need(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
	handle(SIGUSR1, order, 0);
	handle(SIGUSR2, order, 0);
	handle(SIGTERM, order, 0);
	for (int i = 0; i < 3; i++)
		handle(SIGRTMIN + i, order, 0);
	for (int i = 0; i < 3; i++) {
		union sigval value = {.sival_int = 10 + i};

		sigqueue(getpid(), SIGRTMIN + 2 - i, value);
		sigqueue(getpid(), SIGRTMIN + 1, value);
	}
	send_self(SIGUSR2);
	send_self(SIGUSR2);
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGUSR1);
	sigset_t pending;
	sigpending(&pending);
	say_mask("pending", &pending);
	sigemptyset(&all);
	need(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
	say("all handled\n");
}

static void edit_mask(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)number;
	(void)info;
	say_mask("uc_sigmask", &uc->uc_sigmask);
	sigaddset(&uc->uc_sigmask, SIGHUP);
	sigaddset(&uc->uc_sigmask, SIGKILL);
	sigdelset(&uc->uc_sigmask, SIGUSR2);
}

static void case_context_mask(void)
{
	sigset_t set = set_of(SIGUSR2, SIGWINCH);

	need(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
	handle(SIGUSR1, edit_mask, 0);
	handle(SIGUSR2, say_info, 0);
	send_self(SIGUSR2);
	say("not yet\n");
	send_self(SIGUSR1);
	say_my_mask("after");
}

static void case_reset(void)
{
	no_core();
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct sigaction old;

		handle(SIGUSR1, say_info, (int)SA_RESETHAND);
		send_self(SIGUSR1);
		need(sigaction(SIGUSR1, NULL, &old) == 0);
		say("default again: %d flags %#x\n", old.sa_handler == SIG_DFL, old.sa_flags);
		send_self(SIGUSR1);
		_exit(1);
	}
	say_end("second", child);
}

/* ---- sigaction(2) itself ---- */

struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static void case_sigaction(void)
{
	struct kernel_action set = {(void *)0x1234, 0x8c000000ul | SA_SIGINFO | 0x400 | 0x800,
				    (void *)0x5678, ~0ul};
	struct kernel_action old, *nowhere = (void *)16;

	say("set %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, NULL, 8));
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p flags %#lx restorer %p mask %#lx\n", old.handler, old.flags, old.restorer,
	    old.mask);
	set.handler = SIG_IGN;
	set.flags = 0;
	set.mask = 0;
	say("swap %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, &old, 8));
	say("handler %p flags %#lx restorer %p mask %#lx\n", old.handler, old.flags, old.restorer,
	    old.mask);
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p flags %#lx restorer %p mask %#lx\n", old.handler, old.flags, old.restorer,
	    old.mask);
	set.handler = SIG_DFL;
	set.flags = SA_NODEFER;
	say("default %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, &old, 8));
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p flags %#lx\n", old.handler, old.flags);
	say("size %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, NULL, 4));
	say("kill %ld\n", raw(SYS_rt_sigaction, SIGKILL, &set, NULL, 8));
	say("stop, get %ld\n", raw(SYS_rt_sigaction, SIGSTOP, NULL, &old, 8));
	say("0 %ld\n", raw(SYS_rt_sigaction, 0, NULL, &old, 8));
	say("65 %ld\n", raw(SYS_rt_sigaction, 65, NULL, &old, 8));
	say("-1 %ld\n", raw(SYS_rt_sigaction, -1, NULL, &old, 8));
	say("bad new %ld\n", raw(SYS_rt_sigaction, SIGUSR1, nowhere, NULL, 8));
	set.handler = (void *)0x4321;
	say("bad old %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &set, nowhere, 8));
	say("get %ld\n", raw(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8));
	say("handler %p\n", old.handler);
	say("one object %ld\n", raw(SYS_rt_sigaction, SIGUSR1, &old, &old, 8));
}

/* A signal that is pending and then ignored is dropped. */
static void case_ignored(void)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR2), pending;

	handle(SIGUSR1, counting, 0);
	handle(SIGUSR2, counting, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	send_self(SIGUSR1);
	send_self(SIGUSR2);
	signal(SIGUSR1, SIG_IGN);
	handle(SIGUSR1, counting, 0);
	sigpending(&pending);
	say_mask("pending", &pending);
	need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	say("handled %d\n", count);
	signal(SIGUSR1, SIG_IGN);
	send_self(SIGUSR1);
	signal(SIGCHLD, SIG_DFL);
	send_self(SIGCHLD);
	send_self(SIGCONT);
	send_self(SIGWINCH);
	send_self(SIGURG);
	say("alive\n");
}

/* ---- stacks ---- */

static char *alternate;
static bool on_alternate(const void *address)
{
	return (const char *)address >= alternate && (const char *)address < alternate + 65536;
}

static void say_stack(const char *what)
{
	stack_t stack;

	need(sigaltstack(NULL, &stack) == 0);
	say("%s: here %d flags %#x size %zu\n", what, on_alternate(&stack), stack.ss_flags,
	    stack.ss_size);
}

static void stack_inner(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	say("inner %d\n", number);
	say_stack("inner");
}

static void stack_outer(int number, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	stack_t none = {.ss_flags = SS_DISABLE};

	(void)info;
	say("outer %d: uc_stack %d flags %#x size %zu\n", number, uc->uc_stack.ss_sp == alternate,
	    uc->uc_stack.ss_flags, uc->uc_stack.ss_size);
	say_stack("outer");
	say("frames: info %d context %d\n", on_alternate(info), on_alternate(uc));
	say("change: %s\n", result_name(sigaltstack(&none, NULL)));
	send_self(SIGUSR2);
}

static void case_alternate_stack(void)
{
	alternate = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(alternate != MAP_FAILED);
	say_stack("none");
	stack_t stack = {.ss_sp = alternate, .ss_size = 65536}, old;
	need(sigaltstack(&stack, NULL) == 0);
	say_stack("set");
	handle(SIGUSR1, stack_outer, SA_ONSTACK);
	handle(SIGUSR2, stack_inner, SA_ONSTACK);
	send_self(SIGUSR1);
	say("without SA_ONSTACK\n");
	handle(SIGUSR1, stack_outer, 0);
	send_self(SIGUSR1);
	say("SS_AUTODISARM\n");
	handle(SIGUSR1, stack_outer, SA_ONSTACK);
	stack.ss_flags = (int)(SS_ONSTACK | (1u << 31));
	say("set: %s\n", result_name(sigaltstack(&stack, NULL)));
	say_stack("set");
	send_self(SIGUSR1);
	say_stack("after");
	stack.ss_flags = 0;
	stack.ss_size = 100;
	say("small: %s\n", result_name(sigaltstack(&stack, NULL)));
	stack.ss_flags = 77;
	say("flags: %s\n", result_name(sigaltstack(&stack, NULL)));
	say("bad: %ld\n", raw(SYS_sigaltstack, 16, NULL));
	stack.ss_flags = SS_DISABLE;
	need(sigaltstack(&stack, &old) == 0);
	say("old: %d %#x\n", old.ss_sp == alternate, old.ss_flags);
	say_stack("disabled");
	handle(SIGUSR1, stack_inner, SA_ONSTACK);
	send_self(SIGUSR1);
}

static sigjmp_buf jump;
static void jump_out(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	siglongjmp(jump, number);
}

static int __attribute__((noinline)) deep(int level)
{
	volatile char space[4096];

	space[0] = (char)level;
	return level < 0 ? 0 : deep(level + 1) + space[0];
}

static void case_overflow(void)
{
	static char small[65536];
	stack_t stack = {.ss_sp = small, .ss_size = sizeof(small)};

	need(sigaltstack(&stack, NULL) == 0);
	handle(SIGSEGV, jump_out, SA_ONSTACK);
	for (int i = 0; i < 3; i++) {
		int number = sigsetjmp(jump, 1);

		if (number)
			say("out of a stack that is full: %d\n", number);
		else
			deep(0);
	}
	say_my_mask("mask");
	signal(SIGSEGV, SIG_DFL);
	no_core();
	pid_t child = fork();
	if (child == 0)
		deep(0);
	say_end("no handler", child);
	child = fork();
	if (child == 0) {
		handle(SIGSEGV, jump_out, 0); /* its frame does not fit either */
		deep(0);
	}
	say_end("handler on the same stack", child);
}

static void case_longjmp(void)
{
	volatile int jumps = 0;

	handle(SIGUSR1, jump_out, 0);
	handle(SIGFPE, jump_out, SA_NODEFER);
	for (int i = 0; i < 2000; i++) {
		if (sigsetjmp(jump, 1))
			jumps = jumps + 1;
		else if (i % 2)
			raise(SIGUSR1);
		else
			__asm__ volatile("xor %%ecx, %%ecx\n\tdiv %%ecx" : : : "eax", "ecx", "edx");
	}
	say("jumps %d\n", jumps);
	say_my_mask("mask");
}

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

/* ---- the signals of faults, sent by somebody ---- */

static void case_sent_faults(void)
{
	sigset_t set = set_of(SIGSEGV, SIGBUS), pending;
	struct timespec none = {0, 0};
	siginfo_t info;

	handle(SIGSEGV, say_info, 0);
	handle(SIGBUS, say_info, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	say_my_mask("blocked");
	for (int i = 0; i < 2; i++) {
		kill(getpid(), SIGSEGV);
		send_self(SIGBUS);
	}
	sigpending(&pending);
	say_mask("pending", &pending);
	need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	say("unblocked\n");
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	union sigval value = {.sival_int = 99};
	sigqueue(getpid(), SIGSEGV, value);
	say("waited for %s", result_name(sigtimedwait(&set, &info, &none)));
	say(" value %d\n", info.si_value.sival_int);
	say("then %s\n", result_name(sigtimedwait(&set, &info, &none)));
	kill(getpid(), SIGBUS);
	signal(SIGBUS, SIG_IGN);
	handle(SIGBUS, say_info, 0);
	kill(getpid(), SIGSEGV);
	struct timespec brief = {0, 20000000};
	say("nanosleep %s\n", result_name(nanosleep(&brief, NULL)));
	pid_t child = fork();
	if (child == 0) {
		sigpending(&pending);
		say_mask("child pending", &pending);
		kill(getpid(), SIGSEGV);
		signal(SIGBUS, SIG_IGN);
		execl(case_argv[0], case_argv[0], "_mask", (char *)NULL);
	}
	say_end("child", child);
	say_my_mask("still");
	no_core();
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		kill(getpid(), SIGSEGV);
		_exit(1);
	}
	say_end("default", child);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		kill(getpid(), SIGSTOP);
		say("going on\n");
		for (;;)
			pause();
	}
	int status;
	need(waitpid(child, &status, WUNTRACED) == child);
	kill(child, SIGSEGV);
	kill(child, SIGCONT);
	usleep(50000);
	kill(child, SIGKILL);
	say_end("sent while it is stopped", child);
}

/* Blocked but for as long as a call waits; sent before it, and while it waits. */
static void case_sent_faults_end_waits(void)
{
	sigset_t set = set_of(SIGSEGV, SIGBUS), open_set;
	struct timespec long_time = {20, 0};

	handle(SIGSEGV, say_info, 0);
	handle(SIGBUS, say_info, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	sigemptyset(&open_set);
	kill(getpid(), SIGSEGV);
	say("suspend %s\n", result_name(sigsuspend(&open_set)));
	kill(getpid(), SIGBUS);
	say("suspend %s\n", result_name(sigsuspend(&open_set)));
	say_my_mask("still");
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (child == 0) {
			usleep(100000);
			kill(getppid(), i ? SIGBUS : SIGSEGV);
			_exit(0);
		}
		if (i)
			say("ppoll %s\n", result_name(ppoll(NULL, 0, &long_time, &open_set)));
		else
			say("suspend %s\n", result_name(sigsuspend(&open_set)));
		say_end("child", child);
	}
	say_my_mask("still");
}

/* ---- in the handler ---- */

static void fork_inside(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	pid_t child = fork();
	if (child == 0)
		return; /* the child goes on below the handler, too */
	say_end("child", child);
}

static void exec_inside(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	execl(case_argv[0], case_argv[0], "_mask", (char *)NULL);
	_exit(9);
}

static void case_in_the_handler(void)
{
	pid_t me = getpid();

	handle(SIGUSR1, fork_inside, 0);
	send_self(SIGUSR1);
	if (getpid() != me) {
		say_my_mask("child");
		_exit(7);
	}
	say_my_mask("parent");
	pid_t child = fork();
	if (child == 0) {
		handle(SIGUSR1, exec_inside, 0);
		handle(SIGTERM, exec_inside, 0);
		signal(SIGHUP, SIG_IGN);
		sigset_t set = set_of(SIGTERM, SIGRTMAX);
		sigprocmask(SIG_BLOCK, &set, NULL);
		send_self(SIGTERM);
		send_self(SIGUSR1);
		_exit(8);
	}
	say_end("exec", child);
}

static void case__mask(void)
{
	sigset_t pending;
	struct sigaction action;

	say_my_mask("after exec");
	sigpending(&pending);
	say_mask("pending", &pending);
	need(sigaction(SIGHUP, NULL, &action) == 0);
	say("SIGHUP ignored %d", action.sa_handler == SIG_IGN);
	need(sigaction(SIGBUS, NULL, &action) == 0);
	say(" SIGBUS %d\n", action.sa_handler == SIG_IGN);
	need(sigaction(SIGUSR1, NULL, &action) == 0);
	say("SIGUSR1 default %d flags %#x\n", action.sa_handler == SIG_DFL, action.sa_flags);
	say_stack("stack");
}

/* ---- waiting for signals instead of handling them ---- */

static void case_wait(void)
{
	sigset_t set = set_of(SIGUSR1, SIGRTMIN);
	struct timespec brief = {0, 1000000};
	siginfo_t info;

	sigaddset(&set, SIGCHLD);
	handle(SIGUSR1, counting, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	say("none: %s\n", result_name(sigtimedwait(&set, &info, &brief)));
	union sigval value = {.sival_int = 42};
	sigqueue(getpid(), SIGRTMIN, value);
	sigqueue(getpid(), SIGUSR1, value);
	say("first: %s\n", result_name(sigwaitinfo(&set, &info)));
	say("second: %s value %d\n", result_name(sigwaitinfo(&set, &info)),
	    info.si_value.sival_int);
	pid_t child = fork();
	if (child == 0)
		_exit(12);
	say("third: %s", result_name(sigwaitinfo(&set, &info)));
	say(" child %d code %d status %d\n", info.si_pid == child, info.si_code, info.si_status);
	say_end("child", child);

	int fd = signalfd(-1, &set, SFD_NONBLOCK);
	struct signalfd_siginfo from;
	say("signalfd: %s\n", result_name(read(fd, &from, sizeof(from))));
	send_self(SIGUSR1);
	say("signalfd: %s", result_name(read(fd, &from, sizeof(from))));
	say(" signal %u code %d mine %d\n", from.ssi_signo, from.ssi_code,
	    from.ssi_pid == (unsigned int)getpid());

	sigset_t none = set_of(0, 0);
	send_self(SIGUSR1);
	say("sigsuspend: %s", result_name(sigsuspend(&none)));
	say(" handled %d\n", count);
	say_my_mask("after");
	say("sigsuspend bad: %ld\n", raw(SYS_rt_sigsuspend, 16, 8));
}

const struct test_case cases[] = {
	{"info", case_info},
	{"nesting", case_nesting},
	{"order", case_order},
	{"context_mask", case_context_mask},
	{"reset", case_reset},
	{"sigaction", case_sigaction},
	{"ignored", case_ignored},
	{"alternate_stack", case_alternate_stack},
	{"overflow", case_overflow},
	{"longjmp", case_longjmp},
	{"frame", case_frame},
	{"vectors", case_vectors},
	{"sigreturn", case_sigreturn},
	{"no_handler", case_no_handler},
	{"sent_faults", case_sent_faults},
	{"sent_faults_end_waits", case_sent_faults_end_waits},
	{"in_the_handler", case_in_the_handler},
	{"_mask", case__mask},
	{"wait", case_wait},
	{NULL, NULL},
};
