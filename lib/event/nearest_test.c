// SPDX-License-Identifier: MIT
#include "lib/event/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_distance(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned int distance;
	} rows[] = {
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"cycles", "cycles", 0},
		{"cycles", "CYCLES", 0},
		{"cycels", "cycles", 1},
		{"cycle", "cycles", 1},
		{"ycles", "cycles", 1},
		{"cxcles", "cycles", 1},
		{"kitten", "sitting", 3},
		{"ca", "abc", 3},
		{"ab", "ba", 1},
		{"abcd", "badc", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			tly_distance(rows[i].a, strlen(rows[i].a), rows[i].b, strlen(rows[i].b)),
			rows[i].distance);
		assert_int_equal(
			tly_distance(rows[i].b, strlen(rows[i].b), rows[i].a, strlen(rows[i].a)),
			rows[i].distance);
	}
}

static void check(const char *wanted, const char *const *names, const char *expected)
{
	struct tly_nearest nearest;
	char text[400];

	tly_nearest_init(&nearest, wanted, strlen(wanted));
	for (; *names; names++)
		tly_nearest_consider(&nearest, *names, NULL);
	assert_int_equal(tly_nearest_format(&nearest, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

static void test_suggestions(void **state)
{
	static const char *const none[] = {NULL}, *const one[] = {"cycles", NULL};
	static const char *const some[] = {"instructions", "ref-cycles", "bus-cycles", "cycles",
					   "faults",	   "cycles",	 "",	       NULL};
	static const char *const prefix[] = {"sched_wakeup_new", "sched_wakeup", "wakeup", NULL};
	static const char *const loose[] = {"console", "map", NULL};
	static const char *const two[] = {"faults", "cycles", NULL};

	(void)state;
	check("cycels", none, "");
	check("cycels", one, "did you mean 'cycles'?");
	check("cycels", two, "did you mean 'cycles'?");
	check("cycels", some, "did you mean 'cycles', 'ref-cycles' or 'bus-cycles'?");
	check("sched_wa", prefix, "did you mean 'sched_wakeup' or 'sched_wakeup_new'?");
	check("zzzz", some, "");
	check("nope", loose, "");
	check("", some, "");
}

static void test_long_names(void **state)
{
	char name[TLY_NEAREST_MAX + 2];
	const char *names[] = {name, NULL};

	(void)state;
	memset(name, 'a', sizeof(name));
	name[TLY_NEAREST_MAX + 1] = '\0';
	check("aaa", names, "");
	check(name, names, "");
	name[TLY_NEAREST_MAX] = '\0';
	check("aaa", names, "");
	name[TLY_NEAREST_MAX - 1] = '\0';

	struct tly_nearest nearest;

	tly_nearest_init(&nearest, "aaa", 3);
	tly_nearest_consider(&nearest, name, NULL);
	assert_int_equal(nearest.nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_suggestions),
		cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
