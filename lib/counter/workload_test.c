// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/workload.h>

static int run(char *const argv[], int out_fd, struct rusage *usage)
{
	struct tally_workload *w;
	struct tally_error err;
	int status = -1;

	assert_int_equal(tally_workload_prepare(argv, out_fd, &w, &err), 0);
	assert_int_equal(tally_workload_start(w, &err), 0);
	assert_int_equal(tally_workload_wait(w, true, &status, usage), 1);
	tally_workload_free(w);
	return status;
}

static void test_status_and_usage(void **state)
{
	char *exits[] = {"sh", "-c", "exit 37", NULL};
	char *dies[] = {"sh", "-c", "kill -TERM $$", NULL};
	struct rusage usage;
	int status;

	(void)state;
	memset(&usage, 0xff, sizeof(usage));
	status = run(exits, -1, &usage);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 37);
	assert_true(usage.ru_maxrss > 0);
	assert_true(usage.ru_minflt > 0);
	status = run(dies, -1, NULL);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void test_output_goes_to_out_fd(void **state)
{
	char *argv[] = {"echo", "hello", NULL};
	char text[16] = "";
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(run(argv, fds[1], NULL), 0);
	assert_int_equal(read(fds[0], text, sizeof(text)), 6);
	assert_string_equal(text, "hello\n");
	close(fds[0]);
	close(fds[1]);
}

/* Nothing of the command may happen before the start, and the pid is the command's. */
static void test_held_until_start(void **state)
{
	char *argv[] = {"sh", "-c", "echo $$", NULL};
	struct tally_workload *w;
	struct tally_error err;
	char text[32] = "", expected[32];
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	assert_int_equal(tally_workload_prepare(argv, fds[1], &w, &err), 0);
	assert_int_equal(tally_workload_wait(w, false, NULL, NULL), -EINVAL);
	assert_int_equal(read(fds[0], text, sizeof(text)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(kill(tally_workload_pid(w), 0), 0);
	assert_int_equal(tally_workload_start(w, &err), 0);
	assert_int_equal(tally_workload_start(w, &err), -EINVAL);
	assert_int_equal(tally_workload_wait(w, true, NULL, NULL), 1);
	assert_int_equal(tally_workload_wait(w, true, NULL, NULL), 1);
	assert_true(read(fds[0], text, sizeof(text)) > 0);
	snprintf(expected, sizeof(expected), "%d\n", tally_workload_pid(w));
	assert_string_equal(text, expected);
	tally_workload_free(w);
	close(fds[0]);
	close(fds[1]);
}

static void test_exec_failures(void **state)
{
	static const struct {
		const char *name;
		int code;
		const char *remedy;
	} rows[] = {
		{"tally-no-such-command", -ENOENT, "PATH"},
		{"/nonexistent/tally", -ENOENT, "interpreter"},
		{"/etc/passwd", -EACCES, "chmod +x '/etc/passwd'"},
		{"/", -EACCES, ""},
	};
	struct tally_workload *w;
	struct tally_error err;
	int status;

	(void)state;
	setenv("PATH", "/usr/bin:/bin", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *argv[] = {(char *)rows[i].name, NULL};

		memset(&err, 0, sizeof(err));
		assert_int_equal(tally_workload_prepare(argv, -1, &w, &err), 0);
		assert_int_equal(tally_workload_start(w, &err), rows[i].code);
		assert_int_equal(err.code, rows[i].code);
		assert_non_null(strstr(err.what, rows[i].name));
		assert_non_null(strstr(err.remedy, rows[i].remedy));
		/* It has been reaped: no zombie is left behind. */
		assert_int_equal(waitpid(tally_workload_pid(w), &status, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
		tally_workload_free(w);
	}
}

static void test_empty_argv(void **state)
{
	char *argv[] = {NULL};
	struct tally_workload *w;
	struct tally_error err;

	(void)state;
	assert_int_equal(tally_workload_prepare(argv, -1, &w, &err), -EINVAL);
	assert_null(w);
	assert_true(err.remedy[0] != '\0');
}

static void test_free_ends_the_held_child(void **state)
{
	char *argv[] = {"true", NULL};
	struct tally_workload *w;
	pid_t pid;

	(void)state;
	assert_int_equal(tally_workload_prepare(argv, -1, &w, NULL), 0);
	pid = tally_workload_pid(w);
	tally_workload_free(w);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	tally_workload_free(NULL);
}

static void test_killed_while_held(void **state)
{
	char *argv[] = {"true", NULL};
	struct tally_workload *w;
	struct tally_error err;
	siginfo_t info;

	(void)state;
	assert_int_equal(tally_workload_prepare(argv, -1, &w, &err), 0);
	assert_int_equal(kill(tally_workload_pid(w), SIGKILL), 0);
	assert_int_equal(waitid(P_PID, tally_workload_pid(w), &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(tally_workload_start(w, &err), -ECHILD);
	assert_non_null(strstr(err.what, "killed"));
	tally_workload_free(w);
}

static void on_signal(int sig)
{
	(void)sig;
}

/*
 * The mask and the handlers of the child as the kernel sees them: SIGUSR1 (10) is handled here,
 * SIGUSR2 (12) ignored, SIGTERM (15) blocked.
 */
static void test_signals_of_the_child(void **state)
{
	char *argv[] = {"grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status", NULL};
	unsigned long long blocked, ignored, caught;
	char text[256] = "";
	sigset_t set, before;
	int fds[2];

	(void)state;
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(run(argv, fds[1], NULL), 0);
	sigprocmask(SIG_SETMASK, NULL, &set);
	assert_int_equal(sigismember(&set, SIGTERM), 1);
	assert_int_equal(sigismember(&set, SIGINT), 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_int_equal(
		sscanf(text, "SigBlk: %llx SigIgn: %llx SigCgt: %llx", &blocked, &ignored, &caught),
		3);
	assert_int_equal(blocked, 0);
	assert_true(ignored & 1ull << (SIGUSR2 - 1));
	assert_false(ignored & 1ull << (SIGUSR1 - 1));
	assert_false(caught & 1ull << (SIGUSR1 - 1));
	close(fds[0]);
	close(fds[1]);
}

/* The pair of descriptors must survive standard descriptors that are closed. */
static void test_with_standard_descriptors_closed(void **state)
{
	char *argv[] = {"true", NULL};
	int saved[2] = {fcntl(0, F_DUPFD_CLOEXEC, 10), fcntl(1, F_DUPFD_CLOEXEC, 10)};
	struct tally_workload *w;
	int prepared, started = -1, null;

	(void)state;
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(null > 2);
	close(0);
	close(1);
	prepared = tally_workload_prepare(argv, null, &w, NULL);
	if (prepared == 0)
		started = tally_workload_start(w, NULL);
	dup2(saved[0], 0);
	dup2(saved[1], 1);
	assert_int_equal(prepared, 0);
	assert_int_equal(started, 0);
	assert_int_equal(tally_workload_wait(w, true, NULL, NULL), 1);
	tally_workload_free(w);
	close(saved[0]);
	close(saved[1]);
	close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status_and_usage),
		cmocka_unit_test(test_output_goes_to_out_fd),
		cmocka_unit_test(test_held_until_start),
		cmocka_unit_test(test_exec_failures),
		cmocka_unit_test(test_empty_argv),
		cmocka_unit_test(test_free_ends_the_held_child),
		cmocka_unit_test(test_killed_while_held),
		cmocka_unit_test(test_signals_of_the_child),
		cmocka_unit_test(test_with_standard_descriptors_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
