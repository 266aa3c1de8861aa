// SPDX-License-Identifier: MIT
/* Events where something that they need has run out: an error, and all goes on. Run by `tally run`.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/run/in_child.h"

enum { PAGE = 4096, NOBODY = 65534 };

#define MIB (1UL << 20)

static int open_instructions(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void *map_ring(int fd, size_t data)
{
	return mmap(NULL, data + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static int counts(int fd)
{
	uint64_t before, after;

	return read(fd, &before, sizeof(before)) == sizeof(before) &&
	       read(fd, &after, sizeof(after)) == sizeof(after) && after > before;
}

static int limit(__rlimit_resource_t resource, rlim_t value)
{
	return setrlimit(resource, &(struct rlimit){value, value});
}

static int use_with_little_address_space(void)
{
	void *memory;
	int fd;

	if (limit(RLIMIT_AS, 200 * MIB))
		return 1;
	fd = open_instructions();
	if (fd < 0 || !counts(fd))
		return 2;
	memory = malloc(100 * MIB);
	free(memory);
	return memory && !malloc(1500 * MIB) ? 0 : 3;
}

/* Of a process that has not looked at the arena yet. */
static void what_events_take_is_not_the_programs(void **state)
{
	(void)state;
	assert_int_equal(in_child(use_with_little_address_space), 0);
}

static int use_without_files(void)
{
	int fd;
	char *ring;

	if (limit(RLIMIT_FSIZE, 0))
		return 1;
	fd = open_instructions();
	ring = map_ring(fd, 64 * PAGE);
	if (ring == MAP_FAILED)
		return 2;
	ring[PAGE] = 1;
	if (!counts(fd) || munmap(ring, 65 * PAGE) || close(fd))
		return 3;
	return 0;
}

static void events_are_no_files_that_grow(void **state)
{
	(void)state;
	assert_int_equal(in_child(use_without_files), 0);
}

static int lock_too_much(void)
{
	void *small, *large;
	int fd[2];

	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		return 77;
	if (limit(RLIMIT_MEMLOCK, 0))
		return 1;
	for (int i = 0; i < 2; i++)
		fd[i] = open_instructions();
	small = map_ring(fd[0], 8 * PAGE);
	large = map_ring(fd[1], 64 * MIB);
	if (small == MAP_FAILED || large != MAP_FAILED || errno != EPERM)
		return 2;
	return counts(fd[1]) && map_ring(fd[1], 8 * PAGE) != MAP_FAILED ? 0 : 3;
}

static void no_more_is_locked_than_may_be(void **state)
{
	int result = in_child(lock_too_much);

	(void)state;
	if (result == 77) {
		print_message("# skipped: cannot become a user without rights\n");
		skip();
	}
	assert_int_equal(result, 0);
}

/* Rings of the whole run lie in 1 GiB. */
static void memory_for_rings_runs_out_and_comes_back(void **state)
{
	enum { RINGS = 16 };
	const size_t size = 128 * MIB;
	void *rings[RINGS] = {NULL};
	int fds[RINGS], nr = 0;

	(void)state;
	/* Root in a container has no right to lock more than others. */
	if (geteuid() || prctl(PR_CAPBSET_READ, CAP_IPC_LOCK) != 1) {
		print_message("# skipped: needs CAP_IPC_LOCK to lock so much\n");
		skip();
	}
	for (; nr < RINGS; nr++) {
		fds[nr] = open_instructions();
		assert_true(fds[nr] >= 0);
		rings[nr] = map_ring(fds[nr], size);
		if (rings[nr] == MAP_FAILED)
			break;
	}
	assert_in_range(nr, 1, RINGS - 1);
	assert_int_equal(errno, ENOMEM);
	assert_true(counts(fds[nr]));
	assert_int_equal(munmap(rings[0], size + PAGE), 0);
	rings[0] = map_ring(fds[nr], size);
	assert_ptr_not_equal(rings[0], MAP_FAILED);
	for (int i = 0; i < nr; i++)
		assert_int_equal(munmap(rings[i], size + PAGE), 0);
	for (int i = 0; i <= nr; i++)
		assert_int_equal(close(fds[i]), 0);
}

/* Waits, with copies of all events that are inherited, until somebody closes the pipe. */
static void *wait_for_end(void *pipe)
{
	char byte;

	return read(*(int *)pipe, &byte, 1) ? pipe : NULL;
}

static int open_inherited(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* There is room for 128 Ki events in the whole run, copies among them. */
static void the_table_of_events_is_full_and_empties_again(void **state)
{
	enum { EVENTS = 800, THREADS = 200 };
	static pthread_t threads[THREADS];
	static int fds[EVENTS];
	int ends[2], started = 0, fd, counted = open_instructions();
	struct rlimit files;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < EVENTS + 64) {
		print_message("too few open files");
		skip();
	}
	assert_int_equal(pipe(ends), 0);
	for (int i = 0; i < EVENTS; i++) {
		fds[i] = open_inherited();
		assert_true(fds[i] >= 0);
	}
	while (started < THREADS && (fd = open_inherited()) >= 0) {
		assert_int_equal(close(fd), 0);
		assert_int_equal(pthread_create(&threads[started++], NULL, wait_for_end, &ends[0]),
				 0);
	}
	assert_in_range(started, 1, THREADS - 1);
	assert_int_equal(errno, ENOMEM);
	/* What there is no room for is not measured, and goes on. */
	assert_int_equal(pthread_create(&threads[started++], NULL, wait_for_end, &ends[0]), 0);
	assert_int_equal(in_child(open_instructions), 255);
	assert_true(counts(counted));
	assert_int_equal(close(ends[1]), 0);
	for (int i = 0; i < started; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	fd = open_inherited();
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	for (int i = 0; i < EVENTS; i++)
		assert_int_equal(close(fds[i]), 0);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(counted), 0);
}

int main(void)
{
	/* The first before this process has any. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_events_take_is_not_the_programs),
		cmocka_unit_test(events_are_no_files_that_grow),
		cmocka_unit_test(no_more_is_locked_than_may_be),
		cmocka_unit_test(memory_for_rings_runs_out_and_comes_back),
		cmocka_unit_test(the_table_of_events_is_full_and_empties_again),
	};

	return cmocka_run_group_tests_name("run: events and limits", tests, NULL, NULL);
}
