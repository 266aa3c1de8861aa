// SPDX-License-Identifier: MIT
/* The processor that programs see: in its language they ask for raw events (core/encoding.c). */
#include "monitor/vendor.h"

#include "core/core.h"

/* Hygon's family is like the first Zen. */
static uint32_t amd_of(unsigned int family, unsigned int model)
{
	if (family < 0x17)
		return CORE_VENDOR_AMD_BEFORE_ZEN;
	if (family == 0x18 || (family == 0x17 && model < 0x30))
		return CORE_VENDOR_AMD_ZEN;
	return family < 0x1a ? CORE_VENDOR_AMD : CORE_VENDOR_AMD_ZEN5;
}

static uint32_t intel_of(unsigned int family, unsigned int model)
{
	static const struct {
		uint8_t model;
		uint8_t vendor;
	} known[] = {
		{0x2a, CORE_VENDOR_INTEL_OLD},	       {0x2d, CORE_VENDOR_INTEL_OLD},
		{0x3a, CORE_VENDOR_INTEL_OLD},	       {0x3c, CORE_VENDOR_INTEL_OLD},
		{0x3d, CORE_VENDOR_INTEL_OLD},	       {0x3e, CORE_VENDOR_INTEL_OLD},
		{0x3f, CORE_VENDOR_INTEL_OLD},	       {0x45, CORE_VENDOR_INTEL_OLD},
		{0x46, CORE_VENDOR_INTEL_OLD},	       {0x47, CORE_VENDOR_INTEL_OLD},
		{0x4e, CORE_VENDOR_INTEL_OLD},	       {0x4f, CORE_VENDOR_INTEL_OLD},
		{0x55, CORE_VENDOR_INTEL_OLD},	       {0x56, CORE_VENDOR_INTEL_OLD},
		{0x5e, CORE_VENDOR_INTEL_OLD},	       {0x8e, CORE_VENDOR_INTEL_OLD},
		{0x9e, CORE_VENDOR_INTEL_OLD},	       {0xa5, CORE_VENDOR_INTEL_OLD},
		{0xa6, CORE_VENDOR_INTEL_OLD},	       {0x6a, CORE_VENDOR_INTEL_ICE_LAKE},
		{0x6c, CORE_VENDOR_INTEL_ICE_LAKE},    {0x7d, CORE_VENDOR_INTEL_ICE_LAKE},
		{0x7e, CORE_VENDOR_INTEL_ICE_LAKE},    {0x8c, CORE_VENDOR_INTEL_ICE_LAKE},
		{0x8d, CORE_VENDOR_INTEL_ICE_LAKE},    {0x9d, CORE_VENDOR_INTEL_ICE_LAKE},
		{0xa7, CORE_VENDOR_INTEL_ICE_LAKE},    {0x8f, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0x97, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0x9a, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0xad, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0xae, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0xb7, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0xba, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0xbf, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0xcf, CORE_VENDOR_INTEL_GOLDEN_COVE},
	};

	for (size_t i = 0; family == 6 && i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].model == model)
			return known[i].vendor;
	return CORE_VENDOR_INTEL;
}

uint32_t vendor_of(cpuid_answers *ask)
{
	const struct cpuid vendor = ask(0, 0), version = ask(1, 0);
	const unsigned int family = (version.a >> 8 & 0xf) + (version.a >> 20 & 0xff);
	const unsigned int model = (version.a >> 4 & 0xf) | (version.a >> 12 & 0xf0);

	/* "AuthenticAMD", or "HygonGenuine", whose counters are AMD's */
	if (vendor.b == 0x68747541 || vendor.b == 0x6f677948)
		return amd_of(family, model);
	return intel_of(family, model);
}
