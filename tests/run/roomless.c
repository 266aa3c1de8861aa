// SPDX-License-Identifier: MIT
/* Limits on memory that leave no room for events, because tally may not raise the first of them. */
#include "event_case.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int go[2], tid_of[2];

static void *end_when_told(void *unused)
{
	const pid_t tid = (pid_t)syscall(SYS_gettid);
	char byte;

	need(write(tid_of[1], &tid, sizeof(tid)) == sizeof(tid));
	need(read(go[0], &byte, 1) == 1);
	return unused;
}

/* There is no room in the process for more than it has: another one measures its threads. */
static void case_threads_without_room(void)
{
	enum { THREADS = 3 };
	const struct rlimit limit = {200 << 20, 200 << 20};
	struct perf_event_attr attr = faults();
	pid_t child, tid;

	need(!pipe(go) && !pipe(tid_of));
	child = fork();
	need(child >= 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (!child) {
			need(i || !setrlimit(RLIMIT_AS, &limit));
			need(!pthread_create(&thread, NULL, end_when_told, NULL));
			need(!pthread_join(thread, NULL));
			continue;
		}
		need(read(tid_of[0], &tid, sizeof(tid)) == sizeof(tid));
		need(open_event(&attr, tid, -1, -1, 0) >= 0);
		need(write(go[1], "", 1) == 1);
	}
	if (!child)
		_exit(3);
	say_end("the child", child);
	for (int i = 0; i < 2; i++) {
		struct pollfd end = {.events = POLLIN};
		int start;

		child = start_child(&start, 1);
		end.fd = open_event(&attr, child, -1, -1, 0);
		need(end.fd >= 0 && !kill(child, SIGKILL));
		say_end("another", child);
		need(poll(&end, 1, 5000) >= 0);
		say("its end is told: %d\n", !!(end.revents & POLLHUP));
	}
}

const struct test_case cases[] = {
	{"threads_without_room", case_threads_without_room},
	{NULL, NULL},
};
