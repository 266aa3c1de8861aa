// SPDX-License-Identifier: MIT
#include "runtime/boot/handover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_each_field_is_read(void **state)
{
	struct handover handover;

	(void)state;
	assert_null(handover_read(&handover, "5,1000,1001,1002,1003,4295032834,1,1,/bin/true,1"));
	assert_int_equal(handover.descriptors.arena, 1000);
	assert_int_equal(handover.descriptors.monitor, 1001);
	assert_int_equal(handover.descriptors.runtime, 1002);
	assert_int_equal(handover.descriptors.program, 1003);
	assert_int_equal(handover.owner, 65538);
	assert_true(handover.confined);
	assert_true(handover.fixed);
	/* A name may have commas. */
	assert_string_equal(handover.filename, "/bin/true,1");
}

static void test_numbers_reach_to_their_ends(void **state)
{
	struct handover handover;

	(void)state;
	assert_null(handover_read(&handover, "5,-1,0,2147483647,-1,8589934591,0,0,x"));
	assert_int_equal(handover.descriptors.arena, -1);
	assert_int_equal(handover.descriptors.monitor, 0);
	assert_int_equal(handover.descriptors.runtime, INT32_MAX);
	assert_int_equal(handover.descriptors.program, -1);
	assert_int_equal(handover.owner, UINT32_MAX);
	assert_false(handover.confined);
	assert_false(handover.fixed);
}

static void test_what_tally_does_not_write_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"x",
		",1,2,3,4,4294967296,0,0,/bin/true",
		"4",
		"5,",
		"5,1,2,3,4,4294967296,0,0",
		"5,1,2,3,4,4294967296,0,0,",
		"5,1,2,3,4,4294967296,/bin/true",
		"5,1,2,3,4,4294967296,0,/bin/true",
		"5,1,2,3,4,4294967296,2,0,/bin/true",
		"5,1,2,3,4,4294967296,0,2,/bin/true",
		"5,1,2,3,4,,0,0,/bin/true",
		"5,1,2,3,4,0,0,0,/bin/true",
		"5,1,,3,4,4294967296,0,0,/bin/true",
		"5,1,2,3,4,-1,0,0,/bin/true",
		"5,1,2,3,4,0x1,0,0,/bin/true",
		"5,-2,2,3,4,4294967296,0,0,/bin/true",
		"5,-0,2,3,4,4294967296,0,0,/bin/true",
		"5,--1,2,3,4,4294967296,0,0,/bin/true",
		"5,-,2,3,4,4294967296,0,0,/bin/true",
		"5,1 ,2,3,4,4294967296,0,0,/bin/true",
		"5,1,2,3,2147483648,4294967296,0,0,/bin/true",
		"5,1,2,3,4,8589934592,0,0,/bin/true",
		"5,1,2,3,4,18446744073709551617,0,0,/bin/true",
	};
	struct handover handover;

	(void)state;
	assert_non_null(handover_read(&handover, NULL));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (!handover_read(&handover, wrong[i]))
			fail_msg("'%s' is taken", wrong[i]);
}

/* Whatever may follow in it. */
static void test_another_version_is_told(void **state)
{
	struct handover handover;

	(void)state;
	assert_non_null(strstr(handover_read(&handover, "1,2,3"), "different versions"));
	assert_non_null(strstr(handover_read(&handover, "6,x"), "different versions"));
	assert_null(strstr(handover_read(&handover, "5,x"), "different versions"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_field_is_read),
		cmocka_unit_test(test_numbers_reach_to_their_ends),
		cmocka_unit_test(test_what_tally_does_not_write_is_refused),
		cmocka_unit_test(test_another_version_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
