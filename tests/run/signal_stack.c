// SPDX-License-Identifier: MIT
/* Which stack handlers run on, and how they leave it. */
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "case.h"
#include "signal_case.h"

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

const struct test_case cases[] = {
	{"alternate_stack", case_alternate_stack},
	{"overflow", case_overflow},
	{"longjmp", case_longjmp},
	{NULL, NULL},
};
