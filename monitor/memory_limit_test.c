// SPDX-License-Identifier: MIT
#include "monitor/memory_limit.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[] = "/tmp/tally-groups.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int make(void **state)
{
	static const char *const folders[] = {"a", "a/b", "memory", "memory/c"};

	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (mkdir(path_of(folders[i]), 0700))
			return -1;
	put("a/memory.max", "3000\n");
	put("a/b/memory.max", "max\n");
	put("memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory/c/memory.limit_in_bytes", "5000\n");
	return 0;
}

static int clean(void **state)
{
	static const char *const names[] = {"groups",	"a/b/memory.max",
					    "a/b",	"a/memory.max",
					    "a",	"memory/c/memory.limit_in_bytes",
					    "memory/c", "memory/memory.limit_in_bytes",
					    "memory",	""};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		remove(path_of(names[i]));
	return 0;
}

static uint64_t limit_of(const char *groups)
{
	put("groups", groups);
	return memory_limit_of_groups(path_of("groups"), root);
}

static void test_group_around_limits_too(void **state)
{
	(void)state;
	assert_int_equal(limit_of("0::/a/b\n"), 3000);
	assert_int_equal(limit_of("0::/\n"), UINT64_MAX);
}

static void test_version_1(void **state)
{
	(void)state;
	assert_int_equal(limit_of("5:cpu,cpuacct:/a\n4:memory:/c\n0::/\n"), 5000);
	/* As a container sees it, which has but the root. */
	assert_int_equal(limit_of("4:memory:/docker/0123\n"), 9223372036854771712UL);
}

static void test_least_of_both(void **state)
{
	(void)state;
	assert_int_equal(limit_of("4:memory:/c\n0::/a\n"), 3000);
}

static void test_no_groups(void **state)
{
	(void)state;
	assert_int_equal(memory_limit_of_groups("/nonexistent", root), UINT64_MAX);
	assert_int_equal(limit_of(""), UINT64_MAX);
	assert_int_equal(limit_of("4:memory\nx\n"), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group_around_limits_too),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_least_of_both),
		cmocka_unit_test(test_no_groups),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
