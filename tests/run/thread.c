// SPDX-License-Identifier: MIT
/* Threads and processes: how they begin, what they share, how they end. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

static __thread int own = 7;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long shared;
static pthread_key_t key;
static volatile int destroyed;

static void on_destroy(void *value)
{
	(void)value;
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static void *adder(void *argument)
{
	long mine = (long)argument;

	own += (int)mine;
	pthread_setspecific(key, &own);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&mutex);
		shared += mine;
		pthread_mutex_unlock(&mutex);
	}
	pthread_barrier_wait(&barrier);
	need(own == 7 + mine);
	need(pthread_getspecific(key) == &own);
	return (void *)(mine * 3);
}

static void case_basics(void)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];
	long sum = 0;

	pthread_key_create(&key, on_destroy);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		need(pthread_create(&threads[i], NULL, adder, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		need(pthread_join(threads[i], &result) == 0);
		sum += (long)result;
	}
	say("shared %ld results %ld own %d destroyed %d\n", shared, sum, own, destroyed);
}

static int queue[16], head, tail;
static void *producer(void *argument)
{
	(void)argument;
	for (int i = 1; i <= 5000; i++) {
		pthread_mutex_lock(&mutex);
		while (head - tail == 16)
			pthread_cond_wait(&condition, &mutex);
		queue[head++ % 16] = i;
		pthread_cond_broadcast(&condition);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *consumer(void *sum)
{
	for (int i = 1; i <= 2500; i++) {
		pthread_mutex_lock(&mutex);
		while (head == tail)
			pthread_cond_wait(&condition, &mutex);
		*(long *)sum += queue[tail++ % 16];
		pthread_cond_broadcast(&condition);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void case_conditions(void)
{
	pthread_t threads[3];
	long sums[2] = {0, 0};

	pthread_create(&threads[0], NULL, producer, NULL);
	pthread_create(&threads[1], NULL, consumer, &sums[0]);
	pthread_create(&threads[2], NULL, consumer, &sums[1]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say("sum %ld\n", sums[0] + sums[1]);
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec = (time.tv_nsec + 1000000) % 1000000000;
	pthread_mutex_lock(&mutex);
	say("timed wait %s\n", errno_name(pthread_cond_timedwait(&condition, &mutex, &time)));
}

static void *nothing(void *argument)
{
	return argument;
}

/* Many, one after the other and some at a time: nothing grows. */
static void case_many(void)
{
	enum { AT_A_TIME = 64 };
	pthread_t threads[AT_A_TIME];
	pthread_attr_t attr;
	long sum = 0;

	for (int round = 0; round < 20; round++) {
		for (long i = 0; i < AT_A_TIME; i++)
			need(pthread_create(&threads[i], NULL, nothing, (void *)i) == 0);
		for (int i = 0; i < AT_A_TIME; i++) {
			void *result;

			pthread_join(threads[i], &result);
			sum += (long)result;
		}
	}
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 500; i++)
		while (pthread_create(&threads[0], &attr, nothing, NULL))
			usleep(100);
	say("sum %ld\n", sum);
}

static pthread_barrier_t all_there;
static void *wait_for_all(void *argument)
{
	pthread_barrier_wait(&all_there);
	return argument;
}

