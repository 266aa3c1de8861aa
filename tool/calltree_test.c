// SPDX-License-Identifier: MIT
#include "tool/calltree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tool/command.h"
#include "tool/memory.h"

/* For help, which the session's options lead to. */
/* Functions of this program, resolved as those of a recording are. */
struct fixture {
	struct tally_symbols *symbols;
	struct tally_machine *machine;
	struct places *places;
	uint32_t functions[3]; /* of alpha, beta, gamma_ */
};

__attribute__((noinline)) static int alpha(int n)
{
	return n * 3 + 1;
}

__attribute__((noinline)) static int beta(int n)
{
	return n * 5 + 2;
}

__attribute__((noinline)) static int gamma_(int n)
{
	return n * 7 + 3;
}

static int (*volatile const addresses[3])(int) = {alpha, beta, gamma_};

static int set_up(void **state)
{
	struct fixture *fixture = tool_alloc(1, sizeof(*fixture));
	struct tally_error err;

	fixture->symbols = tally_symbols_new(NULL);
	fixture->machine = tally_machine_new(fixture->symbols);
	if (!fixture->machine || tally_machine_feed_proc(fixture->machine, getpid(), &err))
		return -1;
	fixture->places = places_new(fixture->machine);
	for (size_t i = 0; i < 3; i++) {
		size_t nr;
		uint32_t place = places_find(fixture->places, getpid(), 1, UINT64_MAX,
					     PERF_RECORD_MISC_USER, (uintptr_t)addresses[i], false);
		uint32_t frame = places_frames(fixture->places, place, &nr);

		if (nr != 1)
			return -1;
		fixture->functions[i] = places_frame(fixture->places, frame)->function;
	}
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	places_free(fixture->places);
	tally_symbols_free(fixture->symbols);
	free(fixture);
	return 0;
}

static void test_places_have_names(void **state)
{
	const struct fixture *fixture = *state;
	const struct function *function = places_function(fixture->places, fixture->functions[1]);

	assert_string_equal(function->name, "beta");
	assert_int_equal(function->level, '.');
	assert_false(function->inlined);
	assert_string_equal(places_dso_name(fixture->places, function->dso), "test-tool-calltree");
	assert_int_not_equal(fixture->functions[0], fixture->functions[1]);
}

/* The last byte of a function still is the function's when it is where a call returns to. */
static void test_return_addresses_are_of_the_caller(void **state)
{
	struct fixture *fixture = *state;
	uint32_t first = places_find(fixture->places, getpid(), 1, UINT64_MAX,
				     PERF_RECORD_MISC_USER, (uintptr_t)addresses[0], false);
	uint64_t end =
		(uintptr_t)addresses[0] + (places_at(fixture->places, first)->at.symbol->end -
					   places_at(fixture->places, first)->at.symbol->start);
	uint32_t returned = places_find(fixture->places, getpid(), 1, UINT64_MAX,
					PERF_RECORD_MISC_USER, end, true);
	uint32_t exact = places_find(fixture->places, getpid(), 1, UINT64_MAX,
				     PERF_RECORD_MISC_USER, end, false);

	assert_int_not_equal(returned, exact);
	assert_string_equal(places_at(fixture->places, returned)->at.symbol->name, "alpha");
	assert_int_equal(places_at(fixture->places, returned)->at.address,
			 places_at(fixture->places, first)->at.symbol->end);
	assert_true(!places_at(fixture->places, exact)->at.symbol ||
		    places_at(fixture->places, exact)->at.symbol !=
			    places_at(fixture->places, first)->at.symbol);
}

static void test_addresses_of_nothing(void **state)
{
	struct fixture *fixture = *state;
	size_t nr;
	uint32_t place = places_find(fixture->places, getpid(), 1, UINT64_MAX,
				     PERF_RECORD_MISC_USER, 16, false);
	uint32_t frame = places_frames(fixture->places, place, &nr);
	const struct function *function =
		places_function(fixture->places, places_frame(fixture->places, frame)->function);

	assert_int_equal(nr, 1);
	assert_string_equal(function->name, UNKNOWN);
	assert_string_equal(places_dso_name(fixture->places, function->dso), UNKNOWN);
	assert_null(places_dso(fixture->places, function->dso));
	assert_string_equal(places_source(fixture->places, 0), UNKNOWN);
}

static void test_empty_tree(void **state)
{
	struct calltree *tree = calltree_new();

	(void)state;
	calltree_sort(tree, NULL);
	assert_int_equal(calltree_node(tree, CALLTREE_ROOT)->total, 0);
	assert_int_equal(calltree_node(tree, CALLTREE_ROOT)->child, 0);
	calltree_free(tree);
}

