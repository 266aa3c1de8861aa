// SPDX-License-Identifier: MIT
/* Programs that need GS for themselves go on natively, with all that they had set up before. */
#include <asm/prctl.h>
#include <pthread.h>
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

static void may_not(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	say("skip: the kernel does not let programs read their GS base\n");
	_exit(0);
}

static void case_read_by_instruction(void)
{
	uint64_t base = 7;

	handle(SIGILL, may_not, 0);
	__asm__ volatile("rdgsbase %0" : "=r"(base));
	say("base %#lx\n", base);
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

/* ---- several threads: they go together ---- */

static volatile int spinning, go_on;
static int ends[2];
static pthread_barrier_t all;

static void *spins(void *unused)
{
	(void)unused;
	long sum = 0;

	spinning = 1;
	while (!go_on)
		sum += spinning;
	return (void *)(sum > 0 ? 1L : 0L);
}

static void *reads(void *unused)
{
	(void)unused;
	char byte = 0;

	return (void *)(read(ends[0], &byte, 1) == 1 ? (long)byte : -1L);
}

static void *sleeps(void *unused)
{
	(void)unused;
	struct timespec third = {0, 300000000};

	return (void *)(long)nanosleep(&third, NULL);
}

static void *waits_for_signal(void *unused)
{
	(void)unused;
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return (void *)(long)sigwaitinfo(&set, &info);
}

/* Its alternate stack and its mask are its own. */
static void *keeps(void *unused)
{
	(void)unused;
	static char memory[65536];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	need(sigaltstack(&stack, NULL) == 0 && pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	while (!go_on)
		usleep(1000);
	need(sigaltstack(NULL, &stack) == 0 && pthread_sigmask(SIG_SETMASK, NULL, &set) == 0);
	return (void *)(long)(stack.ss_sp == memory && sigismember(&set, SIGHUP) &&
			      sigismember(&set, SIGUSR2) && !sigismember(&set, SIGTERM));
}

static void *bears(void *unused)
{
	(void)unused;
	long sum = 0;

	for (int i = 0; i < 40; i++) {
		int status;
		pid_t child = fork();

		if (child == 0)
			_exit(i);
		need(waitpid(child, &status, 0) == child);
		sum += WEXITSTATUS(status);
	}
	return (void *)sum;
}

static void *does_nothing(void *unused)
{
	(void)unused;
	return NULL;
}

static void *starts_threads(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++) {
		pthread_t thread;

		need(pthread_create(&thread, NULL, does_nothing, NULL) == 0);
		need(pthread_join(thread, NULL) == 0);
	}
	return NULL;
}

static void case_threads(void)
{
	static void *(*const work[])(void *) = {spins, reads, sleeps,	     waits_for_signal,
						keeps, bears, starts_threads};
	enum { THREADS = sizeof(work) / sizeof(*work) };
	pthread_t threads[THREADS];
	sigset_t set;

	need(pipe(ends) == 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	need(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		need(pthread_create(&threads[i], NULL, work[i], NULL) == 0);
	while (!spinning)
		usleep(1000);
	set_gs();
	say("gs %#lx\n", load_gs());
	go_on = 1;
	need(write(ends[1], "x", 1) == 1);
	need(pthread_kill(threads[3], SIGUSR2) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		need(pthread_join(threads[i], &result) == 0);
		say("thread %d: %ld\n", i, (long)result);
	}
}

/* All of them use GS at once. */
static void *uses(void *argument)
{
	uint64_t own[2] = {0, (uint64_t)argument};

	pthread_barrier_wait(&all);
	need(raw(SYS_arch_prctl, ARCH_SET_GS, own) == 0);
	return (void *)load_gs();
}

static void case_all_threads_at_once(void)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];

	pthread_barrier_init(&all, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		need(pthread_create(&threads[i], NULL, uses, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		need(pthread_join(threads[i], &result) == 0);
		say("thread %d: %ld\n", i, (long)result);
	}
}

/* A child of vfork goes alone; its parent stays. */
static void case_child_of_vfork(void)
{
	pid_t child = vfork();

	if (child == 0) {
		raw(SYS_arch_prctl, ARCH_SET_GS, area);
		_exit(load_gs() == 0x2222 ? 5 : 6);
	}
	say_end("child", child);
	uint64_t base = 7;
	need(raw(SYS_arch_prctl, ARCH_GET_GS, &base) == 0);
	say("parent %#lx\n", base);
}

/* Intel's processors go on in 32 bits where the lower half of the vdso's address is: elsewhere if
 * something is there. */
static void case_sysenter(void)
{
	const uint64_t back = (uint32_t)getauxval(AT_SYSINFO_EHDR);
	unsigned char there;
	pid_t child;

	if (!raw(SYS_mincore, back, 4096, &there)) {
		execl("/proc/self/exe", case_argv[0], "sysenter", NULL);
		need(!"exec");
	}
	child = fork();
	if (!child) {
		__asm__ volatile("sysenter" : : "a"(SYS_getpid), "b"(0) : "memory");
		_exit(1);
	}
	say_end("child", child);
}

const struct test_case cases[] = {
	{"threads", case_threads},
	{"all_threads_at_once", case_all_threads_at_once},
	{"child_of_vfork", case_child_of_vfork},
	{"set_by_call", case_set_by_call},
	{"what_it_had", case_what_it_had},
	{"its_children", case_its_children},
	{"set_by_instruction", case_set_by_instruction},
	{"read_by_instruction", case_read_by_instruction},
	{"selector", case_selector},
	{"used_without_being_set", case_used_without_being_set},
	{"writes_code", case_writes_code},
	{"sysenter", case_sysenter},
	{NULL, NULL},
};
