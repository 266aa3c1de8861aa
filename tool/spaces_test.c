// SPDX-License-Identifier: MIT
#include "tool/spaces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void feed_exec(struct spaces *spaces, uint32_t pid, uint64_t time)
{
	struct tally_record record = {.type = PERF_RECORD_COMM, .misc = PERF_RECORD_MISC_COMM_EXEC};

	record.comm.pid = record.comm.tid = pid;
	record.comm.comm = "x";
	spaces_feed(spaces, &record, time);
}

static void feed_fork(struct spaces *spaces, uint32_t parent, uint32_t pid, uint64_t time)
{
	struct tally_record record = {.type = PERF_RECORD_FORK};

	record.task.pid = pid;
	record.task.ppid = parent;
	spaces_feed(spaces, &record, time);
}

static void feed_map(struct spaces *spaces, uint64_t start, uint64_t length, const char *file,
		     uint64_t time)
{
	struct tally_record record = {.type = PERF_RECORD_MMAP2};

	record.mmap =
		(struct tally_mmap){.pid = 1, .start = start, .len = length, .filename = file};
	spaces_feed(spaces, &record, time);
}

static void test_distinct_processes(void **state)
{
	struct spaces *spaces = spaces_new();

	(void)state;
	spaces_seal(spaces);
	assert_int_not_equal(spaces_at(spaces, 1, 5), spaces_at(spaces, 2, 5));
	assert_int_equal(spaces_at(spaces, 1, 0), spaces_at(spaces, 1, UINT64_MAX));
	assert_int_not_equal(spaces_at(spaces, 1, 0), 0);
	spaces_free(spaces);
}

static void test_exec_begins_a_space(void **state)
{
	struct spaces *spaces = spaces_new();
	uint32_t before, after, last, other;

	(void)state;
	feed_exec(spaces, 1, 20);
	feed_exec(spaces, 1, 10);
	feed_exec(spaces, 2, 15);
	spaces_seal(spaces);
	before = spaces_at(spaces, 1, 9);
	after = spaces_at(spaces, 1, 10);
	last = spaces_at(spaces, 1, 20);
	other = spaces_at(spaces, 2, 15);
	assert_int_not_equal(before, after);
	assert_int_not_equal(after, last);
	assert_int_equal(after, spaces_at(spaces, 1, 19));
	assert_int_equal(last, spaces_at(spaces, 1, 1000));
	assert_int_not_equal(other, before);
	assert_int_not_equal(other, after);
	assert_int_not_equal(other, last);
	spaces_free(spaces);
}

static void test_fork_but_no_thread(void **state)
{
	struct spaces *spaces = spaces_new();

	(void)state;
	feed_fork(spaces, 1, 1, 10);
	feed_fork(spaces, 1, 2, 10);
	spaces_seal(spaces);
	assert_int_equal(spaces_at(spaces, 1, 9), spaces_at(spaces, 1, 11));
	assert_int_not_equal(spaces_at(spaces, 2, 9), spaces_at(spaces, 2, 11));
	spaces_free(spaces);
}

static void test_mappings(void **state)
{
	struct spaces *spaces = spaces_new();

	(void)state;
	feed_map(spaces, 0x1000, 0x1000, "a", 10);
	feed_map(spaces, 0x2000, 0x1000, "b", 20); /* next to it */
	feed_map(spaces, 0x1000, 0x1000, "a", 30); /* the same again */
	feed_map(spaces, 0x9000, 0x1000, "c", 40);
	spaces_seal(spaces);
	assert_int_equal(spaces_at(spaces, 1, 0), spaces_at(spaces, 1, 100));
	spaces_free(spaces);
}

static void test_mapped_over(void **state)
{
	struct spaces *spaces = spaces_new();

	(void)state;
	feed_map(spaces, 0x1000, 0x3000, "a", 10);
	feed_map(spaces, 0x3fff, 0x1000, "b", 20);
	spaces_seal(spaces);
	assert_int_equal(spaces_at(spaces, 1, 10), spaces_at(spaces, 1, 19));
	assert_int_not_equal(spaces_at(spaces, 1, 19), spaces_at(spaces, 1, 20));
	spaces_free(spaces);
}

static void test_lengths_that_overflow(void **state)
{
	struct spaces *spaces = spaces_new();

	(void)state;
	feed_map(spaces, 0xffffffffffff0000, 0xffffffffffffffff, "a", 10);
	feed_map(spaces, 0xffffffffffffff00, 0x10, "b", 20);
	spaces_seal(spaces);
	assert_int_not_equal(spaces_at(spaces, 1, 19), spaces_at(spaces, 1, 20));
	spaces_free(spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distinct_processes),
		cmocka_unit_test(test_exec_begins_a_space),
		cmocka_unit_test(test_fork_but_no_thread),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_mapped_over),
		cmocka_unit_test(test_lengths_that_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
