// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/machine.h"

struct answer {
	uint32_t leaf, subleaf;
	struct cpuid says;
};

static const struct answer *answers;

static struct cpuid recorded(uint32_t leaf, uint32_t subleaf)
{
	for (const struct answer *a = answers; a->leaf; a++)
		if (a->leaf == leaf && a->subleaf == subleaf)
			return a->says;
	return (struct cpuid){0};
}

static char rounded[1024];

static struct machine machine_of(const struct answer *all)
{
	struct machine machine;

	answers = all;
	machine = machine_of_host(recorded, rounded, sizeof(rounded));
	assert_true(tly_machine_valid(&machine));
	return machine;
}

static void assert_cache(const struct machine_cache *cache, uint32_t sets, uint32_t ways)
{
	assert_int_equal(cache->sets, sets);
	assert_int_equal(cache->ways, ways);
}

/* 32 KiB, 512 KiB, 32 MiB; TLBs of the first level fully associative. */
static void test_amd(void **state)
{
	static const struct answer zen3[] = {
		{0x8000001d, 0, {0x4121, 0x01c0003f, 0x3f, 0}},
		{0x8000001d, 1, {0x4122, 0x01c0003f, 0x3f, 0}},
		{0x8000001d, 2, {0x4143, 0x01c0003f, 0x3ff, 2}},
		{0x8000001d, 3, {0x3c163, 0x03c0003f, 0x7fff, 1}},
		{0x80000005, 0, {0xff40ff40, 0xff40ff40, 0x20080140, 0x20080140}},
		{0x80000006, 0, {0x5c002200, 0x68006200, 0x02006140, 0x00209000}},
		{0}};
	const struct machine machine = machine_of(zen3);

	(void)state;
	assert_cache(&machine.l1i, 64, 8);
	assert_cache(&machine.l1d, 64, 8);
	assert_cache(&machine.l2, 1024, 8);
	assert_cache(&machine.llc, 32768, 16);
	assert_cache(&machine.itlb, 8, 8);
	assert_cache(&machine.dtlb, 8, 8);
	assert_cache(&machine.stlb, 256, 8);
	assert_int_equal(machine.mispredict, tly_machine_reference.mispredict);
	assert_string_equal(rounded, "iTLB has 64 pages in 8 ways, not 64 pages fully associative; "
				     "dTLB has 64 pages in 8 ways, not 64 pages fully associative");
}

/* Descriptors in leaf 2, and a last level of 20 slices. */
static void test_intel(void **state)
{
	static const struct answer skylake[] = {{2, 0, {0x76036301, 0x00f0b5ff, 0, 0x00c30000}},
						{4, 0, {0x1c004121, 0x01c0003f, 0x3f, 0}},
						{4, 1, {0x1c004122, 0x01c0003f, 0x3f, 0}},
						{4, 2, {0x1c004143, 0x03c0003f, 0x3ff, 0}},
						{4, 3, {0x1c03c163, 0x0280003f, 0x9fff, 4}},
						{0}};
	const struct machine machine = machine_of(skylake);

	(void)state;
	assert_cache(&machine.l1d, 64, 8);
	assert_cache(&machine.l2, 1024, 16);
	assert_cache(&machine.llc, 32768, 11);
	assert_cache(&machine.itlb, 8, 8);
	assert_cache(&machine.dtlb, 16, 4);
	assert_cache(&machine.stlb, 256, 6);
	assert_string_equal(rounded, "LLC has 22 MiB in 11 ways, not 28160 KiB in 11 ways");
}

/* TLBs in leaf 0x18, L1D of 48 KiB in 12 ways, one for loads and one for stores. */
static void test_newer_intel(void **state)
{
	static const struct answer golden_cove[] = {{2, 0, {0x00feff01, 0xf0, 0, 0}},
						    {4, 0, {0x1c004121, 0x02c0003f, 0x3f, 0}},
						    {4, 1, {0x1c004122, 0x01c0003f, 0x3f, 0}},
						    {4, 2, {0x1c01c143, 0x03c0003f, 0x7ff, 0}},
						    {4, 3, {0x1c03c163, 0x03c0003f, 0x7fff, 4}},
						    {0x18, 0, {8, 0, 0, 0}},
						    {0x18, 1, {0, 0x00080001, 0x20, 0x4022}},
						    {0x18, 2, {0, 0x00080006, 4, 0x4022}},
						    {0x18, 3, {0, 0x0010000f, 1, 0x4125}},
						    {0x18, 4, {0, 0x00060001, 0x10, 0x4024}},
						    {0x18, 5, {0, 0x00040006, 8, 0x4024}},
						    {0x18, 7, {0, 0x00080007, 0x80, 0x4043}},
						    {0}};
	const struct machine machine = machine_of(golden_cove);

	(void)state;
	assert_cache(&machine.l1d, 64, 12);
	assert_cache(&machine.itlb, 32, 8);
	assert_cache(&machine.dtlb, 16, 6);
	assert_cache(&machine.stlb, 128, 8);
	assert_string_equal(rounded, "");
}

/* A hypervisor that hides it all. */
static void test_silent(void **state)
{
	static const struct answer nothing[] = {{0}};
	const struct machine machine = machine_of(nothing);

	(void)state;
	assert_memory_equal(&machine, &tly_machine_reference, sizeof(machine));
	assert_non_null(strstr(rounded, "L1D is the reference machine's, CPUID tells of none"));
}

static struct cpuid at_random(uint32_t leaf, uint32_t subleaf)
{
	(void)leaf, (void)subleaf;
	return (struct cpuid){(uint32_t)mrand48(), (uint32_t)mrand48(), (uint32_t)mrand48(),
			      (uint32_t)mrand48()};
}

static void test_nonsense(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		char text[64];
		const struct machine machine = machine_of_host(at_random, text, sizeof(text));

		assert_true(tly_machine_valid(&machine));
		assert_true(strlen(text) < sizeof(text));
	}
}

/* The kernel reads the same leaves with code of its own. */
static unsigned long of_kernel(int index, const char *what)
{
	unsigned long number = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
	file = fopen(path, "r");
	if (file && fscanf(file, "%lu", &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

static void test_this_one(void **state)
{
	const struct machine machine = machine_of_host(machine_cpuid, rounded, sizeof(rounded));

	(void)state;
	assert_true(tly_machine_valid(&machine));
	if (of_kernel(0, "level") != 1 || !of_kernel(0, "number_of_sets") || strstr(rounded, "L1D"))
		skip();
	assert_cache(&machine.l1d, (uint32_t)of_kernel(0, "number_of_sets"),
		     (uint32_t)of_kernel(0, "ways_of_associativity"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amd),	    cmocka_unit_test(test_intel),
		cmocka_unit_test(test_newer_intel), cmocka_unit_test(test_silent),
		cmocka_unit_test(test_nonsense),    cmocka_unit_test(test_this_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
