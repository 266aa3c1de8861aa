// SPDX-License-Identifier: MIT
/* Processes: how they are begun by fork(2), vfork(2) and spawning, among threads and in trees. */
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

static pthread_t thread;
static volatile bool stop_threads;

static void *nothing(void *argument)
{
	return argument;
}

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

/* Code that is new each time, all of it executed once. */
static unsigned char *code;
static size_t next_code;

enum { CODE_SIZE = 64 << 20 };

static void map_code(void)
{
	code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	need(code != MAP_FAILED);
}

static void execute_new_code(void)
{
	static const unsigned char is[] = {0xb8, 1, 2, 3, 4, 0x90, 0xeb, 0, 0x90, 0xc3};
	unsigned char *at = code + __atomic_fetch_add(&next_code, 64, __ATOMIC_RELAXED) % CODE_SIZE;

	memcpy(at, is, sizeof(is));
	((int (*)(void))at)();
}

/* Who is told a number on @from ends that process, at any time within milliseconds. */
static void kill_whom_one_is_told(int from)
{
	unsigned int random = 1;
	pid_t child;

	while (read(from, &child, sizeof(child)) == sizeof(child)) {
		random = random * 1103515245 + 12345;
		usleep((random >> 16) % 3000);
		kill(child, SIGKILL);
	}
	_exit(0);
}

/* Begins one, who is told by what is returned. */
static int begin_killer(void)
{
	int ends[2];

	need(!pipe(ends));
	if (!fork()) {
		close(ends[1]);
		kill_whom_one_is_told(ends[0]);
	}
	close(ends[0]);
	return ends[1];
}

/* A child of vfork(2) does @what again and again, until it is killed by who is told of it.
 * Whether it was. */
static bool bear_who_is_killed(int told, void (*what)(void))
{
	const pid_t child = vfork();
	int status;

	if (!child) {
		const pid_t self = getpid();

		if (write(told, &self, sizeof(self)) != sizeof(self))
			_exit(1);
		for (;;)
			what();
	}
	need(waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status);
}

static void case_killed_in_its_parents_memory(void)
{
	int killed = 0, told;

	map_code();
	told = begin_killer();
	for (int i = 0; i < 150; i++) {
		killed += bear_who_is_killed(told, execute_new_code);
		execute_new_code();
	}
	say("killed: %d\n", killed);
}

/* Of two threads at once: what the one's child leaves is mended while the other's is killed. */
static void *bear_many(void *told)
{
	long killed = 0;

	for (int i = 0; i < 150; i++)
		killed += bear_who_is_killed(*(int *)told, execute_new_code);
	return (void *)killed;
}

static void case_two_killed_in_their_parents_memory(void)
{
	void *killed[2];
	pthread_t other;
	int told[2];

	map_code();
	for (int i = 0; i < 2; i++)
		told[i] = begin_killer();
	need(!pthread_create(&other, NULL, bear_many, &told[1]));
	killed[0] = bear_many(&told[0]);
	pthread_join(other, &killed[1]);
	say("killed: %ld and %ld\n", (long)killed[0], (long)killed[1]);
}

static void fork_once(void)
{
	const pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

/* Who forks has all locks of the memory, and this one's is its parent's. */
static void case_killed_as_it_forks(void)
{
	int killed = 0, told, status;

	map_code();
	told = begin_killer();
	for (int i = 0; i < 60; i++) {
		killed += bear_who_is_killed(told, fork_once);
		execute_new_code();
		status = system("exit 3");
		need(WEXITSTATUS(status) == 3);
	}
	say("killed: %d\n", killed);
}

/* More than an argument may have. */
static char too_long[200001];

static void fail_to_execute(void)
{
	char *const environment[] = {NULL};
	char *const arguments[] = {"true", too_long, NULL};

	execve("/proc/self/exe", arguments, environment);
}

/* What it hands over to the image that it executes is its own again when there is none. */
static void case_killed_as_its_exec_fails(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
		.inherit = 1,
	};
	int killed = 0, told;

	map_code();
	memset(too_long, 'x', sizeof(too_long) - 1);
	/* Only among events does a page go to the next image. */
	syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	told = begin_killer();
	for (int i = 0; i < 150; i++) {
		killed += bear_who_is_killed(told, fail_to_execute);
		execute_new_code();
	}
	say("killed: %d\n", killed);
}

const struct test_case cases[] = {
	{"killed_as_its_exec_fails", case_killed_as_its_exec_fails},
	{"killed_as_it_forks", case_killed_as_it_forks},
	{"two_killed_in_their_parents_memory", case_two_killed_in_their_parents_memory},
	{"killed_in_its_parents_memory", case_killed_in_its_parents_memory},
	{"fork_among_threads", case_fork_among_threads},
	{"spawn", case_spawn},
	{"after_killed_processes", case_after_killed_processes},
	{"daemon", case_daemon},
	{"tree", case_tree},
	{"process_wide", case_process_wide},
	{NULL, NULL},
};
