// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/places.h"

/* A recording without PERF_SAMPLE_IP never asks for a place; its rows show number 0 of everything.
 */
static void test_numbers_of_nowhere(void **state)
{
	struct places *places = places_new(NULL);

	(void)state;
	assert_string_equal(places_function(places, 0)->name, "[unknown]");
	assert_string_equal(places_source(places, 0), "[unknown]");
	assert_string_equal(places_dso_name(places, 0), "[unknown]");
	assert_null(places_dso(places, 0));
	places_free(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_of_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
