// SPDX-License-Identifier: MIT
/* How overflows and ends are told: poll, epoll, signals. */
#include "event_case.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int poll_of(int fd, int timeout)
{
	struct pollfd item = {fd, POLLIN, 0};
	int result = poll(&item, 1, timeout);

	return result < 0 ? result : item.revents;
}

/* An event of @pid whose overflows wake: each page fault. */
static int sampled(pid_t pid, char **ring)
{
	struct perf_event_attr attr = faults();
	int fd;

	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	attr.wakeup_events = 1;
	fd = pid ? open_event(&attr, pid, -1, -1, 0) : own_event(&attr);
	need(fd >= 0);
	*ring = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(*ring != MAP_FAILED);
	return fd;
}

static void case_poll_without_ring(void)
{
	int fd = own_faults(), pipes[2];
	struct pollfd two[2];
	fd_set in;
	struct timeval now = {0, 0};

	say("poll %d\n", poll_of(fd, 1000));
	need(!pipe(pipes));
	two[0] = (struct pollfd){pipes[0], POLLIN, 0};
	two[1] = (struct pollfd){fd, 0, 0};
	TRY(poll(two, 2, 1000));
	say("%d %d\n", two[0].revents, two[1].revents);
	need(write(pipes[1], "x", 1) == 1);
	TRY(poll(two, 2, 1000));
	say("%d %d\n", two[0].revents, two[1].revents);
	FD_ZERO(&in);
	FD_SET(fd, &in);
	TRY(select(fd + 1, &in, NULL, NULL, &now));
	say("readable %d\n", FD_ISSET(fd, &in) != 0);
}

static void case_poll_for_end(void)
{
	char *ring;
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 0);
	fd = sampled(child, &ring);
	say("has not ended: %d\n", !(poll_of(fd, 10) & POLLHUP));
	need(write(go, "x", 1) == 1);
	while (!(poll_of(fd, 10000) & POLLHUP))
		;
	say("ended\n");
	say("for good: %d\n", (poll_of(fd, 1000) & POLLHUP) != 0);
	need(waitpid(child, &status, 0) == child);
}

static void case_poll_for_a_violent_end(void)
{
	char *ring;
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 0);
	fd = sampled(child, &ring);
	need(!kill(child, SIGKILL));
	while (!(poll_of(fd, 10000) & POLLHUP))
		;
	say("ended\n");
	need(waitpid(child, &status, 0) == child);
	say_status("child", status);
}

static void case_poll_is_taken(void)
{
	char *ring;
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 3);
	fd = sampled(child, &ring);
	need(write(go, "x", 1) == 1);
	need(waitpid(child, &status, 0) == child);
	say("samples: %d\n", ((struct perf_event_mmap_page *)ring)->data_head > 0);
	say("readable or ended: %d\n", (poll_of(fd, 1000) & (POLLIN | POLLHUP)) != 0);
}

static void case_epoll(void)
{
	struct epoll_event item = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef}, seen;
	int go, fd, status, epoll = epoll_create1(0);
	bool hung_up = false;
	char *ring;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 0);
	fd = sampled(child, &ring);
	TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &item));
	TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &item));
	need(epoll_wait(epoll, &seen, 1, 10) >= 0); /* what it faulted on its way here */
	need(write(go, "x", 1) == 1);
	for (int i = 0; i < 1000 && !hung_up; i++) {
		if (epoll_wait(epoll, &seen, 1, 10000) != 1)
			break;
		hung_up = seen.events & EPOLLHUP;
	}
	say("ended: %d, ours: %d\n", hung_up, seen.data.u64 == item.data.u64);
	need(waitpid(child, &status, 0) == child);
	TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &item));
	TRY(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
	TRY(epoll_wait(epoll, &seen, 1, 10));
}

/* An event of which there is something to see for good, and who watches it. */
static int watch_what_has_ended(void)
{
	struct epoll_event item = {.events = EPOLLIN, .data.u64 = 1};
	int go, fd, status, epoll = epoll_create1(0);
	char *ring;
	pid_t child = start_child(&go, 0);

	fd = sampled(child, &ring);
	need(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &item));
	need(!close(go));
	need(waitpid(child, &status, 0) == child);
	need(epoll_wait(epoll, &item, 1, 10000) == 1);
	return epoll;
}

