// SPDX-License-Identifier: MIT
/*
 * The calls. What they are given is wrong more often than not, but never of a kind that would harm
 * a program on its own machine: no bad pointer leads to memory of this program, and no signal goes
 * to anybody who has not asked for it.
 */
#include "hostile_calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/conformance/workload.h"

/* Children of children of callers have none: or there would be more and more. */
enum { THREADS = 4, DEPTH = 2 };

static unsigned int me, depth;
static unsigned int threads;

int fds[FDS];
pid_t kids[KIDS];
int epoll_fd;
char *scratch, *read_only;
_Thread_local struct mapping maps[MAPS];
_Thread_local sigjmp_buf back;
_Thread_local volatile bool poking;
_Thread_local uint64_t draw_state;

/* ---- choices ---- */

/* Of any magnitude. */
uint64_t any_number(void)
{
	return draw() >> below(64);
}

int some_fd(void)
{
	return fds[below(FDS)];
}

int any_fd(void)
{
	switch (below(24)) {
	case 0:
		return -1;
	case 1:
		return (int)any_number();
	case 2:
		return 1000 + (int)below(30);
	case 3:
		return epoll_fd;
	case 4:
		return (int)below(64);
	default:
		return some_fd();
	}
}

/* Where @size bytes may be written, and if not, by nobody. */
void *any_pointer(size_t size)
{
	static void *const bad[] = {NULL,
				    (void *)8,
				    (void *)-1,
				    (void *)-4096,
				    (void *)0x8000000000000000,
				    (void *)0x7ffffffff000};

	switch (below(12)) {
	case 0:
		return PICK(bad);
	case 1:
		return scratch + SCRATCH - below(64); /* runs over the end */
	case 2:
		return read_only + below(PAGE);
	case 3:
		return maps[below(MAPS)].at;
	default:
		return scratch + below((unsigned int)(SCRATCH - size));
	}
}

/* ---- work ---- */

static void do_work(void)
{
	switch (below(6)) {
	case 0:
		work_loop(1 + any_number() % 100000);
		return;
	case 1:
		work_calls(1 + below(500));
		return;
	case 2:
		work_faults(1 + below(20));
		return;
	case 3:
		for (unsigned int i = 0; i < 50; i++)
			work_store8(scratch);
		return;
	case 4:
		usleep(below(300));
		return;
	default:
		for (unsigned int i = 0; i < 10; i++)
			getppid();
	}
}

/* ---- processes and threads ---- */

static void step(void);

static void steps(unsigned int nr)
{
	while (nr--)
		step();
}

