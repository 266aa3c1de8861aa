// SPDX-License-Identifier: MIT
#include "core/encoding.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_tree.h"

enum { CPU_TYPE = 4, OP_TYPE = 514 };

static int kind_of(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = test_attr(type, config);

	return core_encoding(&attr);
}

static void all_generic_events_are_there(void **state)
{
	uint64_t seen = 0;

	(void)state;
	for (uint64_t config = 0; config < PERF_COUNT_HW_MAX; config++) {
		int kind = kind_of(PERF_TYPE_HARDWARE, config);

		assert_in_range(kind, 0, CORE_HARDWARE_KINDS - 1);
		seen |= CORE_KIND_BIT(kind);
	}
	assert_int_equal(__builtin_popcountll(seen), PERF_COUNT_HW_MAX);
	assert_int_equal(kind_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
			 CORE_INSTRUCTIONS);
	assert_int_equal(kind_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_MAX), -EINVAL);
	/* the upper half names the unit */
	assert_int_equal(kind_of(PERF_TYPE_HARDWARE, (uint64_t)CPU_TYPE << 32 | 1),
			 CORE_INSTRUCTIONS);
	assert_int_equal(kind_of(PERF_TYPE_HARDWARE, 9UL << 32 | 1), -ENOENT);
}

static uint64_t cell(uint64_t id, uint64_t op, uint64_t result)
{
	return id | op << 8 | result << 16;
}

static void cache_events_mean_something_or_are_refused(void **state)
{
	const int loads = kind_of(PERF_TYPE_HW_CACHE, cell(PERF_COUNT_HW_CACHE_L1D, 0, 0));

	(void)state;
	assert_int_equal(loads, CORE_LOADS);
	assert_int_equal(kind_of(PERF_TYPE_HW_CACHE, cell(PERF_COUNT_HW_CACHE_L1D, 1, 1)),
			 CORE_L1D_STORE_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_HW_CACHE, cell(PERF_COUNT_HW_CACHE_BPU, 0, 1)),
			 CORE_BRANCH_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_HW_CACHE, cell(PERF_COUNT_HW_CACHE_NODE, 0, 0)),
			 -ENOENT);
	assert_int_equal(kind_of(PERF_TYPE_HW_CACHE, cell(PERF_COUNT_HW_CACHE_L1I, 1, 0)), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_HW_CACHE, cell(PERF_COUNT_HW_CACHE_MAX, 0, 0)), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_HW_CACHE, cell(0, 3, 0)), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_HW_CACHE, cell(0, 0, 2)), -EINVAL);
	for (uint64_t config = 0; config < 1UL << 19; config++) {
		int kind = kind_of(PERF_TYPE_HW_CACHE, config);

		if (kind < 0)
			assert_true(kind == -ENOENT || kind == -EINVAL);
		else
			assert_in_range(kind, 0, CORE_HARDWARE_KINDS - 1);
	}
}

