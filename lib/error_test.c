// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/error.h"

static void test_filled_in(void **state)
{
	struct tally_error err;

	(void)state;
	assert_int_equal(tly_error(&err, -EINVAL, "no event '%s'", "x"), -EINVAL);
	assert_string_equal(err.what, "no event 'x'");
	assert_string_equal(err.remedy, "");
	assert_true(err.offset == TALLY_NO_OFFSET);
	assert_int_equal(tly_error_remedy(&err, "type '%s'", "y"), -EINVAL);
	assert_string_equal(err.remedy, "type 'y'");
	assert_int_equal(tly_error_at(&err, 7), -EINVAL);
	assert_int_equal(err.offset, 7);
}

static void test_long_text_is_cut(void **state)
{
	struct tally_error err;
	char text[1000];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	tly_error(&err, -EIO, "%s", text);
	assert_int_equal(strlen(err.what), sizeof(err.what) - 1);
}

static void test_null_object(void **state)
{
	(void)state;
	assert_int_equal(tly_error(NULL, -EIO, "lost"), -EIO);
	assert_int_equal(tly_error_remedy(NULL, "look again"), -EIO);
	assert_int_equal(tly_error(NULL, -EINVAL, "lost"), -EINVAL);
	assert_int_equal(tly_error_at(NULL, 7), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filled_in),
		cmocka_unit_test(test_long_text_is_cut),
		cmocka_unit_test(test_null_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