static void *thread_main(void *arg)
{
	draw_state = (uint64_t)(uintptr_t)arg;
	steps(below(40));
	__atomic_fetch_sub(&threads, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void do_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (__atomic_load_n(&threads, __ATOMIC_RELAXED) >= THREADS)
		return;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
	if (pthread_create(&thread, &attributes, thread_main, (void *)(uintptr_t)draw()))
		__atomic_fetch_sub(&threads, 1, __ATOMIC_RELAXED);
	pthread_attr_destroy(&attributes);
}

_Noreturn static void execute_again(void)
{
	char number[16], seed[32], deep[16];

	snprintf(number, sizeof(number), "%u", me);
	snprintf(seed, sizeof(seed), "%lu", (unsigned long)draw());
	snprintf(deep, sizeof(deep), "%u", depth);
	execl("/proc/self/exe", "hostile", "again", number, seed, deep, (char *)NULL);
	_exit(0);
}

/* Each process has a folder of its own: their cores may have the same name. */
static void go_to_folder(void)
{
	const char *cores = getenv("HOSTILE_CORES");
	char path[200];

	if (!cores)
		return;
	snprintf(path, sizeof(path), "%s/%d", cores, getpid());
	mkdir(path, 0700);
	if (chdir(path) < 0)
		_exit(2);
}

/* What is inherited is seen to the end. */
_Noreturn static void child(bool may_return)
{
	if (!may_return)
		_exit(0);
	go_to_folder();
	depth++;
	threads = 0;
	memset(kids, 0, sizeof(kids));
	memset(maps, 0, sizeof(maps)); /* they are not inherited */
	draw_state ^= (uint64_t)getpid();
	steps(below(60));
	if (one_in(3))
		execute_again();
	if (one_in(3))
		execl("/bin/true", "true", (char *)NULL);
	if (one_in(8))
		kill(getpid(), SIGKILL);
	_exit(0);
}

_Noreturn static void vfork_child(void)
{
	if (one_in(4))
		usleep(below(500));
	if (one_in(2))
		execl("/bin/true", "true", (char *)NULL);
	if (one_in(4))
		kill(getpid(), SIGKILL);
	_exit(0);
}

static void do_fork(void)
{
	unsigned int slot = below(KIDS);
	pid_t pid;

	if (kids[slot] || depth >= DEPTH)
		return;
	if (one_in(4)) {
		pid = vfork();
		if (!pid)
			vfork_child();
	} else {
		/* With its parent's descriptors, it may be: then locks on those outlive it. */
		pid = one_in(4) ? (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0)
				: fork();
		if (!pid)
			child(true);
	}
	kids[slot] = pid > 0 ? pid : 0;
}

static void do_end_kid(void)
{
	unsigned int slot = below(KIDS);

	if (!kids[slot])
		return;
	if (one_in(2))
		kill(kids[slot], one_in(2) ? SIGKILL : SIGUSR1);
	/* A child is not waited for without end: it may itself wait for its own. */
	for (unsigned int i = 0; i < 50; i++) {
		if (waitpid(kids[slot], NULL, WNOHANG)) {
			kids[slot] = 0;
			return;
		}
		usleep(100);
	}
}

static void do_limits(void)
{
	struct rlimit limit;

	switch (below(3)) {
	case 0:
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = one_in(2) ? limit.rlim_max : 10 + below(100);
		if (limit.rlim_cur <= limit.rlim_max)
			setrlimit(RLIMIT_NOFILE, &limit);
		return;
	case 1:
		prctl(one_in(2) ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);
		return;
	default:
		prctl(PR_SET_NAME, one_in(2) ? "hostile" : "a name that is too long");
	}
}

/* ---- a step ---- */

static void (*const calls[])(void) = {
	do_open,    do_open,	    do_open,   do_open,	      do_read,	  do_read,
	do_ioctl,   do_ioctl,	    do_ioctl,  do_map,	      do_map,	  do_map_aux,
	do_map_aux, do_change_map,  do_poke,   do_rdpmc,      do_fcntl,	  do_descriptor,
	do_wait,    do_wait,	    do_work,   do_work,	      do_thread,  do_fork,
	do_end_kid, do_other_calls, do_limits, do_descriptor, receive_fd, send_fd,
};

static void step(void)
{
	unsigned int which = below(sizeof(calls) / sizeof(*calls));

	shared->callers[me].last = which;
	shared->callers[me].where = draw_state;
	calls[which]();
	__atomic_fetch_add(&shared->callers[me].calls, 1, __ATOMIC_RELAXED);
}

/* ---- beginning ---- */

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	/* Sent by somebody, or a fault of our own doing. */
	if (number != SIGSEGV && number != SIGBUS)
		return;
	if (poking && info->si_code > 0)
		siglongjmp(back, 1);
	signal(number, SIG_DFL);
}

static void handle_signals(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};

	for (int number = 1; number <= SIGRTMAX; number++)
		if (number != SIGCHLD && number != SIGILL && number != SIGFPE && number != SIGABRT)
			sigaction(number, &action, NULL);
}

static void begin(unsigned int number, uint64_t seed)
{
	go_to_folder();
	me = number;
	draw_state = seed;
	handle_signals();
	scratch = mmap(NULL, SCRATCH + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	read_only = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (scratch == MAP_FAILED || read_only == MAP_FAILED)
		_exit(2);
	munmap(scratch + SCRATCH, PAGE);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
}

void caller(unsigned int number, uint64_t seed)
{
	begin(number, seed);
	for (unsigned int i = 0; i < FDS; i++)
		fds[i] = -1;
	for (;;)
		step();
}

void caller_again(unsigned int number, uint64_t seed, unsigned int deep)
{
	begin(number, seed);
	depth = deep;
	/* Those that were not to be closed may be anywhere. */
	for (unsigned int i = 0; i < FDS; i++)
		fds[i] = one_in(2) ? 3 + (int)below(60) : -1;
	steps(below(60));
	_exit(0);
}