/* More at once than anybody would reserve room for. */
static void case_very_many(void)
{
	enum { THREADS = 400 };
	static pthread_t threads[THREADS];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_barrier_init(&all_there, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		need(pthread_create(&threads[i], &attr, wait_for_all, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	say("all there\n");
}

/* ---- ends ---- */

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

/* ---- signals and threads ---- */

static volatile int hits[4];
static volatile bool stop_threads;
static __thread int index_of_thread;
static void hit(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	hits[index_of_thread]++;
}

static sem_t ready;
static void *be_hit(void *argument)
{
	index_of_thread = (int)(long)argument;
	sem_post(&ready);
	while (!stop_threads)
		if (index_of_thread % 2)
			usleep(1000);
	return NULL;
}

static void *block_all(void *argument)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sem_post(&ready);
	while (!stop_threads)
		usleep(1000);
	sigpending(&all);
	*(int *)argument = sigismember(&all, SIGUSR1);
	return NULL;
}

static void case_signals(void)
{
	pthread_t threads[4];
	int pending;

	sem_init(&ready, 0, 0);
	handle(SIGUSR1, hit, SA_RESTART);
	for (long i = 1; i < 4; i++) {
		pthread_create(&threads[i], NULL, be_hit, (void *)i);
		sem_wait(&ready);
	}
	for (int i = 1; i < 4; i++) {
		for (int n = 1; n <= 100; n++) {
			pthread_kill(threads[i], SIGUSR1);
			while (hits[i] < n)
				sched_yield();
		}
	}
	say("hits %d %d %d %d\n", hits[0], hits[1], hits[2], hits[3]);
	stop_threads = true;
	for (int i = 1; i < 4; i++)
		pthread_join(threads[i], NULL);
	/* One blocks it: the signal of the process goes to the other. */
	stop_threads = false;
	pthread_create(&threads[0], NULL, block_all, &pending);
	sem_wait(&ready);
	kill(getpid(), SIGUSR1);
	while (hits[0] == 0)
		;
	pthread_kill(threads[0], SIGUSR1);
	stop_threads = true;
	pthread_join(threads[0], NULL);
	say("main %d, pending there %d\n", hits[0], pending);
}

static void clean_up(void *text)
{
	say("cleaned up: %s\n", (char *)text);
}

static void *wait_forever(void *argument)
{
	pthread_cleanup_push(clean_up, argument);
	sem_post(&ready);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static void *compute_forever(void *argument)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	pthread_cleanup_push(clean_up, argument);
	sem_post(&ready);
	for (volatile long i = 0;; i++)
		;
	pthread_cleanup_pop(0);
	return NULL;
}

static void case_cancel(void)
{
	void *result;

	sem_init(&ready, 0, 0);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, wait_forever, "waiting");
		sem_wait(&ready);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		say("cancelled %d\n", result == PTHREAD_CANCELED);
		pthread_create(&thread, NULL, compute_forever, "computing");
		sem_wait(&ready);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		say("cancelled %d\n", result == PTHREAD_CANCELED);
	}
}

static void *say_ids(void *argument)
{
	(void)argument;
	sem_post(&ready);
	while (!stop_threads)
		usleep(1000);
	say("thread: %d %d\n", getuid(), geteuid());
	return NULL;
}

/* setuid() reaches all threads by a signal. */
static void case_user_ids(void)
{
	sem_init(&ready, 0, 0);
	pthread_create(&thread, NULL, say_ids, NULL);
	sem_wait(&ready);
	say("setresuid: %s\n", result_name(setresuid(getuid(), getuid(), getuid())));
	stop_threads = true;
	pthread_join(thread, NULL);
}

/* ---- fork, vfork, spawn, clone ---- */

static void *work_until_told(void *argument)
{
	volatile long sum = 0;

	while (!stop_threads) {
		char text[64];

		snprintf(text, sizeof(text), "%ld %f", sum, 1.5 * (double)sum);
		sum = sum + (long)strlen(text);
		void *memory = malloc(100 + sum % 1000);
		free(memory);
	}
	return argument;
}

static void case_fork_among_threads(void)
{
	pthread_t threads[3];
	int wrong = 0;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work_until_told, NULL);
	for (int i = 0; i < 100; i++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			char *memory = malloc(1000);

			pthread_create(&thread, NULL, nothing, memory);
			pthread_join(thread, NULL);
			_exit(i);
		}
		need(waitpid(child, &status, 0) == child);
		wrong += !WIFEXITED(status) || WEXITSTATUS(status) != i;
	}
	stop_threads = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say("wrong %d\n", wrong);
}