/* As a client does that reads events/ and format/. */
static uint64_t config_of(const char *terms)
{
	uint64_t config = 0;
	char copy[64], *save, *term;

	assert_true(strlen(terms) < sizeof(copy));
	strcpy(copy, terms);
	for (term = strtok_r(copy, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
		const struct core_format *format;
		size_t name = strcspn(term, "="), i;

		for (i = 0; (format = core_format(i)); i++)
			if (strlen(format->name) == name && !strncmp(format->name, term, name))
				break;
		assert_non_null(format);
		assert_memory_equal(format->bits, "config:", 7);
		config |= strtoull(term + name + 1, NULL, 0) << strtoul(format->bits + 7, NULL, 10);
	}
	return config;
}

static void speak(enum core_vendor vendor)
{
	((struct core_settings *)core_settings())->vendor = vendor;
}

static void the_names_of_raw_codes_are_right(void **state)
{
	uint64_t seen = 0;

	(void)state;
	for (size_t i = 0; i < core_nr_named_events; i++) {
		const struct core_named_event *event = &core_named_events[i];

		assert_string_equal(core_event_terms(event), event->terms);
		assert_int_equal(config_of(event->terms), event->config);
		assert_int_equal(kind_of(PERF_TYPE_RAW, event->config), event->kind);
		for (int vendor = 0; vendor <= CORE_VENDOR_AMD_ZEN5; vendor++) {
			speak(vendor);
			assert_int_equal(kind_of(PERF_TYPE_RAW, config_of(core_event_terms(event))),
					 event->kind);
			assert_int_equal(kind_of(PERF_TYPE_RAW, event->own), event->kind);
		}
		speak(CORE_VENDOR_INTEL);
		if (event->kind < CORE_HARDWARE_KINDS) /* else one of several, or of none */
			seen |= CORE_KIND_BIT(event->kind);
	}
	assert_int_equal(seen, CORE_KIND_BIT(CORE_HARDWARE_KINDS) - 1);
}

static void every_kind_has_a_code_of_our_own(void **state)
{
	(void)state;
	for (int kind = 0; kind < CORE_HARDWARE_KINDS; kind++) {
		assert_int_equal(kind_of(PERF_TYPE_RAW, CORE_RAW_KIND(kind)), kind);
		assert_int_equal(kind_of(CPU_TYPE, CORE_RAW_KIND(kind)), kind);
		assert_int_equal(kind_of(PERF_TYPE_RAW, CORE_RAW_KIND(kind) | 1), -EINVAL);
	}
	assert_int_equal(kind_of(PERF_TYPE_RAW, (uint64_t)(CORE_HARDWARE_KINDS + 1) << 48),
			 -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 1UL << 56 | 0xc0), -EINVAL);
}

/* Recordings have them. */
static void the_codes_of_our_own_stay_what_they_are(void **state)
{
	(void)state;
	assert_int_equal(kind_of(PERF_TYPE_RAW, 1UL << 48), CORE_INSTRUCTIONS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 9UL << 48), CORE_STORES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 10UL << 48), CORE_BRANCH_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 33UL << 48), CORE_ITLB_LOAD_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 34UL << 48), CORE_FP_SCALAR_DOUBLE);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 46UL << 48), CORE_FLOPS_BFLOAT);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 47UL << 48), CORE_FP_SCALAR_HALF);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 51UL << 48), CORE_BRANCH_MISSES_CONDITIONAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 52UL << 48), CORE_LLC_PREFETCHES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 240UL << 48), CORE_SLOTS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 248UL << 48), CORE_SLOTS_BACKEND);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 249UL << 48), -EINVAL);
}

static void the_architectural_codes_are_known_in_both_spellings(void **state)
{
	(void)state;
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc0), CORE_INSTRUCTIONS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x5300c0), CORE_INSTRUCTIONS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x3c), CORE_CYCLES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x13c), CORE_REF_CYCLES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x300), CORE_REF_CYCLES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x4f2e), CORE_LLC_REFERENCES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x412e), CORE_LLC_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc4), CORE_BRANCHES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc5), CORE_BRANCH_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0151), CORE_L1D_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xe860), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x01c7), CORE_FP_SCALAR_DOUBLE);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x80c7), CORE_FP_512_SINGLE);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xfcc7), CORE_FP_VECTOR);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0f03), -EINVAL);
	/* edge, invert and a counter mask would be something else */
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x4000c0), CORE_INSTRUCTIONS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0400c0), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x8000c0), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x10000c0), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xd1), -EINVAL);
}

/* perf mem asks for loads that are slow, in config1. */
static void loads_may_be_told_apart_by_how_long_they_take(void **state)
{
	static const struct {
		uint64_t latency;
		int kind;
	} cases[] = {
		{0, CORE_LOADS},
		{3, CORE_LOADS},
		{4, CORE_L1D_LOAD_MISSES},
		{13, CORE_L1D_LOAD_MISSES},
		{14, CORE_LLC_LOADS},
		{30, CORE_LLC_LOADS},
		{50, CORE_LLC_LOAD_MISSES},
		{249, CORE_LLC_LOAD_MISSES},
		{250, CORE_ZERO},
		{65535, CORE_ZERO},
		{65536, -EINVAL},
	};
	struct perf_event_attr attr = test_attr(PERF_TYPE_RAW, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attr.config1 = cases[i].latency;
		attr.config = CORE_RAW_KIND(CORE_LOADS);
		assert_int_equal(core_encoding(&attr), cases[i].kind);
		attr.config = 0x5301cd;
		assert_int_equal(core_encoding(&attr), cases[i].kind);
		attr.config = 0x81d0;
		assert_int_equal(core_encoding(&attr), CORE_LOADS);
	}
}

