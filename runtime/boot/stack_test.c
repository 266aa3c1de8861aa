// SPDX-License-Identifier: MIT
#include "runtime/boot/stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

/* A stack of two arguments, the environment of @envp, and two entries of auxv. */
static uint64_t *build(uint64_t words[32], const char *const envp[])
{
	uint64_t *at = words;

	*at++ = 2;
	*at++ = (uint64_t) "name";
	*at++ = (uint64_t) "argument";
	*at++ = 0;
	for (; *envp; envp++)
		*at++ = (uint64_t)*envp;
	*at++ = 0;
	*at++ = AT_ENTRY;
	*at++ = 0x1234;
	*at++ = AT_PAGESZ;
	*at++ = 4096;
	*at++ = AT_NULL;
	*at++ = 0;
	return words;
}

static void test_the_handover_goes_and_auxv_follows_the_environment(void **state)
{
	uint64_t words[32];
	struct stack stack;

	(void)state;
	stack_read(&stack, build(words, (const char *[]){"A=1", "B=2", "TALLY_RUN=1,2,3", NULL}));
	assert_string_equal(stack.handover, "1,2,3");
	assert_ptr_equal(stack.top, words);
	assert_int_equal(stack.argc, 2);
	assert_string_equal(stack.argv[1], "argument");
	assert_int_equal(stack.envc, 2);
	assert_string_equal(stack.envp[1], "B=2");
	assert_null(stack.envp[2]);
	/* As a program finds it. */
	assert_ptr_equal(stack.auxv, stack.envp + 3);
	assert_int_equal(stack.nr_auxv, 3);
	assert_int_equal(stack_auxv(&stack, AT_ENTRY), 0x1234);
	assert_int_equal(stack_auxv(&stack, AT_PAGESZ), 4096);
	assert_int_equal(stack.auxv[2].type, AT_NULL);
}

static void test_an_environment_of_nothing_else(void **state)
{
	uint64_t words[32];
	struct stack stack;

	(void)state;
	stack_read(&stack, build(words, (const char *[]){"TALLY_RUN=x", NULL}));
	assert_string_equal(stack.handover, "x");
	assert_int_equal(stack.envc, 0);
	assert_null(stack.envp[0]);
	assert_ptr_equal(stack.auxv, stack.envp + 1);
}

static void test_only_the_last_string_is_the_handover(void **state)
{
	uint64_t words[32];
	struct stack stack;

	(void)state;
	stack_read(&stack, build(words, (const char *[]){"TALLY_RUN=mine", "B=2", NULL}));
	assert_null(stack.handover);
	assert_int_equal(stack.envc, 2);
	stack_read(&stack, build(words, (const char *[]){"TALLY_RUNNING=1", NULL}));
	assert_null(stack.handover);
	stack_read(&stack, build(words, (const char *[]){NULL}));
	assert_null(stack.handover);
	assert_int_equal(stack_auxv(&stack, AT_PAGESZ), 4096);
}

static void test_auxv_is_changed_where_it_has_the_type(void **state)
{
	uint64_t words[32];
	struct stack stack;

	(void)state;
	stack_read(&stack, build(words, (const char *[]){"TALLY_RUN=x", NULL}));
	stack_set_auxv(&stack, AT_ENTRY, 99);
	stack_set_auxv(&stack, AT_BASE, 77);
	assert_int_equal(stack_auxv(&stack, AT_ENTRY), 99);
	assert_int_equal(stack_auxv(&stack, AT_BASE), 0);
	assert_int_equal(stack_auxv(&stack, AT_PAGESZ), 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_handover_goes_and_auxv_follows_the_environment),
		cmocka_unit_test(test_an_environment_of_nothing_else),
		cmocka_unit_test(test_only_the_last_string_is_the_handover),
		cmocka_unit_test(test_auxv_is_changed_where_it_has_the_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