/* Who watches nothing has nothing to see, whatever its number was before. */
static void case_epoll_of_a_number(void)
{
	struct epoll_event item = {.events = EPOLLIN, .data.u64 = 1};
	int first, ends[2];

	close(own_faults());
	need(!pipe(ends));
	first = watch_what_has_ended();
	need(dup2(epoll_create1(0), first) == first);
	TRY(epoll_wait(first, &item, 1, 0));
	TRY(epoll_ctl(first, EPOLL_CTL_ADD, ends[0], &item));
	TRY(epoll_wait(first, &item, 1, 0));
	first = watch_what_has_ended();
	need(!close(first));
	need(epoll_create1(0) == first);
	TRY(epoll_wait(first, &item, 1, 0));
}

struct own_table {
	int epoll, seen, waited;
};

/* Its numbers are those of the other threads at first, and then its own. */
static void *in_own_table(void *argument)
{
	struct own_table *what = argument;
	struct epoll_event item;

	need(!unshare(CLONE_FILES));
	what->seen = epoll_wait(what->epoll, &item, 1, 0);
	need(!close(what->epoll));
	need(epoll_create1(0) == what->epoll);
	what->waited = epoll_wait(what->epoll, &item, 1, 0);
	return NULL;
}

static void case_epoll_in_own_table(void)
{
	struct epoll_event item;
	struct own_table what;
	pthread_t thread;

	close(own_faults());
	what.epoll = watch_what_has_ended();
	need(!pthread_create(&thread, NULL, in_own_table, &what));
	need(!pthread_join(thread, NULL));
	say("its own: %d, %d\n", what.seen, what.waited);
	TRY(epoll_wait(what.epoll, &item, 1, 0));
}

static volatile sig_atomic_t signals, code, descriptor, band;

static void on_overflow(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	signals++;
	code = info->si_code;
	descriptor = info->si_fd;
	band = (int)info->si_band;
}

/* What is to be seen: by which word, and only once. */
static void say_ready(const char *where, int epoll)
{
	struct epoll_event seen = {0};
	int first = epoll_wait(epoll, &seen, 1, 0), word = (int)seen.data.u64;

	say("%s: %d, word %d, then %d\n", where, first, word, epoll_wait(epoll, &seen, 1, 0));
}

static void become(const char *name, int epoll, int fd)
{
	char numbers[2][16];

	snprintf(numbers[0], sizeof(numbers[0]), "%d", epoll);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", fd);
	execl("/proc/self/exe", case_argv[0], name, numbers[0], numbers[1], NULL);
	_exit(1);
}

/* The event measures it still, and begins to tell when it has a ring. */
static void case_epoll_execed(void)
{
	const int epoll = atoi(case_argv[2]), fd = atoi(case_argv[3]);

	need(mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	say_ready("of the last image", epoll);
	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	fault(3);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say_ready("of this one", epoll);
}

/* An instance is a file: all descriptors of it are as good. */
static void case_epoll_by_another_number(void)
{
	struct epoll_event item = {.events = EPOLLIN, .data.u64 = 7};
	int epoll = epoll_create1(0), copy = dup(epoll), fd;
	char *ring;

	fd = sampled(0, &ring);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	need(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &item));
	need(epoll_wait(epoll, &item, 1, 0) >= 0);
	for (int i = 0; i < 3; i++) {
		need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		fault(3);
		need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		say_ready("a copy", copy);
	}
	item = (struct epoll_event){.events = EPOLLIN, .data.u64 = 8};
	need(!epoll_ctl(copy, EPOLL_CTL_MOD, fd, &item));
	need(!close(epoll));
	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	fault(3);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say_ready("what is left", copy);
	need(!munmap(ring, RING));
	need(!fcntl(fd, F_SETFD, 0));
	become("_epoll_execed", copy, fd);
}

