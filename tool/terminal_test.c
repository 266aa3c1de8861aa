// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tool/terminal.h"

static void assert_wrapped(const char *text, int indent, int columns, const char *expected)
{
	char *written = NULL;
	size_t size;
	FILE *out = open_memstream(&written, &size);

	assert_non_null(out);
	tool_wrap(out, text, indent, columns);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(written, expected);
	free(written);
}

static void test_wrap(void **state)
{
	(void)state;
	assert_wrapped("", 4, 20, "\n");
	assert_wrapped("one two", 0, 7, "one two\n");
	assert_wrapped("one two", 0, 6, "one\ntwo\n");
	assert_wrapped("one two three", 2, 9, "one two\n  three\n");
	assert_wrapped("longer-than-the-line x", 2, 8, "longer-than-the-line\n  x\n");
}

static void test_no_terminal(void **state)
{
	FILE *out = tmpfile();

	(void)state;
	assert_non_null(out);
	assert_false(tool_colours(out));
	assert_int_equal(tool_columns(out, 77), 77);
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
