// SPDX-License-Identifier: MIT
/*
 * Does a known number of things that can be counted.
 *
 *	stat-target pages N	first touches of N pages
 *	stat-target writes N	calls of write(2)
 *	stat-target sleeps N	waits of a millisecond
 *	stat-target threads N	N threads that each call write(2) ten times
 *	stat-target spin	runs until it is killed
 *	stat-target idle N	the same beside N threads that wait
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void touch_pages(long n)
{
	const long size = sysconf(_SC_PAGESIZE);
	volatile char *p =
		mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(2);
	madvise((void *)p, n * size, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++)
		p[i * size] = 1;
}

static void write_times(long n)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (long i = 0; i < n; i++)
		if (write(fd, "", 1) != 1)
			exit(2);
	close(fd);
}

static void sleep_times(long n)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	for (long i = 0; i < n; i++)
		nanosleep(&moment, NULL);
}

static void *thread(void *arg)
{
	(void)arg;
	write_times(10);
	return NULL;
}

static void run_threads(long n)
{
	for (long i = 0; i < n; i++) {
		pthread_t id;

		if (pthread_create(&id, NULL, thread, NULL))
			exit(2);
		pthread_join(id, NULL);
	}
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void start_idle(long n)
{
	for (long i = 0; i < n; i++) {
		pthread_t id;

		if (pthread_create(&id, NULL, wait_for_ever, NULL))
			exit(2);
	}
}

static void spin(void)
{
	for (volatile long i = 0;; i++)
		;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(what, "pages"))
		touch_pages(n);
	else if (!strcmp(what, "writes"))
		write_times(n);
	else if (!strcmp(what, "sleeps"))
		sleep_times(n);
	else if (!strcmp(what, "threads"))
		run_threads(n);
	else if (!strcmp(what, "idle"))
		start_idle(n);
	else if (strcmp(what, "spin"))
		return 2;
	if (!strcmp(what, "idle") || !strcmp(what, "spin"))
		spin();
	return 0;
}
