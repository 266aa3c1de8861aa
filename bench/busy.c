/* SPDX-License-Identifier: MIT */
/*
 * `busy THREADS`: each thread does the same work, the first processors each having one. Prints the
 * median of the processor time that a thread took, in seconds: what others on the machine take
 * away is not in it, and what threads take from each other is.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST  64
#define TURNS 30000000

static double took[MOST];
static pthread_barrier_t begin;

static __attribute__((noinline)) uint64_t step(uint64_t x)
{
	return x & 1 ? x * 3 + 1 : x / 2;
}

static void *work(void *argument)
{
	double *seconds = argument;
	volatile uint64_t kept;
	struct timespec time;
	uint64_t x = 27;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((int)(seconds - took), &one);
	sched_setaffinity(0, sizeof(one), &one);
	pthread_barrier_wait(&begin);
	for (int i = 0; i < TURNS; i++)
		x = x == 1 ? (uint64_t)i + 27 : step(x);
	kept = x;
	(void)kept;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	*seconds = (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	unsigned int threads = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 1;
	pthread_t thread[MOST];

	if (!threads || threads > MOST)
		return 2;
	pthread_barrier_init(&begin, NULL, threads);
	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, &took[i]))
			return 1;
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	qsort(took, threads, sizeof(*took), by_value);
	printf("%.6f\n", took[threads / 2]);
	return 0;
}
