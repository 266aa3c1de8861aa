// SPDX-License-Identifier: MIT
/* Signals to threads: which of them is hit, and what the C library does by signals. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "case.h"

static pthread_t thread;

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

const struct test_case cases[] = {
	{"signals", case_signals},
	{"cancel", case_cancel},
	{"user_ids", case_user_ids},
	{NULL, NULL},
};