/* As processors of Intel's before and since Ice Lake, and since Golden Cove, spell it. */
static void on_an_intel_host_they_are_its_generations(void **state)
{
	static const struct {
		uint16_t code;
		int any, old, ice_lake, golden_cove;
	} codes[] = {
		{0x01c4, -EINVAL, CORE_BRANCHES_CONDITIONAL, CORE_CONDITIONS_TAKEN,
		 CORE_CONDITIONS_TAKEN},
		{0x80c4, -EINVAL, -EINVAL, CORE_BRANCHES_INDIRECT, CORE_BRANCHES_INDIRECT},
		{0x01c5, -EINVAL, CORE_BRANCH_MISSES_CONDITIONAL, -EINVAL, -EINVAL},
		{0x11c5, -EINVAL, -EINVAL, CORE_BRANCH_MISSES_CONDITIONAL,
		 CORE_BRANCH_MISSES_CONDITIONAL},
		{0x01b0, -EINVAL, CORE_LLC_LOADS, CORE_LLC_LOADS, -EINVAL},
		{0x0821, -EINVAL, -EINVAL, -EINVAL, CORE_DATA_READS},
		{0x03cf, -EINVAL, -EINVAL, -EINVAL, CORE_FP_SCALAR_HALF},
		{0x1ccf, -EINVAL, -EINVAL, -EINVAL, CORE_FP_VECTOR_HALF},
		{0x01d1, CORE_L1D_LOAD_HITS, CORE_L1D_LOAD_HITS, CORE_L1D_LOAD_HITS,
		 CORE_L1D_LOAD_HITS},
		{0x20d1, CORE_LLC_LOAD_MISSES, CORE_LLC_LOAD_MISSES, CORE_LLC_LOAD_MISSES,
		 CORE_LLC_LOAD_MISSES},
		{0x00c2, -EINVAL, -EINVAL, -EINVAL, -EINVAL},
	};
	struct core_settings *settings = (struct core_settings *)core_settings();

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		settings->vendor = CORE_VENDOR_INTEL;
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].any);
		settings->vendor = CORE_VENDOR_INTEL_OLD;
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].old);
		settings->vendor = CORE_VENDOR_INTEL_ICE_LAKE;
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].ice_lake);
		settings->vendor = CORE_VENDOR_INTEL_GOLDEN_COVE;
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].golden_cove);
	}
	settings->vendor = CORE_VENDOR_INTEL;
}

static void on_an_amd_host_raw_codes_are_amds(void **state)
{
	(void)state;
	speak(CORE_VENDOR_AMD);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc0), CORE_INSTRUCTIONS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x530076), CORE_CYCLES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc2), CORE_BRANCHES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc4), CORE_BRANCHES_TAKEN);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xd1), CORE_BRANCHES_CONDITIONAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xe860), CORE_L1D_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0151), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc5), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0103), CORE_FLOPS_ADD);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0f03), CORE_FLOPS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x01c7), -EINVAL);
	/* what Linux itself asks its processors for */
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x100000120), CORE_REF_CYCLES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xff60), CORE_L2_ALL_REFERENCES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0964), CORE_L2_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xc860), CORE_L1D_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xff45), CORE_DTLB_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0xf045), CORE_DTLB_WALKS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x00a9), CORE_STALLED_FRONTEND);
	/* of the pipes of the FPU nothing is known */
	for (uint64_t umask = 0; umask < 0x100; umask++)
		assert_int_equal(kind_of(PERF_TYPE_RAW, umask << 8), -EINVAL);
	speak(CORE_VENDOR_INTEL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x0400), CORE_SLOTS);
}

