// SPDX-License-Identifier: MIT
/* Where descriptors of events go: numbers, dup, close, fork, exec, messages. */
#include "event_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Numbers are given as for any other descriptor, and given again. */
static void case_numbers(void)
{
	int first = own_faults(), second = own_faults(), third;

	say("one behind the other: %d\n", second - first);
	close(first);
	third = own_faults();
	say("the same again: %d\n", third == first);
	for (int i = 0; i < 1000; i++)
		close(own_faults());
	close(second);
	say("and after many: %d\n", own_faults() == second);
	TRY(read(99, &first, sizeof(first)));
}

static void case_no_more_descriptors(void)
{
	struct perf_event_attr attr = faults();
	int fd = own_faults(), nr = 0, last = -1;

	while ((last = dup(fd)) >= 0)
		nr++;
	TRY_AT(open_event(&attr, 0, -1, -1, 0));
	say("they were many: %d\n", nr > 10);
	count_of(fd);
}

static bool enough;

static void *open_and_close(void *failed)
{
	struct perf_event_attr attr = faults();

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		const int fd = open_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0)
			++*(int *)failed;
		close(fd);
	}
	return NULL;
}

/* To open one takes a number, and no other one at any time: that is the other thread's. */
static void case_number_beside(void)
{
	enum { ROUNDS = 1000 };
	const int fd = fcntl(own_faults(), F_DUPFD, 100), next = dup(fd), beside = next + 1;
	unsigned int state = 1;
	int failed = 0, lost = 0;
	pthread_t thread;

	close(next);
	need(!pthread_create(&thread, NULL, open_and_close, &failed));
	for (int i = 0; i < ROUNDS; i++) {
		const struct timespec moment = {.tv_nsec = rand_r(&state) % 60000};

		need(dup2(fd, beside) == beside);
		nanosleep(&moment, NULL);
		lost += fcntl(beside, F_GETFD) < 0;
		close(beside);
		nanosleep(&moment, NULL);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	need(!pthread_join(thread, NULL));
	say("not opened: %d, lost: %d\n", failed, lost);
}

static void case_dup(void)
{
	int fd = own_faults(), copy = dup(fd), other = open("/dev/null", O_RDONLY);
	char bytes[8];

	fault(10);
	say("counts: %d\n", count_of(copy) >= 10);
	close(fd);
	TRY(read(fd, bytes, 8));
	say("still counts: %d\n", count_of(copy) >= 10);
	need(dup2(copy, other) == other);
	close(copy);
	say("there, too: %d\n", count_of(other) >= 10);
	need(dup2(open("/dev/null", O_RDONLY), other) == other);
	TRY(read(other, bytes, 8));
}

/* The numbers are free for anything else then. */
static void case_close_range(void)
{
	int fd = own_faults(), kept = own_faults(), other;
	char bytes[8];

	need(!close_range((unsigned int)fd, (unsigned int)fd, CLOSE_RANGE_CLOEXEC));
	TRY(read(fd, bytes, sizeof(bytes)));
	need(!close_range((unsigned int)fd, (unsigned int)fd, 0));
	TRY(read(fd, bytes, sizeof(bytes)));
	other = open("/dev/null", O_RDONLY);
	say("the same number: %d\n", other == fd);
	TRY(read(other, bytes, sizeof(bytes)));
	TRY(ioctl(other, PERF_EVENT_IOC_RESET, 0));
	count_of(kept);
}

static void case_fork(void)
{
	int fd = own_faults(), status;
	pid_t child;

	fault(10);
	child = fork();
	if (!child) {
		say("the child reads: %d\n", count_of(fd) >= 10);
		TRY(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child);
	uint64_t before = count_of(fd);
	fault(10);
	say("disabled by the child: %d\n", count_of(fd) == before);
}

static void case_exec(void)
{
	char name[16];
	int fd = own_faults();

	fault(10);
	snprintf(name, sizeof(name), "%d", fd);
	execl("/proc/self/exe", case_argv[0], "_after_exec", name, NULL);
	need(!"exec");
}

static void case_after_exec(void)
{
	int fd = atoi(case_argv[2]);

	say("counts on: %d\n", count_of(fd) >= 10);
	TRY(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	fault(10);
	say("and further: %d\n", count_of(fd) >= 10);
	close(fd);
	TRY(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
}

/* Of an event of the sender: it is the sender's that the receiver reads. */
static void case_pass(void)
{
	int ends[2], status;
	pid_t child;

	close(own_faults());
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = fork();
	if (!child) {
		int fd = own_faults();

		fault(10);
		send_fd(ends[1], fd);
		close(fd);
		pause();
	}
	int fd = receive_fd(ends[0]);
	say("counts of the sender: %d\n", count_of(fd) >= 10);
	TRY(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	/* The sender may fault once more on its way to pause(2). */
	say("reset from here: %d\n", count_of(fd) < 10);
	kill(child, SIGKILL);
	need(waitpid(child, &status, 0) == child);
	say("and behind its end: %d\n", count_of(fd) < 10);
}

/* An event that was only counted gets a ring: in user mode it becomes another one, which nobody is to see. */
static void case_a_ring_for_what_was_counted(void)
{
	const int fd = own_faults(), copy = fcntl(fd, F_DUPFD, 50);
	uint64_t before;

	fault(100);
	TRY(fcntl(fd, F_SETFD, FD_CLOEXEC));
	TRY(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC));
	TRY(fcntl(fd, F_SETSIG, SIGUSR2));
	TRY(fcntl(fd, F_SETOWN, getpid()));
	map_ring(fd);
	say("%d %x", fcntl(fd, F_GETFD), (unsigned int)fcntl(fd, F_GETFL));
	say(" %d %d", fcntl(fd, F_GETSIG) == SIGUSR2, fcntl(fd, F_GETOWN) == getpid());
	say(" %d\n", fcntl(copy, F_GETFD));
	say("counts: %d %d\n", count_of(fd) >= 100, count_of(copy) >= 100);
	TRY(ioctl(copy, PERF_EVENT_IOC_DISABLE, 0));
	before = count_of(fd);
	fault(100);
	say("stands: %d\n", count_of(fd) == before);
	close(fd);
	say("still there: %d\n", count_of(copy) == before);
}

const struct test_case cases[] = {
	{"a_ring_for_what_was_counted", case_a_ring_for_what_was_counted},
	{"numbers", case_numbers},
	{"no_more_descriptors", case_no_more_descriptors},
	{"number_beside", case_number_beside},
	{"dup", case_dup},
	{"close_range", case_close_range},
	{"fork", case_fork},
	{"exec", case_exec},
	{"_after_exec", case_after_exec},
	{"pass", case_pass},
	{NULL, NULL},
};
