// SPDX-License-Identifier: MIT
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/symbol/idmap.h"
#include "lib/symbol/strings.h"
#include "lib/symbol/symtab.h"

struct fixture {
	struct tly_strings strings;
	struct tly_symtab symtab;
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	tly_symtab_free(&fixture->symtab);
	tly_strings_free(&fixture->strings);
	free(fixture);
	return 0;
}

static const char *name_at(struct fixture *fixture, uint64_t address)
{
	const struct tally_symbol *symbol =
		tly_symtab_find(&fixture->symtab, address, &fixture->strings, true);

	return symbol ? symbol->name : "-";
}

static void add(struct fixture *fixture, uint64_t start, uint64_t size, const char *name,
		enum tly_binding binding)
{
	assert_int_equal(tly_symtab_add(&fixture->symtab, start, size, name, binding), 0);
}

static void finish(struct fixture *fixture)
{
	assert_int_equal(tly_symtab_finish(&fixture->symtab, &fixture->strings), 0);
}

static void test_empty_table(void **state)
{
	struct fixture *fixture = *state;

	assert_string_equal(name_at(fixture, 0), "-");
	finish(fixture);
	assert_string_equal(name_at(fixture, 0), "-");
}

static void test_boundaries(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 0x200, 0x10, "second", TLY_GLOBAL);
	add(fixture, 0x100, 0x80, "first", TLY_GLOBAL);
	finish(fixture);
	assert_string_equal(name_at(fixture, 0xff), "-");
	assert_string_equal(name_at(fixture, 0x100), "first");
	assert_string_equal(name_at(fixture, 0x17f), "first");
	assert_string_equal(name_at(fixture, 0x180), "-");
	assert_string_equal(name_at(fixture, 0x20f), "second");
	assert_string_equal(name_at(fixture, 0x210), "-");
	assert_string_equal(name_at(fixture, UINT64_MAX), "-");
}

static void test_no_size_extends_to_the_next(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 0x100, 0, "asm", TLY_GLOBAL);
	add(fixture, 0x300, 0, "before a gap", TLY_GLOBAL);
	add(fixture, 0x10000000, 0, "last", TLY_GLOBAL);
	finish(fixture);
	assert_string_equal(name_at(fixture, 0x2ff), "asm");
	assert_string_equal(name_at(fixture, 0x300 + (1 << 20) - 1), "before a gap");
	assert_string_equal(name_at(fixture, 0x300 + (1 << 20)), "-");
	assert_string_equal(name_at(fixture, 0x10000000 + 4095), "last");
	assert_string_equal(name_at(fixture, 0x10000000 + 4096), "-");
}

static void test_ends_that_overflow(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, UINT64_MAX - 8, 100, "sized", TLY_GLOBAL);
	add(fixture, UINT64_MAX - 4, 0, "unsized", TLY_GLOBAL);
	finish(fixture);
	assert_string_equal(name_at(fixture, UINT64_MAX - 5), "sized");
	assert_string_equal(name_at(fixture, UINT64_MAX - 1), "unsized");
}

static void test_best_alias(void **state)
{
	static const struct {
		const char *wins, *loses;
		uint64_t wins_size, loses_size;
		enum tly_binding wins_binding, loses_binding;
	} rows[] = {
		{"sized", "unsized", 4, 0, TLY_LOCAL, TLY_GLOBAL},
		{"strong", "weak", 4, 4, TLY_GLOBAL, TLY_WEAK},
		{"global", "local", 4, 4, TLY_GLOBAL, TLY_LOCAL},
		{"read", "__read", 4, 4, TLY_GLOBAL, TLY_GLOBAL},
		{"_read", "__libc_read", 4, 4, TLY_WEAK, TLY_WEAK},
		{"memmove", "memcpy", 4, 4, TLY_GLOBAL, TLY_GLOBAL},
		{"__x64_sys_fork", "__ia32_sys_fork", 4, 4, TLY_GLOBAL, TLY_GLOBAL},
		{"free", "cfree@GLIBC_2.2.5", 4, 4, TLY_GLOBAL, TLY_GLOBAL},
		{"old@V_1", "_old@V_2", 4, 4, TLY_GLOBAL, TLY_GLOBAL},
		{"first", "other", 4, 4, TLY_GLOBAL, TLY_GLOBAL},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool swap = i + 1 < sizeof(rows) / sizeof(*rows) && i % 2;

		if (swap)
			add(fixture, 0x100 * i, rows[i].loses_size, rows[i].loses,
			    rows[i].loses_binding);
		add(fixture, 0x100 * i, rows[i].wins_size, rows[i].wins, rows[i].wins_binding);
		if (!swap)
			add(fixture, 0x100 * i, rows[i].loses_size, rows[i].loses,
			    rows[i].loses_binding);
	}
	finish(fixture);
	assert_int_equal(fixture->symtab.nr, sizeof(rows) / sizeof(*rows));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(name_at(fixture, 0x100 * i), rows[i].wins);
}

