// SPDX-License-Identifier: MIT
#include "monitor/vendor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/core.h"

#define AUTHENTIC_AMD 0x68747541
#define HYGON	      0x6f677948
#define GENUINE_INTEL 0x756e6547

static uint32_t name, version;

static struct cpuid says(uint32_t leaf, uint32_t subleaf)
{
	(void)subleaf;
	return leaf ? (struct cpuid){.a = version} : (struct cpuid){.a = 1, .b = name};
}

static void test_processors_by_their_version(void **state)
{
	static const struct {
		uint32_t name, version, vendor;
	} cases[] = {
		{AUTHENTIC_AMD, 0x00100f42, CORE_VENDOR_AMD_BEFORE_ZEN}, /* family 10h */
		{AUTHENTIC_AMD, 0x00600f20, CORE_VENDOR_AMD_BEFORE_ZEN}, /* 15h */
		{AUTHENTIC_AMD, 0x00800f12, CORE_VENDOR_AMD_ZEN},	 /* 17h, 01h: Naples */
		{AUTHENTIC_AMD, 0x00810f81, CORE_VENDOR_AMD_ZEN},	 /* 17h, 18h: Picasso */
		{HYGON, 0x00900f01, CORE_VENDOR_AMD_ZEN},		 /* 18h: Dhyana */
		{AUTHENTIC_AMD, 0x00830f10, CORE_VENDOR_AMD},		 /* 17h, 31h: Rome */
		{AUTHENTIC_AMD, 0x00a20f10, CORE_VENDOR_AMD},		 /* 19h, 21h: Vermeer */
		{AUTHENTIC_AMD, 0x00a10f11, CORE_VENDOR_AMD},		 /* 19h, 11h: Genoa */
		{AUTHENTIC_AMD, 0x00b00f21, CORE_VENDOR_AMD_ZEN5},	 /* 1Ah, 02h: Turin */
		{GENUINE_INTEL, 0x000306c3, CORE_VENDOR_INTEL_OLD},	 /* Haswell */
		{GENUINE_INTEL, 0x000606a6, CORE_VENDOR_INTEL_ICE_LAKE},
		{GENUINE_INTEL, 0x000c06f2, CORE_VENDOR_INTEL_GOLDEN_COVE}, /* Emerald Rapids */
		{GENUINE_INTEL, 0x000106a5, CORE_VENDOR_INTEL},		    /* Nehalem */
		{0, 0, CORE_VENDOR_INTEL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		name = cases[i].name;
		version = cases[i].version;
		print_message("# %#x\n", version);
		assert_int_equal(vendor_of(says), cases[i].vendor);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processors_by_their_version),
	};

	return cmocka_run_group_tests_name("monitor/vendor", tests, NULL, NULL);
}
