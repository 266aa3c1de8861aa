// SPDX-License-Identifier: MIT
/*
 * A process that is stopped while it holds a lock of the tree: the others go on, and it stays
 * stopped, and nobody is told of anything but that.
 *
 *	halted TALLY		the tests; each starts
 *	halted TALLY NAME	what is run, by `TALLY run`: so its parent is the monitor
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/run/alone.h"

/* It is stopped with a lock in hand about each third time. */
enum { ROUNDS = 200, FEW_ROUNDS = 40 };

/* ---- what is run ---- */

/* Copies of it are looked for with the tree's lock. */
static int open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void use_events(void)
{
	int fd = open_event();
	uint64_t count;

	if (fd < 0 || read(fd, &count, sizeof(count)) != sizeof(count))
		_exit(1);
	close(fd);
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
	handled = number;
}

/* Says once that it is there, and then when it has handled a signal. */
static _Noreturn void hold_locks(int to)
{
	const int fd = open_event();

	signal(SIGUSR1, handle);
	for (handled = true;;) {
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		if (handled) {
			handled = false;
			if (write(to, "", 1) != 1)
				_exit(1);
		}
	}
}

static void await_word(int from)
{
	char byte;

	if (read(from, &byte, 1) != 1)
		_exit(1);
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	const char *end;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	close(fd);
	end = strrchr(text, ')');
	return end ? end[2] : 0;
}

/* Soon: who is let go on for a moment is stopped again by himself. */
static bool is_stopped(pid_t pid)
{
	for (int i = 0; i < 10000 && state_of(pid) != 'T'; i++)
		usleep(100);
	return state_of(pid) == 'T';
}

/* A child that does so; *@from tells of it. */
static pid_t start_child(int *from)
{
	int ends[2];
	pid_t child;

	if (pipe(ends))
		_exit(1);
	child = fork();
	if (!child)
		hold_locks(ends[1]);
	*from = ends[0];
	await_word(ends[0]);
	return child;
}

/* Some process of the run. */
static void another(void)
{
	int stopped = 0, news = 0, status, from;
	const pid_t child = start_child(&from);

	for (int i = 0; i < ROUNDS; i++) {
		kill(child, SIGSTOP);
		if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status))
			break;
		use_events();
		news += waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED) != 0;
		stopped += is_stopped(child);
		kill(child, SIGCONT);
		usleep(i % 10 * 10);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	printf("stopped: %d, news: %d, ended: %d\n", stopped, news, WTERMSIG(status));
}

/* The command itself, with which the monitor stops: who closes an event waits for that for 0.1 s.
 */
static void command(void)
{
	const pid_t child = getpid(), monitor = getppid();
	int stopped = 0, ends[2];

	if (pipe(ends))
		return;
	if (fork())
		hold_locks(ends[1]);
	await_word(ends[0]);
	for (int i = 0; i < FEW_ROUNDS; i++) {
		/* What the monitor has passed on may undo it once. */
		while (state_of(child) != 'T' || state_of(monitor) != 'T') {
			kill(child, SIGSTOP);
			usleep(100);
		}
		use_events();
		stopped += is_stopped(child);
		kill(monitor, SIGCONT);
		while (state_of(child) == 'T' || state_of(monitor) == 'T')
			usleep(100);
	}
	printf("stopped: %d\n", stopped);
	kill(child, SIGKILL);
}

/* A signal that it handles is there when it goes on. */
static void signalled(void)
{
	int stopped = 0, status, from;
	const pid_t child = start_child(&from);

	for (int i = 0; i < ROUNDS; i++) {
		kill(child, SIGSTOP);
		if (waitpid(child, &status, WUNTRACED) != child)
			break;
		kill(child, SIGUSR1);
		use_events();
		stopped += is_stopped(child);
		kill(child, SIGCONT);
		await_word(from);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	printf("stopped: %d, ended: %d\n", stopped, WTERMSIG(status));
}

/* ---- the tests ---- */

static void a_process_that_is_stopped_holds_nobody_up(void **state)
{
	char said[4096];
	int status;

	(void)state;
	assert_true(alone_run("another", said, sizeof(said), &status) >= 0);
	assert_string_equal(said, "stopped: 200, news: 0, ended: 9\n");
	assert_int_equal(status, 0);
}

static void a_command_that_is_stopped_holds_nobody_up(void **state)
{
	char said[4096];
	int status;

	(void)state;
	assert_true(alone_run("command", said, sizeof(said), &status) >= 0);
	assert_string_equal(said, "stopped: 40\n");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void signals_to_who_is_stopped_are_not_lost(void **state)
{
	char said[4096];
	int status;

	(void)state;
	assert_true(alone_run("signalled", said, sizeof(said), &status) >= 0);
	assert_string_equal(said, "stopped: 200, ended: 9\n");
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
	} programs[] = {{"another", another}, {"command", command}, {"signalled", signalled}};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_is_stopped_holds_nobody_up),
		cmocka_unit_test(a_command_that_is_stopped_holds_nobody_up),
		cmocka_unit_test(signals_to_who_is_stopped_are_not_lost),
	};

	if (argc < 2)
		return 2;
	alone_self = argv[0];
	alone_tally = argv[1];
	alarm(100);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc > 2 && i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(argv[2], programs[i].name)) {
			programs[i].run();
			return 0;
		}
	return cmocka_run_group_tests_name("run: processes that are stopped", tests, NULL, NULL);
}
