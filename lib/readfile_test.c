// SPDX-License-Identifier: MIT
#include "lib/readfile.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/tally-readfile-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_files(void **state)
{
	char buf[8];

	(void)state;
	write_file("");
	assert_int_equal(tly_read_file(path, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	write_file("ab \n\n");
	assert_int_equal(tly_read_file(path, buf, sizeof(buf)), 2);
	assert_string_equal(buf, "ab");
	write_file("1234567");
	assert_int_equal(tly_read_file(path, buf, sizeof(buf)), 7);
	assert_string_equal(buf, "1234567");
	write_file("12345678");
	assert_int_equal(tly_read_file(path, buf, sizeof(buf)), -EFBIG);
	assert_int_equal(tly_read_file("/nonexistent", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(tly_read_file("/", buf, sizeof(buf)), -EISDIR);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t value;
	} rows[] = {
		{"0\n", 0, 0},
		{"372", 0, 372},
		{"0x1F\n", 0, 0x1f},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"12a", -EINVAL, 0},
		{"1 2", -EINVAL, 0},
		{"99999999999999999999999999999999999999", -EFBIG, 0},
	};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_file(rows[i].text);
		assert_int_equal(tly_read_number(path, &value), rows[i].ret);
		if (!rows[i].ret)
			assert_int_equal(value, rows[i].value);
	}
}

static void test_settings(void **state)
{
	static const struct {
		const char *text;
		long value;
	} rows[] = {
		{"-1\n", -1},
		{"2", 2},
		{"0x10", 16},
		{"", 7},
		{"x", 7},
		{"1 2", 7},
		{"99999999999999999999", 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_file(rows[i].text);
		assert_int_equal(tly_read_setting(path, 7), rows[i].value);
	}
	assert_int_equal(tly_read_setting("/nonexistent", 7), 7);
}

static void test_folders(void **state)
{
	char folder[PATH_MAX];
	char **names;

	(void)state;
	snprintf(folder, sizeof(folder),
		 "%s/lib/event/testdata/intel/sys/bus/event_source/devices/uprobe/format",
		 getenv("TALLY_SOURCE"));
	assert_int_equal(tly_read_folder(folder, &names), 2);
	assert_string_equal(names[0], "ref_ctr_offset");
	assert_string_equal(names[1], "retprobe");
	assert_null(names[2]);
	free(names);
	assert_int_equal(tly_read_folder("/nonexistent", &names), -ENOENT);
	assert_int_equal(tly_read_folder(path, &names), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_folders),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