static void of_an_amds_event_the_number_has_twelve_bits(void **state)
{
	(void)state;
	speak(CORE_VENDOR_AMD);
	assert_string_equal(core_format(0)->bits, "config:0-7,32-35");
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x100001f8e), CORE_L1I_LOADS);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x10000188e), CORE_L1I_LOAD_MISSES);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x1000000c7), CORE_BRANCH_MISSES_CONDITIONAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x1000000c9), CORE_BRANCHES_UNCONDITIONAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x1f8e), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x200001f8e), -EINVAL);
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x1000000c0), -EINVAL); /* no event 0x1c0 */
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x1000000c2), -EINVAL);
	speak(CORE_VENDOR_INTEL);
	assert_string_equal(core_format(0)->bits, "config:0-7");
	assert_int_equal(kind_of(PERF_TYPE_RAW, 0x1000000c0), -EINVAL); /* in a transaction */
}

/* Bits of a umask are added up, and some are of what is not there. */
static void of_an_amds_umask_some_bits_add_nothing(void **state)
{
	static const struct {
		uint64_t code;
		int kind;
	} cases[] = {
		{0x0143, CORE_L2_DATA_HITS},
		{0x0343, CORE_CACHES_DATA_HITS},
		{0x4843, CORE_LLC_DATA_MISSES},
		{0xff43, CORE_L1D_MISSES},
		{0x0f43, CORE_L1D_MISSES},
		{0x5043, -EINVAL},
		{0x0043, -EINVAL},
		{0x0943, -EINVAL},
		{0xdf44, CORE_L1D_MISSES},
		{0x0145, CORE_STLB_DATA_HITS},
		{0x0f45, CORE_STLB_DATA_HITS},
		{0x0e45, -EINVAL},
		{0x3045, CORE_DTLB_WALKS},
		{0x4045, -EINVAL},
		{0x3f45, CORE_DTLB_MISSES},
		{0x1845, -EINVAL},
		{0xf960, CORE_L2_REFERENCES},
		{0xe060, CORE_L1D_MISSES},
		{0xa060, CORE_L1D_LOAD_MISSES},
		{0x2060, -EINVAL},
		{0x0260, CORE_L1D_PREFETCHES},
		{0x1260, CORE_L2_CODE_AND_PREFETCHES},
		{0xf064, CORE_L2_DATA_HITS},
		{0xe064, CORE_L2_LOAD_HITS},
		{0x4064, -EINVAL},
		{0xf664, CORE_L2_HITS},
		{0xff64, CORE_L2_REFERENCES},
		{0x0764, CORE_L1I_LOAD_MISSES},
		{0xff70, CORE_L2_PREFETCH_HITS},
		{0x1f70, CORE_L2_PREFETCH_HITS},
		{0xe070, -EINVAL},
		{0xff71, -EINVAL},
		{0x0794, CORE_ITLB_HITS},
		{0x0294, -EINVAL},
		{0x0084, -EINVAL},
	};

	(void)state;
	speak(CORE_VENDOR_AMD);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("# %#lx\n", cases[i].code);
		assert_int_equal(kind_of(PERF_TYPE_RAW, cases[i].code), cases[i].kind);
	}
	speak(CORE_VENDOR_INTEL);
}

