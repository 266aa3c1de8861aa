// SPDX-License-Identifier: MIT
/*
 * A program whose profile is known.
 *
 *	spin MS		   burns MS milliseconds of processor time, in two functions by turns
 *	threads N MS	   does that in N threads, called "worker-0" and so on
 *	forks N		   starts N short-lived processes, one after the other
 *	child MS	   burns, then does so in a child
 *	sleeps N MS	   sleeps N times
 *	moved MS	   goes to processor 0 and burns there
 *	hold		   burns until its standard input ends
 *	beside PID MS	   sleeps until another process has burnt so much
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SOME __attribute__((noinline))

static volatile uint64_t sink;

static SOME void spin_alpha(void)
{
	for (int i = 0; i < 20000; i++)
		sink = sink * 6364136223846793005u + 1;
}

static SOME void spin_beta(void)
{
	for (int i = 0; i < 10000; i++)
		sink = sink * 6364136223846793005u + 3;
}

static SOME uint64_t used_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * UINT64_C(1000000000) + used.tv_nsec;
}

static SOME void burn(uint64_t ms)
{
	for (uint64_t end = used_ns() + ms * 1000000; used_ns() < end;) {
		spin_alpha();
		spin_beta();
	}
}

static void *worker(void *ms)
{
	burn((uintptr_t)ms);
	return NULL;
}

static int run_threads(int nr, uintptr_t ms)
{
	pthread_t threads[64];

	for (int i = 0; i < nr && i < 64; i++) {
		char name[16];

		if (pthread_create(&threads[i], NULL, worker, (void *)ms))
			return 1;
		snprintf(name, sizeof(name), "worker-%d", i);
		pthread_setname_np(threads[i], name);
	}
	for (int i = 0; i < nr && i < 64; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int run_child(uint64_t ms)
{
	pid_t pid;

	burn(ms);
	pid = fork();
	if (pid == 0) {
		burn(ms);
		_exit(0);
	}
	return waitpid(pid, NULL, 0) != pid;
}

static int run_moved(uint64_t ms)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first) < 0)
		return 1;
	burn(ms);
	return 0;
}

static int hold(void)
{
	char c;

	fcntl(0, F_SETFL, O_NONBLOCK);
	while (read(0, &c, 1) != 0)
		burn(1);
	return 0;
}

static int wait_beside(pid_t pid, uint64_t ms)
{
	struct timespec used, end;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &end))
		return 1;
	end.tv_nsec += ms % 1000 * 1000000;
	end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	do {
		usleep(1000);
		if (clock_gettime(clock, &used))
			return 1;
	} while (used.tv_sec < end.tv_sec ||
		 (used.tv_sec == end.tv_sec && used.tv_nsec < end.tv_nsec));
	return 0;
}

int main(int argc, char **argv)
{
	int first = argc > 2 ? atoi(argv[2]) : 0;
	int second = argc > 3 ? atoi(argv[3]) : 0;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "spin"))
		burn(first);
	else if (!strcmp(argv[1], "threads"))
		return run_threads(first, second);
	else if (!strcmp(argv[1], "child"))
		return run_child(first);
	else if (!strcmp(argv[1], "moved"))
		return run_moved(first);
	else if (!strcmp(argv[1], "beside"))
		return wait_beside(first, second);
	else if (!strcmp(argv[1], "hold"))
		return hold();
	else if (!strcmp(argv[1], "forks"))
		for (int i = 0; i < first; i++)
			run_child(0);
	else if (!strcmp(argv[1], "sleeps"))
		for (int i = 0; i < first; i++)
			usleep(second * 1000);
	else
		return 2;
	return 0;
}
