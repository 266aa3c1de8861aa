// SPDX-License-Identifier: MIT
/*
 * Calls about an event that another thread closes at the same time, and whose place is another
 * event's the next moment: that one is not touched. Run by `tally run`.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 3000, NUMBER = 300 };

static int open_event(bool off)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = off,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_period = 1000,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Everything that changes an event, done to NUMBER, which is open or not. */
static void *meddle(void *stop)
{
	uint64_t period = 77, words[4];

	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
		ioctl(NUMBER, PERF_EVENT_IOC_ENABLE, 0);
		ioctl(NUMBER, PERF_EVENT_IOC_PERIOD, &period);
		ioctl(NUMBER, PERF_EVENT_IOC_REFRESH, 1);
		ioctl(NUMBER, PERF_EVENT_IOC_RESET, 0);
		if (read(NUMBER, words, sizeof(words)) < 0)
			continue;
	}
	return NULL;
}

/* Of an event that was opened disabled and that nobody but the meddler can have enabled. */
static void is_untouched(int fd)
{
	uint64_t words[3];

	assert_int_equal(read(fd, words, sizeof(words)), sizeof(words));
	assert_int_equal(words[1], 0);
}

static void what_is_closed_is_not_what_comes_next(void **state)
{
	bool stop = false;
	pthread_t thread;
	int first, next;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, meddle, &stop), 0);
	for (int i = 0; i < ROUNDS; i++) {
		first = open_event(true);
		assert_true(first >= 0);
		assert_int_equal(dup2(first, NUMBER), NUMBER);
		assert_int_equal(close(first), 0);
		assert_int_equal(close(NUMBER), 0);
		/* most likely in the slot that has just become free */
		next = open_event(true);
		assert_true(next >= 0 && next != NUMBER);
		is_untouched(next);
		assert_int_equal(close(next), 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The number is known as an event's until it is closed, and no longer. */
static void a_number_is_what_it_was_opened_as(void **state)
{
	uint64_t words[4];
	int ends[2];

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		const int fd = open_event(true);

		assert_true(fd >= 0);
		assert_int_equal(ioctl(fd, PERF_EVENT_IOC_RESET, 0), 0);
		assert_int_equal(close(fd), 0);
		assert_int_equal(pipe(ends), 0);
		assert_int_equal(ends[0], fd);
		assert_int_equal(ioctl(fd, PERF_EVENT_IOC_RESET, 0), -1);
		assert_int_equal(errno, ENOTTY);
		assert_int_equal(write(ends[1], "x", 1), 1);
		assert_int_equal(read(fd, words, sizeof(words)), 1);
		assert_int_equal(close(ends[0]), 0);
		assert_int_equal(close(ends[1]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_closed_is_not_what_comes_next),
		cmocka_unit_test(a_number_is_what_it_was_opened_as),
	};

	return cmocka_run_group_tests_name("run: events that are closed", tests, NULL, NULL);
}
