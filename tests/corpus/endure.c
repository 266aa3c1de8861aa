// SPDX-License-Identifier: MIT
/*
 * What a program does for seconds in tests/run, for minutes: each part goes on until its time is
 * over, checks what it does on the way, and says at its end what must be the same however long it
 * took.
 *
 *	endure SECONDS timer|signals|threads
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define need(expression)                                                                           \
	do {                                                                                       \
		if (!(expression))                                                                 \
			failed(#expression, __LINE__);                                             \
	} while (0)

static _Noreturn void failed(const char *what, int line)
{
	dprintf(STDERR_FILENO, "endure.c:%d: needed: %s (%s)\n", line, what,
		strerrorname_np(errno));
	_exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double end;

static bool time_is_left(void)
{
	return now() < end;
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};

	need(!sigaction(number, &action, NULL));
}

/* The same for the same @seed: general registers, memory, and as floating point is exact, that. */
static uint64_t work(uint64_t seed)
{
	uint64_t table[64], hash = 0;
	double sum = 0;

	for (int i = 0; i < 64; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		table[i] = seed >> 20;
	}
	for (int i = 0; i < 4096; i++) {
		uint64_t *word = &table[table[i % 64] % 64];

		*word = *word << 7 | *word >> 57;
		hash = hash * 31 + *word;
		sum += (double)(*word % 1024) / 8;
	}
	return hash + (uint64_t)sum;
}

static void work_right(void)
{
	for (uint64_t seed = 1; seed <= 16; seed++) {
		static uint64_t known[17];
		uint64_t result = work(seed);

		if (!known[seed])
			known[seed] = result;
		need(result == known[seed]);
	}
}

/* ---- two timers of 1 kHz, one of them on the alternate stack ---- */

static char alternate[65536];
static volatile uint64_t ticks, alarms;
static timer_t timer;

static void on_tick(int number, siginfo_t *info, void *context)
{
	const int saved = errno;

	(void)number;
	(void)context;
	need(info->si_code == SI_TIMER && info->si_value.sival_int == 77);
	ticks += 1 + (uint64_t)timer_getoverrun(timer);
	errno = saved;
}

static void on_alarm(int number, siginfo_t *info, void *context)
{
	char here;

	(void)number;
	(void)info;
	(void)context;
	alarms++;
	/* Registers that a handler uses are the interrupted program's again behind it. */
	need(&here > alternate && &here < alternate + sizeof(alternate));
	need(work(3) == work(3));
}

