// SPDX-License-Identifier: MIT
/*
 * Who is measured by somebody else hears of it wherever his thread is just then. This one makes no
 * system call, by which it would hear of it in any case, and meets code that it has not met before
 * all the time: so it is as often in the runtime as in code.
 */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { FUNCTIONS = 8 << 20, TIMES = 200, PATIENCE_S = 60, RET = 0xc3 };

static void *new_functions(void)
{
	void *code =
		mmap(NULL, FUNCTIONS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(code, MAP_FAILED);
	memset(code, RET, FUNCTIONS);
	assert_int_equal(mprotect(code, FUNCTIONS, PROT_READ | PROT_EXEC), 0);
	return code;
}

static pid_t call_each(const char *code)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		for (int i = 0; i < FUNCTIONS; i++)
			((void (*)(void))(uintptr_t)(code + i))();
}

static int open_instructions(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);

	assert_true(fd >= 0);
	return fd;
}

static uint64_t count_of(int fd)
{
	uint64_t count = 0;

	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

/* Whether it counts in the end, however long others have the processor. */
static int counts(int fd)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	const time_t end = time(NULL) + PATIENCE_S;

	while (!count_of(fd)) {
		if (time(NULL) > end)
			return 0;
		nanosleep(&moment, NULL);
	}
	return 1;
}

static void it_counts_from_wherever_it_was(void **state)
{
	pid_t pid = call_each(new_functions());
	int counted = 1;

	(void)state;
	assert_true(pid > 0);
	for (int i = 0; i < TIMES && counted; i++) {
		int fd = open_instructions(pid);

		counted = counts(fd);
		close(fd);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(counted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_counts_from_wherever_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
