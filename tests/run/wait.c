// SPDX-License-Identifier: MIT
/* System calls that signals interrupt or restart, and what a parent learns of its children. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

static volatile sig_atomic_t count;
static int ends[2]; /* a pipe that the second signal writes into, or a socket pair's */
static struct shared {
	uint32_t word;
} * shared;

/* The first signal interrupts; the second also ends the wait of whoever was restarted. */
static void tick(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	if (++count == 2) {
		need(write(ends[1], "x", 1) == 1);
		shared->word = 1;
		raw(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

static void tick_twice(bool restart)
{
	struct itimerval interval = {{0, 30000}, {0, 30000}};

	count = 0;
	shared->word = 0;
	handle(SIGALRM, tick, restart ? SA_RESTART : 0);
	need(setitimer(ITIMER_REAL, &interval, NULL) == 0);
}

static void enough(void)
{
	struct itimerval never = {{0, 0}, {0, 0}};

	need(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void setup(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(shared != MAP_FAILED);
}

#define TRY(name, restarted, call)                                                                 \
	do {                                                                                       \
		if (pipe(ends))                                                                    \
			_exit(97);                                                                 \
		tick_twice(restarted);                                                             \
		long result_ = call;                                                               \
		int error_ = errno;                                                                \
		enough();                                                                          \
		errno = error_;                                                                    \
		say("%s%s: %s after %d\n", name, restarted ? " restarted" : "",                    \
		    result_name(result_), (int)count);                                             \
		close(ends[0]);                                                                    \
		close(ends[1]);                                                                    \
	} while (0)

static char byte;

static long futex_wait(void)
{
	long result = raw(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0);

	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static void interrupted(bool restart)
{
	struct timespec long_time = {20, 0}, rest = {0, 0};
	struct pollfd poll_fd = {0};
	struct epoll_event event;
	struct sembuf take = {0, -1, 0};
	struct {
		long type;
		char text[8];
	} message;
	fd_set set;

	TRY("read", restart, read(ends[0], &byte, 1));
	TRY("futex", restart, futex_wait());
	/* These are never restarted, or by a restart of their own which handlers prevent. */
	TRY("nanosleep", restart, nanosleep(&long_time, &rest));
	say("rest %d\n", rest.tv_sec == 19 && rest.tv_nsec > 0);
	TRY("clock_nanosleep", restart,
	    clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, &rest) ? -1 : 0);
	poll_fd.events = POLLIN;
	TRY("poll", restart, poll(&poll_fd, 0, 20000));
	FD_ZERO(&set);
	struct timeval tv = {20, 0};
	TRY("select", restart, select(0, &set, NULL, NULL, &tv));
	TRY("ppoll", restart, ppoll(&poll_fd, 0, &long_time, NULL));
	int epoll = epoll_create1(0);
	TRY("epoll_wait", restart, epoll_wait(epoll, &event, 1, 20000));
	close(epoll);
	TRY("pause", restart, pause());
	int sem = semget(IPC_PRIVATE, 1, 0600);
	int queue = msgget(IPC_PRIVATE, 0600);
	need(sem >= 0 && queue >= 0);
	TRY("semop", restart, semop(sem, &take, 1));
	TRY("msgrcv", restart, msgrcv(queue, &message, sizeof(message.text), 0, 0));
	need(semctl(sem, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
}

static void case_interrupted(void)
{
	setup();
	interrupted(false);
}

static void case_restarted(void)
{
	setup();
	interrupted(true);
	pid_t child = fork();
	if (child == 0) {
		usleep(150000);
		_exit(3);
	}
	int status;
	pipe(ends);
	tick_twice(true);
	pid_t found = waitpid(child, &status, 0);
	enough();
	say("waitpid: %d\n", found == child);
	say_status("child", status);
}

/* Stopping and continuing interrupts sleeps, too, but without a handler nobody sees it. */
static void case_stopped_sleep(void)
{
	int status, report[2];

	need(pipe(report) == 0);
	pid_t child = fork();
	if (child == 0) {
		struct timespec time = {0, 200000000}, rest = {7, 7};
		struct pollfd none = {.fd = -1};

		need(write(report[1], "a", 1) == 1);
		say("sleep %s", result_name(nanosleep(&time, &rest)));
		say(" rest %ld\n", (long)rest.tv_sec);
		need(write(report[1], "b", 1) == 1);
		say("poll %s\n", result_name(poll(&none, 1, 200)));
		need(write(report[1], "c", 1) == 1);
		long result = raw(SYS_futex, &status, FUTEX_WAIT, status, &time, NULL, 0);
		say("futex %ld\n", result);
		_exit(0);
	}
	for (int i = 0; i < 3; i++) {
		need(read(report[0], &byte, 1) == 1);
		usleep(50000);
		kill(child, SIGSTOP);
		need(waitpid(child, &status, WUNTRACED) == child);
		kill(child, SIGCONT);
	}
	say_end("child", child);
}

static void say_end_and_go_on(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	say("handled %d\n", number);
}

/* The mask of these calls holds while they wait, and what it lets through is handled. */
static void case_mask_while_waiting(void)
{
	sigset_t blocked, open;
	struct pollfd none = {.fd = -1};
	struct timespec time = {20, 0};
	struct epoll_event event;

	sigemptyset(&blocked);
	sigemptyset(&open);
	sigaddset(&blocked, SIGUSR1);
	need(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0);
	handle(SIGUSR1, say_end_and_go_on, SA_RESTART);
	raise(SIGUSR1);
	say("ppoll %s\n", result_name(ppoll(&none, 1, &time, &open)));
	raise(SIGUSR1);
	say("pselect %s\n", result_name(pselect(0, NULL, NULL, NULL, &time, &open)));
	raise(SIGUSR1);
	int epoll = epoll_create1(0);
	say("epoll_pwait %s\n", result_name(epoll_pwait(epoll, &event, 1, 20000, &open)));
	raise(SIGUSR1);
	say("sigsuspend %s\n", result_name(sigsuspend(&open)));
	raise(SIGUSR1);
	time.tv_sec = 0;
	say("ppoll blocked %s\n", result_name(ppoll(&none, 1, &time, &blocked)));
	sigset_t pending;
	sigpending(&pending);
	say("still pending %d\n", sigismember(&pending, SIGUSR1));
}

/* ---- how processes end ---- */

static void case_default_actions(void)
{
	for (int limit = 0; limit < 2; limit++) {
		struct rlimit core = {0, limit ? RLIM_INFINITY : 0};

		getrlimit(RLIMIT_CORE, &core);
		core.rlim_cur = limit ? core.rlim_max : 0;
		setrlimit(RLIMIT_CORE, &core);
		for (int number = 1; number <= 64; number++) {
			char what[32];
			int status;

			if (number == 32 || number == 33 || (limit && number != SIGQUIT))
				continue;
			pid_t child = fork();
			if (child == 0) {
				raw(SYS_kill, getpid(), number);
				_exit(17);
			}
			snprintf(what, sizeof(what), "signal %d", number);
			need(waitpid(child, &status, WUNTRACED) == child);
			say_status(what, status);
			if (WIFSTOPPED(status)) {
				kill(child, SIGCONT);
				say_end(what, child);
			}
		}
	}
}

static void die(const char *what, void (*how)(void))
{
	pid_t child = fork();

	if (child == 0) {
		how();
		_exit(17);
	}
	say_end(what, child);
}

static void die_load(void)
{
	(void)*(volatile char *)64;
}
static void die_undefined(void)
{
	__asm__ volatile("ud2");
}
static void die_breakpoint(void)
{
	__asm__ volatile("int3");
}
static void die_halt(void)
{
	__asm__ volatile("hlt");
}
static void die_divide(void)
{
	__asm__ volatile("xor %%ecx, %%ecx\n\tdiv %%ecx" : : : "eax", "ecx", "edx");
}
static void die_jump(void)
{
	__asm__ volatile("xor %%eax, %%eax\n\tjmp *%%rax" : : : "eax");
}
static void die_stack(void)
{
	__asm__ volatile("mov $64, %esp\n\tpush %rax");
}
static void die_abort(void)
{
	abort();
}
static void die_file(void)
{
	FILE *file = tmpfile();
	need(file);
	char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
	need(map != MAP_FAILED);
	(void)*(volatile char *)map; /* beyond the end: SIGBUS */
}
static void die_pipe(void)
{
	need(pipe(ends) == 0);
	close(ends[0]);
	write(ends[1], "x", 1);
}
static void die_alarm(void)
{
	ualarm(10000, 0);
	for (;;)
		;
}
static void die_size(void)
{
	struct rlimit limit = {1000, 1000};
	FILE *file = tmpfile();

	need(file && setrlimit(RLIMIT_FSIZE, &limit) == 0);
	pwrite(fileno(file), "x", 1, 5000);
}
static void die_while_asleep(void)
{
	pid_t me = getpid();

	if (fork() == 0) {
		usleep(50000);
		kill(me, SIGTERM);
		_exit(0);
	}
	for (;;)
		pause();
}
static void die_exit(void)
{
	exit(300);
}
static void die_raw_exit(void)
{
	raw(SYS_exit, 0x1234);
}

static void case_ends(void)
{
	no_core();
	die("load", die_load);
	die("ud2", die_undefined);
	die("int3", die_breakpoint);
	die("hlt", die_halt);
	die("div", die_divide);
	die("jump to 0", die_jump);
	die("push below the stack", die_stack);
	die("abort", die_abort);
	die("mapping beyond the file", die_file);
	die("pipe", die_pipe);
	die("alarm", die_alarm);
	die("file size", die_size);
	die("sleeping", die_while_asleep);
	die("exit(300)", die_exit);
	die("exit by number", die_raw_exit);
}

/* The whole program's end, as its own parent sees it. */
static void case_end_by_signal(void)
{
	no_core();
	raise(SIGTERM);
}

static void case_end_by_fault(void)
{
	no_core();
	*(volatile int *)16 = 1;
}

static void case_end_by_abort(void)
{
	no_core();
	abort();
}

static void case_end_with_status(void)
{
	_exit(42);
}

/* The next SIGCHLD, which is blocked. */
static void say_child(const sigset_t *set, pid_t child)
{
	siginfo_t info;

	need(sigwaitinfo(set, &info) == SIGCHLD);
	say("SIGCHLD code %d status %d of the child %d\n", info.si_code, info.si_status,
	    info.si_pid == child);
}

static volatile sig_atomic_t children;
static void count_child(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	children++;
}

static void case_child_signals(void)
{
	sigset_t set;
	const char *result;
	int status, go[2];

	no_core();
	need(pipe(go) == 0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	pid_t child = fork();
	if (child == 0) {
		static const int stops[] = {SIGSTOP, SIGTSTP, SIGKILL};

		setpgid(0, 0); /* in an orphaned group SIGTSTP stops nobody */
		for (int i = 0; i < 3; i++) {
			raise(stops[i]);
			need(read(go[0], &byte, 1) == 1);
		}
	}
	for (int i = 0; i < 2; i++) {
		say_child(&set, child);
		need(waitpid(child, &status, WUNTRACED) == child);
		say_status("child", status);
		kill(child, SIGCONT);
		say_child(&set, child);
		need(waitpid(child, &status, WCONTINUED) == child);
		say_status("child", status);
		need(write(go[1], "x", 1) == 1);
	}
	say_child(&set, child);
	say_end("child", child);

	handle(SIGCHLD, count_child, SA_NOCLDSTOP | SA_RESTART);
	need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	child = fork();
	if (child == 0) {
		raise(SIGSTOP);
		_exit(5);
	}
	need(waitpid(child, &status, WUNTRACED) == child);
	say_status("child", status);
	say("SA_NOCLDSTOP: signals %d\n", (int)children);
	kill(child, SIGCONT);
	say_end("child", child);
	say("signals %d\n", (int)children);

	handle(SIGCHLD, count_child, SA_NOCLDWAIT | SA_RESTART);
	child = fork();
	if (child == 0)
		_exit(6);
	result = result_name(wait(&status));
	say("SA_NOCLDWAIT: %s signals %d\n", result, (int)children);
	signal(SIGCHLD, SIG_IGN);
	child = fork();
	if (child == 0)
		_exit(7);
	say("ignored: %s\n", result_name(wait(&status)));
}

/* Stop and continue from outside while the child computes, sleeps, and has handlers. */
static volatile sig_atomic_t continued;
static void on_continue(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	continued = 1;
}

static void on_terminal_stop(int number, siginfo_t *info, void *context)
{
	sigset_t set;

	(void)info;
	(void)context;
	/* What shells and editors do: put things in order, then stop for real. */
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	handle(number, on_terminal_stop, 0);
}

static void case_stop_and_continue(void)
{
	int status, go[2], back[2];
	pid_t child;

	need(pipe(go) == 0 && pipe(back) == 0);
	child = fork();
	if (child == 0) {
		setpgid(0, 0);
		handle(SIGCONT, on_continue, 0);
		handle(SIGTSTP, on_terminal_stop, 0);
		raise(SIGSTOP);
		for (volatile long i = 0; !continued; i++)
			;
		continued = 0;
		/* A stop that comes before anybody waits for the continuation hides that. */
		need(read(go[0], &byte, 1) == 1);
		raise(SIGTSTP);
		need(read(go[0], &byte, 1) == 1);
		say("back from the stop, continued %d\n", (int)continued);
		need(write(back[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	need(waitpid(child, &status, WUNTRACED) == child);
	say_status("child", status);
	kill(child, SIGCONT);
	need(waitpid(child, &status, WCONTINUED) == child);
	say_status("child", status);
	need(write(go[1], "x", 1) == 1);
	need(waitpid(child, &status, WUNTRACED) == child);
	say_status("child", status);
	kill(child, SIGCONT);
	need(waitpid(child, &status, WCONTINUED) == child);
	say_status("child", status);
	need(write(go[1], "x", 1) == 1);
	need(read(back[0], &byte, 1) == 1);
	for (int i = 0; i < 20; i++) {
		kill(child, SIGSTOP);
		need(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
		kill(child, SIGCONT);
		need(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
	}
	kill(child, SIGSTOP);
	need(waitpid(child, &status, WUNTRACED) == child);
	say_status("child", status);
	kill(child, SIGTERM); /* waits until it goes on */
	kill(child, SIGCONT);
	say_end("child", child);
}

/* Between processes: none lost, queued ones in order, each told who sent it. */
static volatile sig_atomic_t received, last, in_order = 1, from_child = 1;
static pid_t sender;
static void receive(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	in_order &= info->si_value.sival_int == received;
	from_child &= info->si_pid == sender;
	received++;
}

static void answer(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	if (info->si_pid != getpid())
		kill(info->si_pid, SIGUSR2);
	received++;
}

static void case_between_processes(void)
{
	enum { MANY = 500 };
	sigset_t set, none;

	sigemptyset(&set);
	sigemptyset(&none);
	sigaddset(&set, SIGRTMIN);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	handle(SIGRTMIN, receive, 0);
	pid_t me = getpid();
	sender = fork();
	if (sender == 0) {
		for (int i = 0; i < MANY; i++) {
			union sigval value = {.sival_int = i};
			while (sigqueue(me, SIGRTMIN, value))
				usleep(1000);
		}
		_exit(0);
	}
	need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	for (volatile long i = 0; received < MANY; i++)
		;
	say("received %d in order %d from the child %d\n", received, in_order, from_child);
	say_end("sender", sender);

	/* Ping-pong of a standard signal. */
	received = 0;
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	handle(SIGUSR1, answer, 0);
	handle(SIGUSR2, answer, 0);
	pid_t child = fork();
	if (child == 0) {
		handle(SIGUSR2, receive, 0);
		for (int i = 1; i <= 200; i++) {
			kill(me, SIGUSR1);
			while (received < i)
				sigsuspend(&none);
		}
		_exit(0);
	}
	while (received < 200)
		sigsuspend(&none);
	say("answered %d\n", received);
	say_end("child", child);
}

const struct test_case cases[] = {
	{"interrupted", case_interrupted},
	{"restarted", case_restarted},
	{"stopped_sleep", case_stopped_sleep},
	{"mask_while_waiting", case_mask_while_waiting},
	{"default_actions", case_default_actions},
	{"ends", case_ends},
	{"end_by_signal", case_end_by_signal},
	{"end_by_fault", case_end_by_fault},
	{"end_by_abort", case_end_by_abort},
	{"end_with_status", case_end_with_status},
	{"child_signals", case_child_signals},
	{"stop_and_continue", case_stop_and_continue},
	{"between_processes", case_between_processes},
	{NULL, NULL},
};