static void on_an_amd_host_they_are_its_generations(void **state)
{
	static const struct {
		uint64_t code;
		int before, zen, zen2, zen5;
	} codes[] = {
		{0x00c0, CORE_INSTRUCTIONS, CORE_INSTRUCTIONS, CORE_INSTRUCTIONS,
		 CORE_INSTRUCTIONS},
		{0x0076, CORE_CYCLES, CORE_CYCLES, CORE_CYCLES, CORE_CYCLES},
		{0x00c2, CORE_BRANCHES, CORE_BRANCHES, CORE_BRANCHES, CORE_BRANCHES},
		{0x00d1, -EINVAL, CORE_BRANCHES_CONDITIONAL, CORE_BRANCHES_CONDITIONAL,
		 CORE_BRANCHES_CONDITIONAL},
		{0xff45, -EINVAL, CORE_DTLB_MISSES, CORE_DTLB_MISSES, CORE_DTLB_MISSES},
		{0xe860, -EINVAL, CORE_L1D_MISSES, CORE_L1D_MISSES, CORE_L1D_MISSES},
		{0x00d2, -EINVAL, CORE_BRANCH_MISSES_CONDITIONAL, -EINVAL, -EINVAL},
		{0x1000000c7, -EINVAL, -EINVAL, CORE_BRANCH_MISSES_CONDITIONAL,
		 CORE_BRANCH_MISSES_CONDITIONAL},
		{0x0103, -EINVAL, -EINVAL, CORE_FLOPS_ADD, CORE_FLOPS_ADD},
		{0x1103, -EINVAL, CORE_FLOPS_ADD, -EINVAL, -EINVAL},
		{0x0f03, -EINVAL, -EINVAL, CORE_FLOPS, CORE_FLOPS_AND_BFLOAT},
		{0x1003, -EINVAL, -EINVAL, CORE_FLOPS_BFLOAT, -EINVAL},
		{0x2003, -EINVAL, -EINVAL, -EINVAL, CORE_FLOPS_BFLOAT},
		{0x1f03, -EINVAL, -EINVAL, CORE_FLOPS_AND_BFLOAT, -EINVAL},
		{0xff03, -EINVAL, CORE_FLOPS, CORE_FLOPS_AND_BFLOAT, -EINVAL},
		{0x8003, -EINVAL, -EINVAL, -EINVAL, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		print_message("# %#lx\n", codes[i].code);
		speak(CORE_VENDOR_AMD_BEFORE_ZEN);
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].before);
		speak(CORE_VENDOR_AMD_ZEN);
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].zen);
		speak(CORE_VENDOR_AMD);
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].zen2);
		speak(CORE_VENDOR_AMD_ZEN5);
		assert_int_equal(kind_of(PERF_TYPE_RAW, codes[i].code), codes[i].zen5);
	}
	speak(CORE_VENDOR_INTEL);
}

/* As AMD's ibs_op: sampled by cycles, and never counted. */
static void operations_are_sampled(void **state)
{
	struct core_settings *settings = (struct core_settings *)core_settings();
	struct perf_event_attr attr = test_attr(OP_TYPE, 0);

	(void)state;
	settings->op_type = OP_TYPE;
	assert_int_equal(core_encoding(&attr), -EINVAL);
	attr.sample_period = 4096;
	assert_int_equal(core_encoding(&attr), CORE_CYCLES);
	attr.exclude_user = 1;
	assert_int_equal(core_encoding(&attr), CORE_ZERO);
	attr.exclude_user = 0;
	for (unsigned int bit = 0; bit < 64; bit++) {
		attr.config = 1UL << bit;
		assert_int_equal(core_encoding(&attr), -EINVAL);
	}
	settings->op_type = 0;
	attr.config = 0;
	assert_int_equal(core_encoding(&attr), -ENOENT);
}

static void other_types_do_not_exist(void **state)
{
	(void)state;
	assert_int_equal(kind_of(PERF_TYPE_TRACEPOINT, 1), -ENOENT);
	assert_int_equal(kind_of(6, 0), -ENOENT);
	assert_int_equal(kind_of(UINT32_MAX, 0), -ENOENT);
}

static void software_events_are_the_kernels(void **state)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);

	(void)state;
	for (uint64_t config = 0; config < 12; config++)
		assert_in_range(kind_of(PERF_TYPE_SOFTWARE, config), CORE_HARDWARE_KINDS,
				CORE_ZERO);
	assert_int_equal(kind_of(PERF_TYPE_SOFTWARE, 12), -ENOENT);
	assert_int_equal(kind_of(PERF_TYPE_SOFTWARE, 1UL << 63), -ENOENT);
	assert_int_equal(core_encoding(&attr), CORE_ZERO);
	attr.exclude_kernel = 0;
	attr.exclude_user = 1;
	assert_int_equal(core_encoding(&attr), CORE_CONTEXT_SWITCHES);
}