static void *spawn_some(void *argument)
{
	extern char **environ;

	for (int i = 0; i < 10; i++) {
		char *arguments[] = {"sh", "-c", "exit 3", NULL};
		pid_t child;
		int status;

		need(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
		need(waitpid(child, &status, 0) == child);
		need(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	}
	return argument;
}

static void usr1(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
}

static void case_spawn(void)
{
	pthread_t threads[3];
	extern char **environ;
	char *missing[] = {"missing", NULL};
	pid_t child;
	struct sigaction old;

	handle(SIGUSR1, usr1, SA_RESTART);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, spawn_some, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say("missing: %s\n",
	    errno_name(posix_spawn(&child, "/nowhere/missing", NULL, NULL, missing, environ)));
	need(sigaction(SIGUSR1, NULL, &old) == 0);
	say("handler kept %d\n", old.sa_sigaction == usr1);
	say("system: %d\n", system("exit 7"));
	FILE *pipe = popen("echo from a pipe", "r");
	char text[64] = "";
	need(pipe && fgets(text, sizeof(text), pipe));
	say("%s", text);
	say("pclose: %d\n", pclose(pipe));
	/* The child's doings with signals are its own. */
	child = vfork();
	if (child == 0) {
		signal(SIGUSR1, SIG_DFL);
		signal(SIGUSR2, SIG_IGN);
		_exit(0);
	}
	say_end("vfork", child);
	need(sigaction(SIGUSR1, NULL, &old) == 0);
	say("handler kept %d\n", old.sa_sigaction == usr1);
	raise(SIGUSR1);
	need(sigaction(SIGUSR2, NULL, &old) == 0);
	say("SIGUSR2 default %d\n", old.sa_handler == SIG_DFL);
}

/* What a process that was killed has left does not hurt who comes next; nobody here buries it. */
static void case_after_killed_processes(void)
{
	for (int i = 0; i < 20; i++) {
		int ends[2];
		pid_t orphan;
		char byte;

		need(pipe(ends) == 0);
		pid_t child = fork();
		if (child == 0) {
			orphan = fork();
			if (orphan == 0)
				for (;;)
					pause();
			need(write(ends[1], &orphan, sizeof(orphan)) == sizeof(orphan));
			_exit(0);
		}
		need(read(ends[0], &orphan, sizeof(orphan)) == sizeof(orphan));
		need(waitpid(child, NULL, 0) == child);
		close(ends[1]);
		kill(orphan, SIGKILL);
		need(read(ends[0], &byte, 1) == 0); /* it has ended */
		close(ends[0]);
		need(system("exit 3") == 3 << 8);
	}
}

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

/* A daemon: the parent is gone, the session is its own, and it still reports. */
static void case_daemon(void)
{
	int ends[2];

	need(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		setsid();
		if (fork())
			_exit(0);
		close(ends[0]);
		while (getppid() == child)
			;
		chdir("/");
		dprintf(ends[1], "session leader %d, own session %d\n", getsid(0) == getpid(),
			getsid(0) != getpid());
		_exit(0);
	}
	close(ends[1]);
	say_end("first child", child);
	char text[128];
	ssize_t length = read(ends[0], text, sizeof(text) - 1);
	need(length > 0);
	text[length] = 0;
	say("daemon: %s", text);
}

/* A tree, several levels deep, all at once. */
static int grow(int depth)
{
	int sum = 1;
	pid_t children[2];

	if (depth == 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0)
			_exit(grow(depth - 1));
	}
	for (int i = 0; i < 2; i++) {
		int status;

		need(waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status));
		sum += WEXITSTATUS(status);
	}
	return sum;
}

static void case_tree(void)
{
	say("processes %d\n", grow(4));
}

static void at_fork_prepare(void)
{
	say("prepare\n");
}
static void at_fork_parent(void)
{
	say("parent\n");
}

static void case_process_wide(void)
{
	pthread_atfork(at_fork_prepare, at_fork_parent, NULL);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	say_end("child", child);
	unsigned int cpu, node;
	say("getcpu %s\n", result_name(getcpu(&cpu, &node)));
	say("membarrier %d\n", raw(SYS_membarrier, 0, 0, 0) > 0);
	uint64_t base = 0;
	long result = raw(SYS_arch_prctl, 0x1003, &base);
	say("FS base %ld set %d\n", result, base != 0);
	say("name %s\n", result_name(pthread_setname_np(pthread_self(), "renamed")));
	char name[32];
	FILE *file = fopen("/proc/thread-self/comm", "r");
	need(file && fgets(name, sizeof(name), file));
	say("comm %s", name);
}

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
	{"basics", case_basics},
	{"conditions", case_conditions},
	{"many", case_many},
	{"very_many", case_very_many},
	{"ends", case_ends},
	{"_pids", case__pids},
	{"exit_without_stack", case_exit_without_stack},
	{"robust", case_robust},
	{"signals", case_signals},
	{"cancel", case_cancel},
	{"user_ids", case_user_ids},
	{"fork_among_threads", case_fork_among_threads},
	{"spawn", case_spawn},
	{"after_killed_processes", case_after_killed_processes},
	{"clone", case_clone},
	{"processes_in_one_memory", case_processes_in_one_memory},
	{"clone3", case_clone3},
	{"daemon", case_daemon},
	{"tree", case_tree},
	{"process_wide", case_process_wide},
	{"outlives_table", case_outlives_table},
	{NULL, NULL},
};
