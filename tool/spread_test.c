// SPDX-License-Identifier: MIT
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/spread.h"

static void assert_near(double found, double expected)
{
	if (fabs(found - expected) > 1e-9 * fmax(1, fabs(expected)))
		fail_msg("%.17g, expected %.17g", found, expected);
}

static void test_few_numbers(void **state)
{
	struct spread spread = {0};

	(void)state;
	assert_near(spread_deviation(&spread), 0);
	assert_near(spread_percent(&spread), 0);
	spread_add(&spread, 7);
	assert_near(spread.mean, 7);
	assert_near(spread.min, 7);
	assert_near(spread.max, 7);
	assert_near(spread_deviation(&spread), 0);
}

/* 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squared distances 32 in all. */
static void test_known_sample(void **state)
{
	static const double sample[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct spread spread = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(sample) / sizeof(sample[0]); i++)
		spread_add(&spread, sample[i]);
	assert_near(spread.mean, 5);
	assert_near(spread_deviation(&spread), sqrt(32.0 / 7));
	assert_near(spread_percent(&spread), 20 * sqrt(32.0 / 7));
	assert_near(spread.min, 2);
	assert_near(spread.max, 9);
}

/* The textbook formula loses every digit here. */
static void test_small_spread_of_large_numbers(void **state)
{
	struct spread spread = {0};

	(void)state;
	spread_add(&spread, 1e15);
	spread_add(&spread, 1e15 + 2);
	spread_add(&spread, 1e15 + 4);
	assert_near(spread_deviation(&spread), 2);
}

static void test_mean_zero(void **state)
{
	struct spread spread = {0};

	(void)state;
	spread_add(&spread, -1);
	spread_add(&spread, 1);
	assert_near(spread_percent(&spread), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_numbers),
		cmocka_unit_test(test_known_sample),
		cmocka_unit_test(test_small_spread_of_large_numbers),
		cmocka_unit_test(test_mean_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