static void nothing_but_user_code_is_counted(void **state)
{
	struct perf_event_attr attr = test_instructions();

	(void)state;
	attr.exclude_user = 1;
	assert_int_equal(core_encoding(&attr), CORE_ZERO);
	attr.config = PERF_COUNT_HW_MAX;
	assert_int_equal(core_encoding(&attr), -EINVAL);
	attr = test_instructions();
	attr.exclude_host = 1;
	assert_int_equal(core_encoding(&attr), CORE_ZERO);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	assert_int_equal(core_encoding(&attr), CORE_PAGE_FAULTS);
	attr = test_instructions();
	attr.exclude_guest = attr.exclude_hv = attr.exclude_idle = 1;
	assert_int_equal(core_encoding(&attr), CORE_INSTRUCTIONS);
}

static int breakpoint(uint32_t type, uint64_t address, uint64_t length)
{
	struct perf_event_attr attr = test_attr(PERF_TYPE_BREAKPOINT, 0);

	attr.bp_type = type;
	attr.bp_addr = address;
	attr.bp_len = length;
	return core_encoding(&attr);
}

static void breakpoints_have_types_and_sizes(void **state)
{
	(void)state;
	for (uint64_t length = 0; length < 20; length++) {
		int expected = length == 1 || length == 2 || length == 4 || length == 8
				       ? CORE_BREAKPOINT
				       : -EINVAL;

		assert_int_equal(breakpoint(HW_BREAKPOINT_R, 0x1000, length), expected);
		assert_int_equal(breakpoint(HW_BREAKPOINT_W, 0x1000, length), expected);
		assert_int_equal(breakpoint(HW_BREAKPOINT_RW, 0x1000, length), expected);
		assert_int_equal(breakpoint(HW_BREAKPOINT_X, 0x1001, length),
				 length == 8 ? CORE_BREAKPOINT : -EINVAL);
		assert_int_equal(breakpoint(HW_BREAKPOINT_EMPTY, 0x1000, length), -EINVAL);
		assert_int_equal(breakpoint(HW_BREAKPOINT_X | HW_BREAKPOINT_R, 0x1000, length),
				 -EINVAL);
		assert_int_equal(breakpoint(8, 0x1000, length), -EINVAL);
	}
	assert_int_equal(breakpoint(HW_BREAKPOINT_W, 0x1001, 1), CORE_BREAKPOINT);
	assert_int_equal(breakpoint(HW_BREAKPOINT_W, 0x1001, 2), -EINVAL);
	assert_int_equal(breakpoint(HW_BREAKPOINT_W, 0x1004, 8), -EINVAL);
	assert_int_equal(breakpoint(HW_BREAKPOINT_W, 1UL << 63, 8), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_CASE(all_generic_events_are_there),
		TREE_CASE(cache_events_mean_something_or_are_refused),
		TREE_CASE(the_names_of_raw_codes_are_right),
		TREE_CASE(every_kind_has_a_code_of_our_own),
		TREE_CASE(the_codes_of_our_own_stay_what_they_are),
		TREE_CASE(the_architectural_codes_are_known_in_both_spellings),
		TREE_CASE(loads_may_be_told_apart_by_how_long_they_take),
		TREE_CASE(on_an_intel_host_they_are_its_generations),
		TREE_CASE(on_an_amd_host_raw_codes_are_amds),
		TREE_CASE(of_an_amds_event_the_number_has_twelve_bits),
		TREE_CASE(of_an_amds_umask_some_bits_add_nothing),
		TREE_CASE(on_an_amd_host_they_are_its_generations),
		TREE_CASE(operations_are_sampled),
		TREE_CASE(other_types_do_not_exist),
		TREE_CASE(software_events_are_the_kernels),
		TREE_CASE(nothing_but_user_code_is_counted),
		TREE_CASE(breakpoints_have_types_and_sizes),
	};

	return cmocka_run_group_tests_name("core/encoding", tests, NULL, NULL);
}
