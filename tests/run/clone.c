// SPDX-License-Identifier: MIT
/* clone(2) and clone3(2): what a child shares with its parent. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

/* Of <linux/sched.h>, which <sched.h> does not get on with. */
struct clone_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ull
#endif

static volatile int in_child;
static int clone_child(void *argument)
{
	in_child = 1;
	say("child: %s\n", (char *)argument);
	return 11;
}

static int clone_child_ends(void *argument)
{
	(void)argument;
	_exit(11); /* exit_group(2), whereas returning means exit(2) */
}

static int nested_vfork(void *argument)
{
	int status;
	pid_t child = vfork();

	if (child == 0)
		_exit(21);
	waitpid(child, &status, 0);
	say_status((char *)argument, status);
	return 22;
}

static long pages_mapped(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	need(file && fscanf(file, "%ld", &pages) == 1);
	fclose(file);
	return pages;
}

/* Processes in the same memory that end without their parent being told leave nothing there. */
static void case_processes_in_one_memory(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	long before = 0;

	for (int i = 0; i < 300; i++) {
		int status;
		pid_t child =
			clone(clone_child_ends, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

		need(child > 0 && waitpid(child, &status, 0) == child);
		need(WEXITSTATUS(status) == 11);
		if (i == 20)
			before = pages_mapped();
	}
	say("grown %d\n", pages_mapped() - before > 1000);
}

static void case_clone(void)
{
	static char stack[262144] __attribute__((aligned(16)));
	char *top = stack + sizeof(stack);
	static const struct {
		const char *name;
		int flags;
	} kinds[] = {
		{"fork with a stack", SIGCHLD},
		{"CLONE_VM", CLONE_VM | SIGCHLD},
		{"CLONE_VM CLONE_VFORK", CLONE_VM | CLONE_VFORK | SIGCHLD},
		{"CLONE_VM CLONE_SIGHAND", CLONE_VM | CLONE_SIGHAND | CLONE_FILES | SIGCHLD},
		{"CLONE_VFORK", CLONE_VFORK | SIGCHLD},
		{"CLONE_PARENT", CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		pid_t parent_tid = 0, child_tid = 1;

		in_child = 0;
		pid_t child = clone(clone_child, top, kinds[i].flags, (void *)kinds[i].name,
				    &parent_tid, NULL, &child_tid);
		need(child > 0);
		say_end(kinds[i].name, child);
		say("shared %d parent tid %d child tid %d\n", in_child, parent_tid == child,
		    child_tid);
	}
	pid_t child = clone(nested_vfork, top, CLONE_VM | SIGCHLD, "inner");
	say_end("outer", child);
	say("bad flags: %s\n", result_name(clone(clone_child, top, CLONE_SIGHAND | SIGCHLD, NULL)));
}

static void usr1(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
}

static void case_clone3(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct clone_arguments args = {.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
				       .exit_signal = SIGCHLD};
	int pidfd = -1;
	siginfo_t info;
	struct sigaction old;

	handle(SIGUSR1, usr1, 0);
	handle(SIGSEGV, usr1, 0);
	args.pidfd = (uint64_t)&pidfd;
	pid_t child = (pid_t)raw(SYS_clone3, &args, sizeof(args));
	if (child == 0) {
		need(sigaction(SIGUSR1, NULL, &old) == 0);
		say("handlers cleared %d", old.sa_handler == SIG_DFL);
		need(sigaction(SIGSEGV, NULL, &old) == 0);
		say(" %d\n", old.sa_handler == SIG_DFL);
		_exit(31);
	}
	need(child > 0);
	need(waitid(P_PIDFD, pidfd, &info, WEXITED) == 0);
	say("pidfd: status %d\n", info.si_status);
	need(sigaction(SIGUSR1, NULL, &old) == 0);
	say("handler kept %d\n", old.sa_sigaction == usr1);

	memset(&args, 0, sizeof(args));
	args.flags = CLONE_VM | CLONE_VFORK;
	args.exit_signal = SIGCHLD;
	args.stack = (uint64_t)stack;
	args.stack_size = sizeof(stack);
	long result = SYS_clone3;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "push $33\n\t"
			 "pop %%rdi\n\t"
			 "mov $231, %%eax\n\t"
			 "syscall\n"
			 "1:"
			 : "+a"(result)
			 : "D"(&args), "S"(sizeof(args))
			 : "rcx", "r11", "memory");
	need(result > 0);
	say_end("on a stack", (pid_t)result);
	say("used %d\n", *(int *)(stack + sizeof(stack) - 8));
	say("size 0: %ld\n", raw(SYS_clone3, &args, 0));
	say("bad: %ld\n", raw(SYS_clone3, 16, sizeof(args)));
	args.flags = 1ull << 62;
	say("flags: %ld\n", raw(SYS_clone3, &args, sizeof(args)));
}

/* Code that was not there before. */
static void make_code(void)
{
	enum { SIZE = 4096, RET = 0xc3 };
	char *code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(code, RET, SIZE);
	for (int i = 0; i < SIZE; i++)
		((void (*)(void))(code + i))();
	munmap(code, SIZE);
}

enum { TRACED = 2 };
static volatile pid_t traced[TRACED];

static void *make_code_for_ever(void *tid)
{
	*(volatile pid_t *)tid = (pid_t)syscall(SYS_gettid);
	for (;;)
		make_code();
	return NULL;
}

static int trace(void *unused)
{
	enum { ROUNDS = 30 };
	int status, stopped = 0;

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < TRACED; j++)
			if (ptrace(PTRACE_ATTACH, traced[j], NULL, NULL))
				_exit(99);
		for (int j = 0; j < TRACED; j++)
			stopped += waitpid(traced[j], &status, __WALL) == traced[j] &&
				   WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
		make_code();
		for (int j = 0; j < TRACED; j++)
			ptrace(PTRACE_DETACH, traced[j], NULL, NULL);
		sched_yield();
	}
	_exit(stopped == ROUNDS * TRACED ? 0 : 1);
}

/* As leak checkers do: who stops all threads of its parent has to go on itself. */
static void case_tracer_in_its_memory(void)
{
	static _Alignas(16) char stack[1 << 16];
	pthread_t thread;
	pid_t tracer;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (int i = 0; i < TRACED; i++) {
		need(!pthread_create(&thread, NULL, make_code_for_ever, (void *)&traced[i]));
		while (!traced[i])
			sched_yield();
	}
	tracer = clone(trace, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD,
		       NULL);
	need(tracer >= 0);
	say_end("tracer", tracer);
}

const struct test_case cases[] = {
	{"clone", case_clone},
	{"processes_in_one_memory", case_processes_in_one_memory},
	{"clone3", case_clone3},
	{"tracer_in_its_memory", case_tracer_in_its_memory},
	{NULL, NULL},
};