static void case_epoll_once(void)
{
	struct epoll_event item = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 5}, seen;
	const int epoll = epoll_create1(0);
	char *ring;
	const int fd = sampled(0, &ring);

	need(epoll >= 0);
	TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &item));
	fault(1);
	TRY(epoll_wait(epoll, &seen, 1, 10000));
	fault(1);
	TRY(epoll_wait(epoll, &seen, 1, 0));
	TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &item));
	fault(1);
	TRY(epoll_wait(epoll, &seen, 1, 10000));
	say("%d %d\n", (int)seen.events, (int)seen.data.u64);
}

/* More than an fd_set of the C library has room for, which the call does not know of. */
static void case_select_of_a_high_number(void)
{
	enum { HIGH = 1500 };
	fd_set sets[2];
	struct timeval now = {0, 0};
	char *ring;
	const int fd = sampled(0, &ring);
	struct rlimit limit;

	need(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	need(!setrlimit(RLIMIT_NOFILE, &limit));
	need(dup2(fd, HIGH) == HIGH);
	fault(1);
	memset(sets, 0, sizeof(sets));
	((unsigned long *)sets)[HIGH / 64] |= 1UL << HIGH % 64;
	TRY(syscall(SYS_select, HIGH + 1, sets, NULL, NULL, &now));
	say("readable %lu\n", ((unsigned long *)sets)[HIGH / 64] >> HIGH % 64 & 1);
}

/* A process and its child, in a group of their own. */
static int signal_group(void)
{
	const struct timespec patience = {10, 0};
	int fd, status, ready[2], heard;
	char *ring, byte;
	sigset_t set;
	pid_t child;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	need(!sigprocmask(SIG_BLOCK, &set, NULL) && !pipe(ready) && !setpgid(0, 0));
	child = fork();
	if (!child) {
		need(write(ready[1], "x", 1) == 1);
		_exit(sigtimedwait(&set, NULL, &patience) != SIGRTMIN + 3);
	}
	need(read(ready[0], &byte, 1) == 1);
	fd = sampled(0, &ring);
	need(!fcntl(fd, F_SETSIG, SIGRTMIN + 3) && !fcntl(fd, F_SETOWN, -getpid()));
	need(!fcntl(fd, F_SETFL, O_ASYNC));
	fault(1);
	heard = sigtimedwait(&set, NULL, &patience) == SIGRTMIN + 3;
	need(waitpid(child, &status, 0) == child);
	return heard + 2 * !status;
}

/* To each process of a group that is a number below 0. */
static void case_signal_to_a_group(void)
{
	const pid_t child = fork();
	int status;

	if (!child)
		_exit(signal_group());
	need(waitpid(child, &status, 0) == child);
	say("heard by: %d\n", WEXITSTATUS(status));
}

static void case_signal(void)
{
	char *ring;
	int fd = sampled(0, &ring);

	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	handle(SIGRTMIN + 3, on_overflow, 0);
	need(!fcntl(fd, F_SETOWN, getpid()));
	need(!fcntl(fd, F_SETSIG, SIGRTMIN + 3));
	need(!fcntl(fd, F_SETFL, O_ASYNC));
	need(!ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	fault(10);
	getpid();
	say("signals: %d, POLL_HUP: %d, descriptor: %d, band: %x\n", (int)signals, code == POLL_HUP,
	    descriptor == fd, (unsigned int)band);
}

/* Two events that are told of at once: the signal does not queue. */
static void case_signal_for_two(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.watermark = 1,
		.wakeup_watermark = 1,
		.comm = 1,
	};

	handle(SIGIO, on_overflow, 0);
	for (int i = 0; i < 2; i++) {
		int fd = own_event(&attr);

		map_ring(fd);
		need(!fcntl(fd, F_SETOWN, getpid()));
		need(!fcntl(fd, F_SETFL, O_ASYNC));
	}
	signals = 0;
	need(!prctl(PR_SET_NAME, "two"));
	say("signals: %d\n", (int)signals);
}

static volatile sig_atomic_t faulted, refused;
static sigjmp_buf behind;

static void on_fault(int number)
{
	(void)number;
	faulted++;
	siglongjmp(behind, 1);
}

/* SIGTRAP that is blocked waits, whatever else the program and who reads for it run into. */
static void case_blocked_sigtrap(void)
{
	struct perf_event_attr attr = faults();
	sigset_t set;
	siginfo_t info;
	int fd;

	attr.sample_period = 1;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	handle(SIGTRAP, on_overflow, 0);
	handle(SIGUSR1, on_overflow, 0);
	signal(SIGSEGV, on_fault);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	need(!sigprocmask(SIG_BLOCK, &set, NULL));
	fd = own_event(&attr);
	fault(1);
	for (int i = 0; i < 10; i++) {
		refused += raw(SYS_rt_sigaction, SIGUSR1, nowhere, NULL, 8) == -EFAULT;
		if (!sigsetjmp(behind, 1))
			*(volatile char *)nowhere = 1;
	}
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("signals: %d, bad addresses: %d, faults: %d\n", (int)signals, (int)refused,
	    (int)faulted);
	fd = own_event(&attr);
	fault(1);
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("taken: %d, ", sigtimedwait(&set, &info, &(struct timespec){10, 0}) == SIGTRAP);
	say("TRAP_PERF: %d\n", info.si_code == 6);
	fd = own_event(&attr);
	fault(1);
	need(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("signals: %d, TRAP_PERF: %d\n", signals > 0, code == 6);
}

/*
 * A clock that overflows sooner than anybody can look at it, beside what takes long to look at. The
 * program goes on all the same, and is told again without a system call in between.
 */
/* As in some virtual machines, whose kernel is still at the next signal then. */
static void has_no_time(int number)
{
	static const char skip[] = "skip: signals of the kernel leave the program no time\n";

	(void)number;
	_exit(write(STDOUT_FILENO, skip, sizeof(skip) - 1) != sizeof(skip) - 1);
}

static void case_clock_of_no_time(void)
{
	enum { LONG = 15 }; /* s */
	const struct sigaction alarmed = {.sa_handler = has_no_time};
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_MIGRATIONS,
		.sample_period = 1,
	};
	volatile unsigned long rounds = 0;

	need(!sigaction(SIGALRM, &alarmed, NULL));
	alarm(LONG);
	handle(SIGTRAP, on_overflow, 0);
	own_event(&attr);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	int fd = own_event(&attr);
	while (rounds < 5000000 || signals < 20)
		rounds++;
	need(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("goes on: %d, told: %d\n", rounds >= 5000000, signals >= 20);
}

static void *tick(void *told)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 100000,
		.sigtrap = 1,
		.remove_on_exec = 1,
	};

	signals = 0;
	own_event(&attr);
	for (volatile unsigned long rounds = 0; signals < 3 && rounds < 1000000000; rounds++)
		;
	*(int *)told += signals >= 3;
	return NULL;
}

