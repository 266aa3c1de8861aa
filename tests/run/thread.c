// SPDX-License-Identifier: MIT
/* Threads: how they begin, what each has of its own, how they wait for each other. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

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

const struct test_case cases[] = {
	{"basics", case_basics},
	{"conditions", case_conditions},
	{"many", case_many},
	{"very_many", case_very_many},
	{NULL, NULL},
};