static void test_paths_are_merged(void **state)
{
	const struct fixture *fixture = *state;
	const uint32_t *f = fixture->functions;
	const uint32_t ab[] = {f[0], f[1]}, ac[] = {f[0], f[2]}, a[] = {f[0]};
	struct calltree *tree = calltree_new();
	const struct calltree_node *top, *node;

	calltree_add(tree, ab, 2, 10, 1);
	calltree_add(tree, ac, 2, 20, 2);
	calltree_add(tree, ab, 2, 5, 1);
	calltree_add(tree, a, 1, 3, 1);
	calltree_sort(tree, fixture->places);
	assert_int_equal(calltree_node(tree, CALLTREE_ROOT)->total, 38);
	assert_int_equal(calltree_node(tree, CALLTREE_ROOT)->total_nr, 5);

	top = calltree_node(tree, calltree_node(tree, CALLTREE_ROOT)->child);
	assert_int_equal(top->function, f[0]);
	assert_int_equal(top->next, 0);
	assert_int_equal(top->total, 38);
	assert_int_equal(top->self, 3);
	node = calltree_node(tree, top->child);
	assert_int_equal(node->function, f[2]);
	assert_int_equal(node->total, 20);
	node = calltree_node(tree, node->next);
	assert_int_equal(node->function, f[1]);
	assert_int_equal(node->total, 15);
	assert_int_equal(node->self, 15);
	assert_int_equal(node->self_nr, 2);
	assert_int_equal(node->next, 0);
	calltree_free(tree);
}

static void test_equals_are_sorted_by_name(void **state)
{
	const struct fixture *fixture = *state;
	struct calltree *tree = calltree_new();
	uint32_t child;

	for (size_t i = 3; i-- > 0;)
		calltree_add(tree, &fixture->functions[i], 1, 7, 1);
	calltree_sort(tree, fixture->places);
	child = calltree_node(tree, CALLTREE_ROOT)->child;
	for (size_t i = 0; i < 3; i++, child = calltree_node(tree, child)->next)
		assert_int_equal(calltree_node(tree, child)->function, fixture->functions[i]);
	assert_int_equal(child, 0);
	calltree_free(tree);
}

/* The same function below itself is another line. */
static void test_recursion(void **state)
{
	const struct fixture *fixture = *state;
	const uint32_t a = fixture->functions[0], path[] = {a, a, a};
	struct calltree *tree = calltree_new();
	uint32_t index = CALLTREE_ROOT;
	int depth = 0;

	calltree_add(tree, path, 3, 1, 1);
	calltree_add(tree, path, 2, 1, 1);
	while ((index = calltree_node(tree, index)->child)) {
		assert_int_equal(calltree_node(tree, index)->function, a);
		depth++;
	}
	assert_int_equal(depth, 3);
	calltree_free(tree);
}

/* More than are looked through one by one. */
static void test_many_children(void **state)
{
	struct calltree *tree = calltree_new();
	uint32_t nr = 0;

	(void)state;
	for (uint32_t round = 1; round <= 2; round++)
		for (uint32_t f = 0; f < 1000; f++)
			calltree_add(tree, (const uint32_t[]){f % 50, f}, 2, round, 1);
	for (uint32_t i = calltree_node(tree, CALLTREE_ROOT)->child; i;
	     i = calltree_node(tree, i)->next, nr++) {
		uint32_t below = 0;

		assert_int_equal(calltree_node(tree, i)->total, 20 * 3);
		for (uint32_t j = calltree_node(tree, i)->child; j;
		     j = calltree_node(tree, j)->next, below++)
			assert_int_equal(calltree_node(tree, j)->self, 3);
		assert_int_equal(below, 20);
	}
	assert_int_equal(nr, 50);
	calltree_free(tree);
}

static void test_keys(void **state)
{
	struct keys keys;
	const char *bad;
	size_t length;

	(void)state;
	assert_true(keys_parse(&keys, "comm,symbol,comm,pid", &bad, &length));
	assert_int_equal(keys.nr, 3);
	assert_int_equal(keys.key[0], KEY_COMM);
	assert_int_equal(keys.key[1], KEY_SYM);
	assert_int_equal(keys.key[2], KEY_PID);
	assert_true(keys_have(&keys, KEY_PID));
	assert_false(keys_have(&keys, KEY_TID));
	assert_string_equal(key_name(KEY_SYM), "sym");
	assert_false(keys_parse(&keys, "comm,symb", &bad, &length));
	assert_int_equal(length, 4);
	assert_memory_equal(bad, "symb", 4);
	assert_false(keys_parse(&keys, "", &bad, &length));
	assert_false(keys_parse(&keys, "comm,", &bad, &length));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places_have_names),
		cmocka_unit_test(test_return_addresses_are_of_the_caller),
		cmocka_unit_test(test_addresses_of_nothing),
		cmocka_unit_test(test_empty_tree),
		cmocka_unit_test(test_paths_are_merged),
		cmocka_unit_test(test_equals_are_sorted_by_name),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_many_children),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
