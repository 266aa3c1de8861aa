// SPDX-License-Identifier: MIT
#include "tool/lookup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NR 10000

static bool equal(const void *owner, uint32_t index, const void *key)
{
	return ((const uint64_t *)owner)[index] == *(const uint64_t *)key;
}

static void test_empty(void **state)
{
	struct lookup lookup = {0};
	uint64_t key = 1;

	(void)state;
	assert_int_equal(lookup_find(&lookup, 0, equal, NULL, &key), LOOKUP_NONE);
	lookup_free(&lookup);
}

static void fill(uint32_t (*hash)(uint64_t))
{
	uint64_t *keys = malloc(NR * sizeof(*keys));
	struct lookup lookup = {0};
	uint64_t absent = 1;

	for (uint32_t i = 0; i < NR; i++) {
		keys[i] = (uint64_t)i * 16;
		assert_int_equal(lookup_find(&lookup, hash(keys[i]), equal, keys, &keys[i]),
				 LOOKUP_NONE);
		lookup_add(&lookup, hash(keys[i]), i);
	}
	for (uint32_t i = 0; i < NR; i++)
		assert_int_equal(lookup_find(&lookup, hash(keys[i]), equal, keys, &keys[i]), i);
	assert_int_equal(lookup_find(&lookup, hash(absent), equal, keys, &absent), LOOKUP_NONE);
	assert_int_equal(lookup.nr, NR);
	lookup_free(&lookup);
	free(keys);
}

static uint32_t good_hash(uint64_t key)
{
	return lookup_hash_words(0, &key, 1);
}

/* Collides all the time: found by the key, not by the hash. */
static uint32_t bad_hash(uint64_t key)
{
	return key % 64;
}

static void test_good_hash(void **state)
{
	(void)state;
	fill(good_hash);
}

static void test_collisions(void **state)
{
	(void)state;
	fill(bad_hash);
}

/* Chains of a program differ in few bits: those have to reach the low bits, which choose the slot.
 */
static void test_hash_spreads(void **state)
{
	unsigned char seen[1024] = {0};
	int used = 0;

	(void)state;
	for (uint64_t i = 0; i < 1024; i++) {
		uint64_t words[] = {0x7f0000000000, 0x400000 + i * 4096};
		uint32_t slot = lookup_hash_words(7, words, 2) % 1024;

		used += !seen[slot];
		seen[slot] = 1;
	}
	/* 1024 balls in 1024 bins leave about 37 per cent empty. */
	assert_in_range(used, 550, 750);
}

static void test_hash_of_everything(void **state)
{
	uint64_t words[] = {1, 2}, turned[] = {2, 1};

	(void)state;
	assert_int_not_equal(lookup_hash_words(0, words, 2), lookup_hash_words(0, turned, 2));
	assert_int_not_equal(lookup_hash_words(0, words, 2), lookup_hash_words(1, words, 2));
	assert_int_not_equal(lookup_hash_words(0, words, 2), lookup_hash_words(0, words, 1));
	assert_int_not_equal(lookup_hash_text("ab"), lookup_hash_text("ba"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_good_hash),
		cmocka_unit_test(test_collisions),
		cmocka_unit_test(test_hash_spreads),
		cmocka_unit_test(test_hash_of_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
