// SPDX-License-Identifier: MIT
/* Who waits for children: before the handlers that the same end calls, and with what the page
 * knows. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

static volatile sig_atomic_t called, taken;

static void reap_all(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	called++;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		taken++;
}

static void read_of_parent(const char *name, char text[], size_t size)
{
	char path[64];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)getppid(), name);
	fd = open(path, O_RDONLY);
	need(fd >= 0);
	length = read(fd, text, size - 1);
	need(length >= 0);
	text[length] = 0;
	close(fd);
}

static bool parent_sleeps(void)
{
	char stat[512];

	read_of_parent("stat", stat, sizeof(stat));
	return strstr(stat, ") S ");
}

/* In a call that waits, as far as the kernel says in which one it is. */
static bool parent_waits(void)
{
	char where[64];

	if (!parent_sleeps())
		return false;
	read_of_parent("wchan", where, sizeof(where));
	return strstr(where, "do_wait") || (!strcmp(where, "0") && parent_sleeps());
}

static pid_t begin(int status)
{
	pid_t child = fork();

	if (child == 0) {
		/* However long that takes to get there. */
		while (!parent_waits())
			usleep(1000);
		usleep(5000);
		if (status)
			_exit(status);
		kill(getpid(), SIGKILL);
	}
	return child;
}

/* The call that waits has the child, and then the handler finds none. */
static void wait_with_handler(int flags)
{
	int status, by_wait = 0, by_waitid = 0;
	siginfo_t info;

	called = taken = 0;
	handle(SIGCHLD, reap_all, flags);
	for (int i = 0; i < 10; i++) {
		pid_t child = begin(i % 2);

		by_wait += waitpid(child, &status, 0) == child;
		begin(i % 2);
		memset(&info, 0, sizeof(info));
		by_waitid += waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_pid > 0;
	}
	say("waited %d %d, called %d, taken %d\n", by_wait, by_waitid, called, taken);
}

static void case_before_handlers(void)
{
	wait_with_handler(0);
	wait_with_handler(SA_RESTART);
}

static void say_result(const char *what, int result)
{
	say("%s: %d %s\n", what, result, result < 0 ? strerror(errno) : "");
}

/* What only waitid(2) knows is wrong at once, though the child lives. */
static void case_options(void)
{
	static const int options[] = {WNOWAIT, WEXITED, 0x40, WNOHANG | WNOWAIT};
	pid_t child = fork();
	siginfo_t info;
	int status;

	if (child == 0)
		for (;;)
			pause();
	for (unsigned int i = 0; i < sizeof(options) / sizeof(*options); i++)
		say_result("wait4", wait4(child, &status, options[i], NULL));
	say_result("waitid", waitid(P_PID, child, &info, WNOHANG));
	memset(&info, 0xff, sizeof(info));
	say("nobody: %d", waitid(P_PID, child, &info, WEXITED | WNOHANG));
	say(" %d %d %d %d\n", info.si_signo, info.si_code, info.si_pid, info.si_status);
	kill(child, SIGTERM);
	say("WNOWAIT: %d", waitid(P_PID, child, &info, WEXITED | WNOWAIT));
	say(" %d %d %d\n", info.si_signo, info.si_code, info.si_status);
	say_result("bad status", wait4(child, (int *)8, 0, NULL));
	say_result("gone", wait4(child, &status, 0, NULL));
}

const struct test_case cases[] = {
	{"before_handlers", case_before_handlers},
	{"options", case_options},
	{NULL, NULL},
};