static void start_timers(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
	struct itimerspec interval = {{0, 1000000}, {0, 1000000}};
	struct sigevent other = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	static timer_t second;

	event.sigev_value.sival_int = 77;
	need(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	need(!timer_create(CLOCK_MONOTONIC, &other, &second));
	need(!timer_settime(timer, 0, &interval, NULL));
	need(!timer_settime(second, 0, &interval, NULL));
}

/* The kernel tells of each expiration, in a signal or as an overrun. */
static void part_timer(void)
{
	const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	sigset_t all, before;
	double began = now(), expected;

	need(!sigaltstack(&stack, NULL));
	handle(SIGRTMIN + 1, on_tick, SA_RESTART);
	handle(SIGALRM, on_alarm, SA_RESTART | SA_ONSTACK);
	start_timers();
	while (time_is_left())
		work_right();
	sigfillset(&all);
	need(!sigprocmask(SIG_BLOCK, &all, &before));
	expected = 1000 * (now() - began);
	/* What the last moment has brought comes now, before what follows. */
	need(!sigprocmask(SIG_SETMASK, &before, NULL));
	need((double)ticks > 0.98 * expected - 100 && (double)ticks < 1.02 * expected + 100);
	need(alarms > 10);
	printf("each expiration of the timer was told, and all work was right\n");
}

/* ---- signals to and fro between processes, and out of handlers ---- */

static volatile sig_atomic_t last, jumps;
static sigjmp_buf back;

static void on_number(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	need(info->si_code == SI_QUEUE);
	last = info->si_value.sival_int;
}

static void on_jump(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	jumps++;
	siglongjmp(back, 1);
}

/* Waits until the other one has sent @number, which comes when nobody looks elsewhere. */
static void await(int number, const sigset_t *while_waiting)
{
	while (last != number)
		sigsuspend(while_waiting);
}

static void send(pid_t pid, int number)
{
	need(!sigqueue(pid, SIGUSR1, (union sigval){.sival_int = number}));
}

static _Noreturn void answer(pid_t parent, const sigset_t *while_waiting)
{
	for (int number = 1;; number += 2) {
		await(number, while_waiting);
		send(parent, number + 1);
	}
}

static void jump_out(void)
{
	const sig_atomic_t before = jumps;

	if (!sigsetjmp(back, 1)) {
		raise(SIGUSR2);
		need(!"a handler that jumps out came back");
	}
	need(jumps == before + 1);
}

static void part_signals(void)
{
	sigset_t blocked, while_waiting;
	pid_t parent = getpid(), child;
	int number = 1;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	need(!sigprocmask(SIG_BLOCK, &blocked, &while_waiting));
	handle(SIGUSR1, on_number, 0);
	handle(SIGUSR2, on_jump, 0);
	child = fork();
	need(child >= 0);
	if (!child)
		answer(parent, &while_waiting);
	for (; time_is_left() && number < INT32_MAX - 2; number += 2) {
		send(child, number);
		await(number + 1, &while_waiting);
		if (number % 16 == 1)
			jump_out();
		if (number % 64 == 1)
			work_right();
	}
	need(number > 100);
	need(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	printf("each signal came once, in order, with its number\n");
}

/* ---- threads that come and go ---- */

enum { THREADS = 6, ROUNDS = 200 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn, created;
static _Thread_local uint64_t own;

/* They go round: each waits for its turn and gives it to the next one. */
static void *go_round(void *argument)
{
	const int mine = (int)(intptr_t)argument;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		while (turn % THREADS != mine)
			pthread_cond_wait(&turned, &mutex);
		turn++;
		own++;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&mutex);
	}
	need(work(5) == work(5));
	return (void *)own;
}

static void *sleep_for_ever(void *argument)
{
	for (;;)
		pause();
	return argument;
}

static void *fork_once(void *argument)
{
	pid_t child = fork();
	int status;

	need(child >= 0);
	if (!child)
		_exit(work(7) == work(7) ? 3 : 4);
	need(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
	return argument;
}

static void *detached(void *argument)
{
	__atomic_add_fetch((int *)argument, 1, __ATOMIC_RELEASE);
	return NULL;
}

static pthread_t start(void *(*what)(void *), void *argument)
{
	pthread_t thread;

	need(!pthread_create(&thread, NULL, what, argument));
	created++;
	return thread;
}

static void *result_of(pthread_t thread)
{
	void *result;

	need(!pthread_join(thread, &result));
	return result;
}

static void all_at_once(void)
{
	pthread_t threads[THREADS], sleeper = start(sleep_for_ever, NULL);
	static int ended;
	int before = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);

	turn = 0;
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(go_round, (void *)(intptr_t)i);
	need(!pthread_detach(start(detached, &ended)));
	need(result_of(start(fork_once, &turn)) == &turn);
	for (int i = 0; i < THREADS; i++)
		need(result_of(threads[i]) == (void *)(intptr_t)ROUNDS);
	need(turn == THREADS * ROUNDS);
	need(!pthread_cancel(sleeper) && result_of(sleeper) == PTHREAD_CANCELED);
	while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) == before)
		sched_yield();
}

static void part_threads(void)
{
	while (time_is_left())
		all_at_once();
	need(created > THREADS);
	printf("all threads took their turns, and ended as they were told\n");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{"timer", part_timer},
		{"signals", part_signals},
		{"threads", part_threads},
	};

	if (argc == 3)
		for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
			if (!strcmp(argv[2], parts[i].name)) {
				end = now() + atof(argv[1]);
				parts[i].run();
				return 0;
			}
	fprintf(stderr, "usage: endure SECONDS timer|signals|threads\n");
	return 2;
}
