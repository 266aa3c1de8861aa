// SPDX-License-Identifier: MIT
/* Signals that wait: what drops them, what takes them, and who goes on with them. */
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "signal_case.h"

static volatile sig_atomic_t count;

static void counting(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	count++;
}

/* A signal that is pending and then ignored is dropped. */
static void case_ignored(void)
{
	sigset_t set = set_of(SIGUSR1, SIGUSR2), pending;

	handle(SIGUSR1, counting, 0);
	handle(SIGUSR2, counting, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	send_self(SIGUSR1);
	send_self(SIGUSR2);
	signal(SIGUSR1, SIG_IGN);
	handle(SIGUSR1, counting, 0);
	sigpending(&pending);
	say_mask("pending", &pending);
	need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	say("handled %d\n", count);
	signal(SIGUSR1, SIG_IGN);
	send_self(SIGUSR1);
	signal(SIGCHLD, SIG_DFL);
	send_self(SIGCHLD);
	send_self(SIGCONT);
	send_self(SIGWINCH);
	send_self(SIGURG);
	say("alive\n");
}

/* ---- the signals of faults, sent by somebody ---- */

static void case_sent_faults(void)
{
	sigset_t set = set_of(SIGSEGV, SIGBUS), pending;
	struct timespec none = {0, 0};
	siginfo_t info;

	handle(SIGSEGV, say_info, 0);
	handle(SIGBUS, say_info, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	say_my_mask("blocked");
	for (int i = 0; i < 2; i++) {
		kill(getpid(), SIGSEGV);
		send_self(SIGBUS);
	}
	sigpending(&pending);
	say_mask("pending", &pending);
	need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	say("unblocked\n");
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	union sigval value = {.sival_int = 99};
	sigqueue(getpid(), SIGSEGV, value);
	say("waited for %s", result_name(sigtimedwait(&set, &info, &none)));
	say(" value %d\n", info.si_value.sival_int);
	say("then %s\n", result_name(sigtimedwait(&set, &info, &none)));
	kill(getpid(), SIGBUS);
	signal(SIGBUS, SIG_IGN);
	handle(SIGBUS, say_info, 0);
	kill(getpid(), SIGSEGV);
	struct timespec brief = {0, 20000000};
	say("nanosleep %s\n", result_name(nanosleep(&brief, NULL)));
	pid_t child = fork();
	if (child == 0) {
		sigpending(&pending);
		say_mask("child pending", &pending);
		kill(getpid(), SIGSEGV);
		signal(SIGBUS, SIG_IGN);
		execl(case_argv[0], case_argv[0], "_mask", (char *)NULL);
	}
	say_end("child", child);
	say_my_mask("still");
	no_core();
	child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		kill(getpid(), SIGSEGV);
		_exit(1);
	}
	say_end("default", child);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		kill(getpid(), SIGSTOP);
		say("going on\n");
		for (;;)
			pause();
	}
	int status;
	need(waitpid(child, &status, WUNTRACED) == child);
	kill(child, SIGSEGV);
	kill(child, SIGCONT);
	usleep(50000);
	kill(child, SIGKILL);
	say_end("sent while it is stopped", child);
}

/* Blocked but for as long as a call waits; sent before it, and while it waits. */
static void case_sent_faults_end_waits(void)
{
	sigset_t set = set_of(SIGSEGV, SIGBUS), open_set;
	struct timespec long_time = {20, 0};

	handle(SIGSEGV, say_info, 0);
	handle(SIGBUS, say_info, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	sigemptyset(&open_set);
	kill(getpid(), SIGSEGV);
	say("suspend %s\n", result_name(sigsuspend(&open_set)));
	kill(getpid(), SIGBUS);
	say("suspend %s\n", result_name(sigsuspend(&open_set)));
	say_my_mask("still");
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (child == 0) {
			usleep(100000);
			kill(getppid(), i ? SIGBUS : SIGSEGV);
			_exit(0);
		}
		if (i)
			say("ppoll %s\n", result_name(ppoll(NULL, 0, &long_time, &open_set)));
		else
			say("suspend %s\n", result_name(sigsuspend(&open_set)));
		say_end("child", child);
	}
	say_my_mask("still");
}