static void test_versions(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 0x100, 4, "sleep@@V_2.17", TLY_GLOBAL);
	add(fixture, 0x100, 4, "sleep@V_2.2.5", TLY_GLOBAL);
	add(fixture, 0x200, 4, "kept@V_1", TLY_GLOBAL);
	add(fixture, 0x300, 4, "@@", TLY_GLOBAL);
	finish(fixture);
	assert_string_equal(name_at(fixture, 0x100), "sleep");
	assert_string_equal(name_at(fixture, 0x200), "kept@V_1");
	assert_string_equal(name_at(fixture, 0x300), "@@");
}

static void test_nesting(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 0x100, 0x100, "outer", TLY_GLOBAL);
	add(fixture, 0x140, 0x10, "inner", TLY_GLOBAL);
	add(fixture, 0x180, 0, "label", TLY_LABEL);
	finish(fixture);
	assert_string_equal(name_at(fixture, 0x13f), "outer");
	assert_string_equal(name_at(fixture, 0x145), "inner");
	assert_string_equal(name_at(fixture, 0x150), "outer");
	assert_string_equal(name_at(fixture, 0x185), "outer");
	assert_string_equal(name_at(fixture, 0x200), "-");
}

static void test_demangling(void **state)
{
	struct fixture *fixture = *state;
	const struct tally_symbol *symbol;

	add(fixture, 0x100, 16, "_ZN3foo3barEi", TLY_GLOBAL);
	add(fixture, 0x200, 16, "_ZNSt6vectorIiSaIiEE9push_backERKi", TLY_WEAK);
	add(fixture, 0x300, 16, "_ZN4core3fmt5write17h0123456789abcdefE", TLY_GLOBAL);
	add(fixture, 0x400, 16, "_RNvCs1234_7mycrate3foo", TLY_GLOBAL);
	add(fixture, 0x500, 16, "_Zbroken", TLY_GLOBAL);
	add(fixture, 0x600, 16, "_start", TLY_GLOBAL);
	finish(fixture);
	symbol = tly_symtab_find(&fixture->symtab, 0x100, &fixture->strings, false);
	assert_string_equal(symbol->name, "_ZN3foo3barEi");
	assert_string_equal(name_at(fixture, 0x100), "foo::bar");
	assert_string_equal(name_at(fixture, 0x200),
			    "std::vector<int, std::allocator<int> >::push_back");
	assert_string_equal(name_at(fixture, 0x300), "core::fmt::write");
	assert_string_equal(name_at(fixture, 0x400), "mycrate::foo");
	assert_string_equal(name_at(fixture, 0x500), "_Zbroken");
	assert_string_equal(name_at(fixture, 0x600), "_start");
}

static void test_jit_overwrites(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 0x100, 0x100, "old", TLY_GLOBAL);
	add(fixture, 0x300, 0x20, "gone", TLY_GLOBAL);
	add(fixture, 0x180, 0x100, "over the tail", TLY_GLOBAL);
	add(fixture, 0x2f0, 0x80, "over all", TLY_GLOBAL);
	add(fixture, 0x500, 0x10, "compiled", TLY_GLOBAL);
	add(fixture, 0x500, 0x10, "recompiled", TLY_GLOBAL);
	assert_int_equal(tly_symtab_finish_jit(&fixture->symtab, &fixture->strings), 0);
	assert_string_equal(name_at(fixture, 0x17f), "old");
	assert_string_equal(name_at(fixture, 0x180), "over the tail");
	assert_string_equal(name_at(fixture, 0x27f), "over the tail");
	assert_string_equal(name_at(fixture, 0x280), "-");
	assert_string_equal(name_at(fixture, 0x310), "over all");
	assert_string_equal(name_at(fixture, 0x500), "recompiled");
}

static void test_interned_strings(void **state)
{
	struct fixture *fixture = *state;
	const char *first[3000];
	char text[64];

	for (int i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "name number %d", i);
		first[i] = tly_strings_intern(&fixture->strings, text);
	}
	for (int i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "name number %d", i);
		assert_string_equal(first[i], text);
		assert_ptr_equal(tly_strings_intern(&fixture->strings, text), first[i]);
	}
}

static void test_long_strings(void **state)
{
	struct fixture *fixture = *state;
	size_t sizes[] = {0, 1, 8190, 8191, 8192, 65535, 65536, 65537, 1000000};
	char *text = malloc(1000000);

	memset(text, 'x', 1000000);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const char *copy = tly_strings_add(&fixture->strings, text, sizes[i]);

		assert_int_equal(strlen(copy), sizes[i]);
		assert_memory_equal(copy, text, sizes[i]);
	}
	free(text);
}

static void test_ids(void **state)
{
	struct tly_idmap map = {0};
	int values[1000];

	(void)state;
	assert_null(tly_idmap_get(&map, 0));
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(tly_idmap_add(&map, i * 4096 - 1, &values[i]), 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_ptr_equal(tly_idmap_get(&map, i * 4096 - 1), &values[i]);
	assert_null(tly_idmap_get(&map, 17));
	free(map.entries);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_empty_table),
		TEST(test_boundaries),
		TEST(test_no_size_extends_to_the_next),
		TEST(test_ends_that_overflow),
		TEST(test_best_alias),
		TEST(test_versions),
		TEST(test_nesting),
		TEST(test_demangling),
		TEST(test_jit_overwrites),
		TEST(test_interned_strings),
		TEST(test_long_strings),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
