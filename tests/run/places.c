// SPDX-License-Identifier: MIT
/*
 * Where a program begins, and its libraries lie, does not depend on what is measured, nor on what
 * has run before. Run by `tally run`.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct places {
	void *library, *argument;
};

/* Those of an image of this program that begins with @nr of @events open on it. */
static struct places places_of_next(const uint64_t *events, unsigned int nr)
{
	int go[2], told[2], fds[4], status;
	struct places at = {NULL, NULL};
	pid_t pid;

	assert_return_code(pipe(go) | pipe(told), errno);
	pid = fork();
	if (!pid) {
		personality(ADDR_NO_RANDOMIZE);
		dup2(told[1], STDOUT_FILENO);
		if (read(go[0], &status, 1) == 1)
			execl("/proc/self/exe", "places", "places", NULL);
		_exit(127);
	}
	assert_return_code(pid, errno);
	for (unsigned int i = 0; i < nr; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_HARDWARE,
			.size = sizeof(attr),
			.config = events[i],
			.sample_period = 1000000,
			.exclude_kernel = 1,
		};

		fds[i] = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(read(told[0], &at, sizeof(at)), sizeof(at));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (unsigned int i = 0; i < nr; i++)
		close(fds[i]);
	close(go[0]), close(go[1]), close(told[0]), close(told[1]);
	return at;
}

static int tell_places(char **argv)
{
	const struct places at = {(void *)getenv, argv[0]};

	return write(STDOUT_FILENO, &at, sizeof(at)) != sizeof(at);
}

/* Branches are predicted by where they lie, and lines found: it is the same whatever is
 * measured. */
static void places(void **state)
{
	static const uint64_t events[] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
					  PERF_COUNT_HW_BRANCH_INSTRUCTIONS};
	struct places at;

	(void)state;
	at = places_of_next(NULL, 0);
	for (unsigned int round = 1; round <= 8; round++) {
		const struct places now = places_of_next(events, round % 4);

		assert_ptr_equal(now.library, at.library);
		assert_ptr_equal(now.argument, at.argument);
	}
}

/* Programs want addresses below 2 GiB for themselves; of all files only those that may be code
 * lie there. */
static void data_is_elsewhere(void **state)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *data, *code;

	(void)state;
	assert_return_code(fd, errno);
	data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(data != MAP_FAILED && code != MAP_FAILED);
	assert_true((uintptr_t)data >= 1UL << 32);
	assert_true((uintptr_t)code < 1UL << 31);
	munmap(data, 4096);
	munmap(code, 4096);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "places"))
		return tell_places(argv);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(data_is_elsewhere),
	};

	return cmocka_run_group_tests_name("run/places", tests, NULL, NULL);
}