/* Threads that end while they sample, one after the other: what was of one is not of the next. */
static void case_clock_of_each_thread(void)
{
	int told = 0;

	handle(SIGTRAP, on_overflow, 0);
	for (int i = 0; i < 6; i++) {
		pthread_t thread;

		need(!pthread_create(&thread, NULL, tick, &told));
		need(!pthread_join(thread, NULL));
	}
	say("told: %d\n", told);
}

const struct test_case cases[] = {
	{"poll_without_ring", case_poll_without_ring},
	{"poll_for_end", case_poll_for_end},
	{"poll_for_a_violent_end", case_poll_for_a_violent_end},
	{"poll_is_taken", case_poll_is_taken},
	{"epoll", case_epoll},
	{"epoll_of_a_number", case_epoll_of_a_number},
	{"epoll_in_own_table", case_epoll_in_own_table},
	{"epoll_by_another_number", case_epoll_by_another_number},
	{"_epoll_execed", case_epoll_execed},
	{"epoll_once", case_epoll_once},
	{"select_of_a_high_number", case_select_of_a_high_number},
	{"signal_to_a_group", case_signal_to_a_group},
	{"signal", case_signal},
	{"signal_for_two", case_signal_for_two},
	{"blocked_sigtrap", case_blocked_sigtrap},
	{"clock_of_no_time", case_clock_of_no_time},
	{"clock_of_each_thread", case_clock_of_each_thread},
	{NULL, NULL},
};
