// SPDX-License-Identifier: MIT
#include "runtime/say.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_each_conversion(void **state)
{
	char text[128], expected[128];
	size_t n = format(text, sizeof(text), "%s|%d|%d|%u|%x|%c|%%", "word", INT64_MIN,
			  INT64_C(-7), UINT64_MAX, UINT64_C(0xbeef), 'c');

	(void)state;
	snprintf(expected, sizeof(expected), "word|%ld|-7|%lu|beef|c|%%", INT64_MIN, UINT64_MAX);
	assert_string_equal(text, expected);
	assert_int_equal(n, strlen(expected));
}

static void test_what_does_not_fit_is_cut(void **state)
{
	char text[8];

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(format(text, 5, "%s%u", "abc", UINT64_C(1234)), 4);
	assert_string_equal(text, "abc1");
	assert_int_equal(text[5], 'x');
	assert_int_equal(format(text, 1, "abc"), 0);
	assert_string_equal(text, "");
}

static void test_errors_have_words_or_numbers(void **state)
{
	(void)state;
	assert_string_equal(error_text(-ENOENT), "no such file or directory");
	assert_string_equal(error_text(EACCES), error_text(-EACCES));
	assert_string_equal(error_text(-4000), "error 4000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_conversion),
		cmocka_unit_test(test_what_does_not_fit_is_cut),
		cmocka_unit_test(test_errors_have_words_or_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
