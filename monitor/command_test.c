// SPDX-License-Identifier: MIT
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/*
 *	TOP/plain/tool		not executable
 *	TOP/first/tool, second/tool
 *	TOP/folder/tool/	a folder
 */
static char top[] = "/tmp/tally-command-XXXXXX";

static void make_file(const char *name, mode_t mode)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	*strrchr(path, '/') = '\0';
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%s", top, name);
	fd = open(path, O_CREAT | O_WRONLY, mode);
	assert_true(fd >= 0);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(top))
		return -1;
	make_file("plain/tool", 0644);
	make_file("first/tool", 0755);
	make_file("second/tool", 0755);
	make_file("folder/file", 0644);
	make_file("folder/tool/inside", 0755);
	return 0;
}

static int tear_down(void **state)
{
	char command[sizeof(top) + 16];

	(void)state;
	setenv("PATH", "/usr/bin:/bin", 1);
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

/* Sets PATH; each "@" in @list becomes the folder of the test. */
static void set_path(const char *list)
{
	char path[1024] = "";

	for (; *list; list++) {
		size_t length = strlen(path);

		snprintf(path + length, sizeof(path) - length, "%.*s", *list == '@' ? 64 : 1,
			 *list == '@' ? top : list);
	}
	setenv("PATH", path, 1);
}

static void expect(const char *list, const char *name, int code, const char *where)
{
	char path[PATH_MAX] = "", expected[PATH_MAX];

	set_path(list);
	assert_int_equal(monitor_find_command(name, path), code);
	if (code)
		return;
	snprintf(expected, sizeof(expected), "%s%s", *where == '/' ? top : "", where);
	assert_string_equal(path, expected);
}

static void test_the_first_folder_wins(void **state)
{
	(void)state;
	expect("@/first:@/second", "tool", 0, "/first/tool");
	expect("@/nowhere:@/second:@/first", "tool", 0, "/second/tool");
}

static void test_what_cannot_be_executed_is_passed_over(void **state)
{
	(void)state;
	expect("@/plain:@/second", "tool", 0, "/second/tool");
	expect("@/folder:@/second", "tool", 0, "/second/tool");
}

static void test_permission_is_told_if_nothing_else_is_there(void **state)
{
	(void)state;
	expect("@/plain:@/nowhere", "tool", -EACCES, NULL);
	expect("@/nowhere:@/folder", "tool", -EACCES, NULL);
	expect("@/nowhere", "tool", -ENOENT, NULL);
}

static void test_an_empty_folder_is_the_current_one(void **state)
{
	char before[PATH_MAX], path[PATH_MAX];

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	snprintf(path, sizeof(path), "%s/first", top);
	assert_int_equal(chdir(path), 0);
	expect("", "tool", 0, "tool");
	expect(":@/second", "tool", 0, "tool");
	expect("@/nowhere:", "tool", 0, "tool");
	expect("@/nowhere::@/second", "tool", 0, "tool");
	assert_int_equal(chdir(before), 0);
}

static void test_a_path_is_not_looked_for(void **state)
{
	char path[PATH_MAX], name[PATH_MAX];

	(void)state;
	set_path("@/first");
	snprintf(name, sizeof(name), "%s/second/tool", top);
	assert_int_equal(monitor_find_command(name, path), 0);
	assert_string_equal(path, name);
	assert_int_equal(monitor_find_command("./tool-that-is-not-there", path), -ENOENT);
	assert_int_equal(monitor_find_command("", path), -ENOENT);
}

static void test_a_folder_too_long_for_a_path(void **state)
{
	static char list[2 * PATH_MAX];
	char path[PATH_MAX];

	(void)state;
	memset(list, 'x', PATH_MAX);
	snprintf(list + PATH_MAX, PATH_MAX, ":%s/first", top);
	setenv("PATH", list, 1);
	assert_int_equal(monitor_find_command("tool", path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_folder_wins),
		cmocka_unit_test(test_what_cannot_be_executed_is_passed_over),
		cmocka_unit_test(test_permission_is_told_if_nothing_else_is_there),
		cmocka_unit_test(test_an_empty_folder_is_the_current_one),
		cmocka_unit_test(test_a_path_is_not_looked_for),
		cmocka_unit_test(test_a_folder_too_long_for_a_path),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