/* ---- in the handler ---- */

static void fork_inside(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	pid_t child = fork();
	if (child == 0)
		return; /* the child goes on below the handler, too */
	say_end("child", child);
}

static void exec_inside(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	execl(case_argv[0], case_argv[0], "_mask", (char *)NULL);
	_exit(9);
}

static void case_in_the_handler(void)
{
	pid_t me = getpid();

	handle(SIGUSR1, fork_inside, 0);
	send_self(SIGUSR1);
	if (getpid() != me) {
		say_my_mask("child");
		_exit(7);
	}
	say_my_mask("parent");
	pid_t child = fork();
	if (child == 0) {
		handle(SIGUSR1, exec_inside, 0);
		handle(SIGTERM, exec_inside, 0);
		signal(SIGHUP, SIG_IGN);
		sigset_t set = set_of(SIGTERM, SIGRTMAX);
		sigprocmask(SIG_BLOCK, &set, NULL);
		send_self(SIGTERM);
		send_self(SIGUSR1);
		_exit(8);
	}
	say_end("exec", child);
}

static void case__mask(void)
{
	sigset_t pending;
	struct sigaction action;
	stack_t stack;

	say_my_mask("after exec");
	sigpending(&pending);
	say_mask("pending", &pending);
	need(sigaction(SIGHUP, NULL, &action) == 0);
	say("SIGHUP ignored %d", action.sa_handler == SIG_IGN);
	need(sigaction(SIGBUS, NULL, &action) == 0);
	say(" SIGBUS %d\n", action.sa_handler == SIG_IGN);
	need(sigaction(SIGUSR1, NULL, &action) == 0);
	say("SIGUSR1 default %d flags %#x\n", action.sa_handler == SIG_DFL, action.sa_flags);
	need(sigaltstack(NULL, &stack) == 0);
	say("stack: flags %#x size %zu\n", stack.ss_flags, stack.ss_size);
}

/* ---- waiting for signals instead of handling them ---- */

static void case_wait(void)
{
	sigset_t set = set_of(SIGUSR1, SIGRTMIN);
	struct timespec brief = {0, 1000000};
	siginfo_t info;

	sigaddset(&set, SIGCHLD);
	handle(SIGUSR1, counting, 0);
	need(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	say("none: %s\n", result_name(sigtimedwait(&set, &info, &brief)));
	union sigval value = {.sival_int = 42};
	sigqueue(getpid(), SIGRTMIN, value);
	sigqueue(getpid(), SIGUSR1, value);
	say("first: %s\n", result_name(sigwaitinfo(&set, &info)));
	say("second: %s value %d\n", result_name(sigwaitinfo(&set, &info)),
	    info.si_value.sival_int);
	pid_t child = fork();
	if (child == 0)
		_exit(12);
	say("third: %s", result_name(sigwaitinfo(&set, &info)));
	say(" child %d code %d status %d\n", info.si_pid == child, info.si_code, info.si_status);
	say_end("child", child);

	int fd = signalfd(-1, &set, SFD_NONBLOCK);
	struct signalfd_siginfo from;
	say("signalfd: %s\n", result_name(read(fd, &from, sizeof(from))));
	send_self(SIGUSR1);
	say("signalfd: %s", result_name(read(fd, &from, sizeof(from))));
	say(" signal %u code %d mine %d\n", from.ssi_signo, from.ssi_code,
	    from.ssi_pid == (unsigned int)getpid());

	sigset_t none = set_of(0, 0);
	send_self(SIGUSR1);
	say("sigsuspend: %s", result_name(sigsuspend(&none)));
	say(" handled %d\n", count);
	say_my_mask("after");
	say("sigsuspend bad: %ld\n", raw(SYS_rt_sigsuspend, 16, 8));
}

const struct test_case cases[] = {
	{"ignored", case_ignored},
	{"sent_faults", case_sent_faults},
	{"sent_faults_end_waits", case_sent_faults_end_waits},
	{"in_the_handler", case_in_the_handler},
	{"_mask", case__mask},
	{"wait", case_wait},
	{NULL, NULL},
};
