// SPDX-License-Identifier: MIT
/* How threads end, and with them processes; what they leave to others. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

static void *exit_process(void *argument)
{
	(void)argument;
	exit(23);
}

static void *exit_thread(void *argument)
{
	(void)argument;
	usleep(50000);
	say("the last thread\n");
	pthread_exit(NULL);
}

static void *fault(void *argument)
{
	*(volatile int *)argument = 1;
	return NULL;
}

static void *spin(void *argument)
{
	for (;;)
		(*(volatile long *)argument)++;
	return NULL;
}

static void *exec_program(void *argument)
{
	(void)argument;
	execl(case_argv[0], case_argv[0], "_pids", case_argv[2], (char *)NULL);
	_exit(98);
}

static void case__pids(void)
{
	say("same pid %d, one thread %d\n", atoi(case_argv[2]) == getpid(), gettid() == getpid());
}

static void child_of(const char *what, void (*run)(void))
{
	pid_t child = fork();

	if (child == 0) {
		run();
		_exit(97);
	}
	say_end(what, child);
}

static pthread_t thread;
static void end_exit(void)
{
	pthread_create(&thread, NULL, exit_process, NULL);
	pause();
}
static void end_return_from_main(void)
{
	pthread_create(&thread, NULL, exit_thread, NULL);
	pthread_exit(NULL);
}
static void end_fault(void)
{
	pthread_create(&thread, NULL, fault, (void *)8);
	pause();
}
static void end_spinning(void)
{
	static long counter;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, spin, &counter);
	usleep(20000);
	_exit(5);
}
static void end_exec(void)
{
	static char pid[16];
	static char *arguments[4];
	static long counter;

	snprintf(pid, sizeof(pid), "%d", getpid());
	arguments[0] = case_argv[0];
	arguments[1] = "_pids";
	arguments[2] = pid;
	case_argv = arguments;
	pthread_create(&thread, NULL, spin, &counter);
	pthread_create(&thread, NULL, exec_program, NULL);
	pause();
}
static void end_leader_first(void)
{
	pthread_create(&thread, NULL, exit_thread, NULL);
	raw(SYS_exit, 4); /* only the first thread ends; the status is the last one's */
}

static void case_ends(void)
{
	no_core();
	child_of("exit in a thread", end_exit);
	child_of("first thread ends first", end_return_from_main);
	child_of("fault in a thread", end_fault);
	child_of("threads that compute", end_spinning);
	child_of("exec in a thread", end_exec);
	child_of("leader's exit", end_leader_first);
}

/* A thread that gives its stack back and only then ends: nothing may touch that stack again. */
static volatile int gone;
static void case_exit_without_stack(void)
{
	for (int i = 0; i < 50; i++) {
		size_t size = 16384;
		char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);
		void **top = (void **)(stack + size);

		need(stack != MAP_FAILED);
		gone = 1;
		long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			     CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;
		long result = SYS_clone;
		register volatile int *child_tid __asm__("r10") = &gone;
		register long r12 __asm__("r12") = (long)stack;
		register long r13 __asm__("r13") = (long)size;
		__asm__ volatile("syscall\n\t"
				 "test %%rax, %%rax\n\t"
				 "jnz 1f\n\t"
				 "mov %%r12, %%rdi\n\t"
				 "mov %%r13, %%rsi\n\t"
				 "mov $11, %%eax\n\t" /* munmap */
				 "syscall\n\t"
				 "xor %%edi, %%edi\n\t"
				 "mov $60, %%eax\n\t" /* exit */
				 "syscall\n\t"
				 "ud2\n"
				 "1:"
				 : "+a"(result)
				 : "D"(flags), "S"(top), "d"(0), "r"(child_tid), "r"(r12), "r"(r13)
				 : "rcx", "r11", "r8", "memory");
		need(result > 0);
		int seen;
		while ((seen = gone))
			raw(SYS_futex, &gone, FUTEX_WAIT, seen, NULL, NULL, 0);
	}
	say("all gone\n");
}

/* ---- robust mutexes ---- */

struct robust {
	pthread_mutex_t mutex;
};

static void *die_holding(void *robust)
{
	pthread_mutex_lock(&((struct robust *)robust)->mutex);
	return NULL;
}

static void case_robust(void)
{
	struct robust *robust =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&robust->mutex, &attr);
	pthread_create(&thread, NULL, die_holding, robust);
	pthread_join(thread, NULL);
	say("thread: %s\n", errno_name(pthread_mutex_lock(&robust->mutex)));
	pthread_mutex_consistent(&robust->mutex);
	pthread_mutex_unlock(&robust->mutex);
	pid_t child = fork();
	if (child == 0) {
		pthread_mutex_lock(&robust->mutex);
		raise(SIGKILL);
	}
	say_end("child", child);
	say("process: %s\n", errno_name(pthread_mutex_lock(&robust->mutex)));
	pthread_mutex_unlock(&robust->mutex);
	say("not consistent: %s\n", errno_name(pthread_mutex_lock(&robust->mutex)));
}

/* ---- one outlives the others ---- */

/*
 * A thread with a table of descriptors of its own outlives the one under whose table the process
 * was begun, has children and then threads: none gets in another's way.
 */
enum { COMPUTERS = 12 };

static void *computer(void *unused)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < 100; i++) {
		for (uint64_t j = 0; j < 2000; j++)
			sum += i ^ j;
		raw(SYS_sched_yield);
	}
	return unused;
}

static void compute(void)
{
	pthread_t threads[COMPUTERS];

	for (int i = 0; i < COMPUTERS; i++)
		need(!pthread_create(&threads[i], NULL, computer, NULL));
	for (int i = 0; i < COMPUTERS; i++)
		pthread_join(threads[i], NULL);
}

static void *survivor(void *first)
{
	int status, failed = 0;

	need(!close_range(100, 101, 2)); /* CLOSE_RANGE_UNSHARE */
	pthread_join(*(pthread_t *)first, NULL);
	for (int round = 0; round < 12; round++) {
		pid_t child = fork();

		if (!child) {
			compute();
			_exit(0);
		}
		for (int i = 0; i < 5; i++)
			compute();
		need(waitpid(child, &status, 0) == child);
		failed |= status;
	}
	say("children of who has a table of its own: %d\n", failed);
	exit(0);
}

static void case_outlives_table(void)
{
	static pthread_t first, other;

	no_core();
	first = pthread_self();
	compute(); /* what its threads had is there for others */
	need(!pthread_create(&other, NULL, survivor, &first));
	pthread_exit(NULL);
}

const struct test_case cases[] = {
	{"ends", case_ends},
	{"_pids", case__pids},
	{"exit_without_stack", case_exit_without_stack},
	{"robust", case_robust},
	{"outlives_table", case_outlives_table},
	{NULL, NULL},
};
