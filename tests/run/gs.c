// SPDX-License-Identifier: MIT
/* Programs that need GS for themselves go on natively, with all that they had set up before. */
#include <asm/prctl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

static uint64_t area[4] = {0x1111, 0x2222, 0x3333, 0x4444};

static uint64_t load_gs(void)
{
	uint64_t value;

	__asm__ volatile("mov %%gs:8, %0" : "=r"(value));
	return value;
}

static void set_gs(void)
{
	need(raw(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
}

static char alternate[65536];
static volatile sig_atomic_t seen;
static void on_signal(int number, siginfo_t *info, void *context)
{
	char here;

	(void)info;
	(void)context;
	seen++;
	if (number == SIGUSR1)
		say("signal %d on the alternate stack %d gs %#lx\n", number,
		    &here > alternate && &here < alternate + sizeof(alternate), load_gs());
}

static void case_set_by_call(void)
{
	uint64_t base = 7;

	need(raw(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
	say("before %#lx\n", base);
	set_gs();
	say("gs %#lx\n", load_gs());
	need(raw(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
	say("after %d\n", base == (uint64_t)area);
}

static void case_what_it_had(void)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	sigset_t set;

	need(sigaltstack(&stack, NULL) == 0);
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	handle(SIGALRM, on_signal, SA_RESTART);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGSEGV);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	uint32_t mxcsr = 0x9f80;
	double kept = 1.5;
	__asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
	register double vector __asm__("xmm7") = kept;
	register uint64_t r15 __asm__("r15") = 0xabcdef;
	__asm__ volatile("mov $158, %%eax\n\t"
			 "mov $0x1001, %%edi\n\t"
			 "lea %2, %%rsi\n\t"
			 "syscall"
			 : "+x"(vector), "+r"(r15)
			 : "m"(area)
			 : "rax", "rcx", "rdi", "rsi", "r11", "memory");
	kept = vector;
	uint64_t r15_after = r15;
	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	say("registers %d %#lx mxcsr %#x\n", kept == 1.5, r15_after, mxcsr);
	raise(SIGUSR1);
	raise(SIGHUP);
	struct itimerval soon = {{0, 1000}, {0, 1000}};
	need(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	while (seen < 50)
		;
	memset(&soon, 0, sizeof(soon));
	setitimer(ITIMER_REAL, &soon, NULL);
	need(sigprocmask(SIG_BLOCK, NULL, &set) == 0);
	say("blocked %d %d %d\n", sigismember(&set, SIGUSR2), sigismember(&set, SIGSEGV),
	    sigismember(&set, SIGTERM));
	need(sigaltstack(NULL, &stack) == 0);
	say("alternate stack %d\n", stack.ss_sp == alternate);
}

static void case_its_children(void)
{
	set_gs();
	pid_t child = fork();
	if (child == 0) {
		say("child %#lx\n", load_gs());
		execl("/bin/sh", "sh", "-c", "echo from the shell; exit 3", (char *)NULL);
		_exit(9);
	}
	say_end("child", child);
}

static void case_set_by_instruction(void)
{
	if (!(getauxval(AT_HWCAP2) & 2)) {
		say("skip: the kernel does not let programs set their GS base\n");
		_exit(0);
	}
	uint64_t base;
	__asm__ volatile("wrgsbase %0" : : "r"(area));
	say("gs %#lx\n", load_gs());
	__asm__ volatile("rdgsbase %0" : "=r"(base));
	say("base %d\n", base == (uint64_t)area);
}

static void case_selector(void)
{
	uint16_t selector = 0x2b;

	__asm__ volatile("mov %0, %%gs" : : "r"(selector));
	__asm__ volatile("mov %%gs, %0" : "=r"(selector));
	say("selector %#x\n", selector);
}

static void fault(int number, siginfo_t *info, void *context)
{
	say("signal %d code %d address %p\n", number, info->si_code, info->si_addr);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 9;
}

/* GS base is 0 unless somebody sets it: an access by it is one to the first page. */
static void case_used_without_being_set(void)
{
	handle(SIGSEGV, fault, 0);
	load_gs();
	say("behind it\n");
}

/* Code that was written while it was translated can be written natively, too. */
static void case_writes_code(void)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(code != MAP_FAILED);
	static const unsigned char text[] = {0xb8, 1, 0, 0, 0, 0xc3};
	memcpy(code, text, sizeof(text));
	say("%d\n", ((int (*)(void))code)());
	set_gs();
	code[1] = 2;
	say("%d\n", ((int (*)(void))code)());
}

const struct test_case cases[] = {
	{"set_by_call", case_set_by_call},
	{"what_it_had", case_what_it_had},
	{"its_children", case_its_children},
	{"set_by_instruction", case_set_by_instruction},
	{"selector", case_selector},
	{"used_without_being_set", case_used_without_being_set},
	{"writes_code", case_writes_code},
	{NULL, NULL},
};
