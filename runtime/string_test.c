// SPDX-License-Identifier: MIT
/* The runtime's functions beside the C library's, which are what they have to be equal to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define memcpy	ours_memcpy
#define memmove ours_memmove
#define memset	ours_memset
#define memcmp	ours_memcmp
#define strlen	ours_strlen
#define strcmp	ours_strcmp
#define strncmp ours_strncmp
#define strchr	ours_strchr
#define strrchr ours_strrchr
#include "runtime/string.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp

enum { SIZE = 96 };

static void fill(unsigned char bytes[SIZE])
{
	for (int i = 0; i < SIZE; i++)
		bytes[i] = (unsigned char)(7 * i + 1);
}

/* Every size up to some words, at every distance either way. */
static void test_memmove(void **state)
{
	unsigned char ours[SIZE], theirs[SIZE];

	(void)state;
	for (size_t size = 0; size <= 40; size++)
		for (size_t from = 0; from <= SIZE - size; from++)
			for (size_t to = 0; to <= SIZE - size; to++) {
				fill(ours);
				fill(theirs);
				assert_ptr_equal(ours_memmove(ours + to, ours + from, size),
						 ours + to);
				memmove(theirs + to, theirs + from, size);
				assert_memory_equal(ours, theirs, SIZE);
			}
}

static void test_direction_flag_is_clear(void **state)
{
	unsigned char bytes[SIZE];
	uint64_t flags;

	(void)state;
	fill(bytes);
	ours_memmove(bytes + 8, bytes, 40);
	flags = __builtin_ia32_readeflags_u64();
	assert_false(flags & 1 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memmove),
		cmocka_unit_test(test_direction_flag_is_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
