// SPDX-License-Identifier: MIT
#include "tool/filter.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SECOND 1000000000ull

static void test_words(void **state)
{
	struct words words = {0};

	(void)state;
	assert_true(words_have(&words, "anything"));
	words_parse(&words, "a,,bc");
	assert_int_equal(words.nr, 2);
	assert_true(words_have(&words, "a"));
	assert_true(words_have(&words, "bc"));
	assert_false(words_have(&words, "b"));
	assert_false(words_have(&words, ""));
	words_parse(&words, "x");
	assert_false(words_have(&words, "a"));
	words_free(&words);
}

static void test_ids(void **state)
{
	const int ids[] = {3, -1};

	(void)state;
	assert_true(filter_has_id(NULL, 0, 9));
	assert_true(filter_has_id(ids, 2, 3));
	assert_true(filter_has_id(ids, 2, UINT32_MAX));
	assert_false(filter_has_id(ids, 2, 4));
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t start, end;
	} rows[] = {
		{NULL, true, 0, UINT64_MAX},
		{"1,2", true, SECOND, 2 * SECOND},
		{"1.5,2.000000001", true, SECOND + SECOND / 2, 2 * SECOND + 1},
		{"1.0000000019,", true, SECOND + 1, UINT64_MAX},
		{",2", true, 0, 2 * SECOND},
		{",", true, 0, UINT64_MAX},
		{"0%-100%", true, 10 * SECOND, 20 * SECOND},
		{"10%-20%", true, 11 * SECOND, 12 * SECOND},
		{"2,1", false, 0, 0},
		{"20%-10%", false, 0, 0},
		{"0%-101%", false, 0, 0},
		{"1", false, 0, 0},
		{"", false, 0, 0},
		{"a,b", false, 0, 0},
		{"1,2x", false, 0, 0},
		{"18446744074,", false, 0, 0},
		{"99999999999999999999,", false, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct filter filter = {.time = rows[i].text};

		assert_int_equal(filter_resolve_time(&filter, 10 * SECOND, 20 * SECOND),
				 rows[i].good);
		if (!rows[i].good)
			continue;
		assert_int_equal(filter.start, rows[i].start);
		assert_int_equal(filter.end, rows[i].end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
