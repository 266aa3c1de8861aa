// SPDX-License-Identifier: MIT
#include "monitor/machine.h"

#include <cpuid.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "monitor/monitor.h"

enum part { L1I, L1D, L2, LLC, ITLB, DTLB, STLB, PARTS };

/* As the processor has it, in lines of 64 bytes or in pages. */
struct geometry {
	uint64_t entries; /* 0: nobody has told */
	uint32_t ways;	  /* FULLY: any entry may be anywhere */
};

#define FULLY 0

/* A level that is there counts, whatever a later leaf says of it. */
static void tell(struct geometry *of, uint64_t entries, uint32_t ways)
{
	if (!of->entries)
		*of = (struct geometry){entries, ways};
}

/* ---- caches: Intel's leaf 4, and AMD's of the same layout ---- */

static uint32_t bits(uint32_t word, unsigned int from, unsigned int to)
{
	return word >> from & (uint32_t)((1UL << (to - from + 1)) - 1);
}

enum { NO_MORE, DATA, CODE, UNIFIED, LOADS };

static void tell_cache(struct geometry of[PARTS], const struct cpuid *says)
{
	const uint32_t type = bits(says->a, 0, 4), level = bits(says->a, 5, 7);
	const uint64_t line = bits(says->b, 0, 11) + 1, partitions = bits(says->b, 12, 21) + 1;
	const uint32_t ways = bits(says->b, 22, 31) + 1;
	const uint64_t lines = (line * partitions * ways * (says->c + 1UL)) >> MACHINE_LINE_SHIFT;
	const bool fully = bits(says->a, 9, 9);

	if (level == 1 && type != DATA)
		tell(&of[L1I], lines, fully ? FULLY : ways);
	if (level == 1 && type != CODE)
		tell(&of[L1D], lines, fully ? FULLY : ways);
	if (level == 2 && type != CODE)
		tell(&of[L2], lines, fully ? FULLY : ways);
	if (level > 2) /* the last one is what it says */
		of[LLC] = (struct geometry){lines, fully ? FULLY : ways};
}

enum { CACHES_MAX = 16, TLBS_MAX = 64 };

static void ask_caches(cpuid_answers *ask, uint32_t leaf, struct geometry of[PARTS])
{
	for (uint32_t i = 0; i < CACHES_MAX; i++) {
		const struct cpuid says = ask(leaf, i);

		if (bits(says.a, 0, 4) == NO_MORE)
			return;
		tell_cache(of, &says);
	}
}

/* ---- TLBs, of 4 KiB pages ---- */

/* Intel's leaf 0x18. */
static void ask_tlbs(cpuid_answers *ask, struct geometry of[PARTS])
{
	const uint32_t last = ask(0x18, 0).a;

	for (uint32_t i = 0; i <= last && i < TLBS_MAX; i++) {
		const struct cpuid says = ask(0x18, i);
		const uint32_t type = bits(says.d, 0, 4), level = bits(says.d, 5, 7);
		const uint32_t ways = bits(says.b, 16, 31);
		const bool fully = bits(says.d, 8, 8);

		if (type == NO_MORE || !bits(says.b, 0, 0))
			continue;
		if (level == 1 && type == CODE)
			tell(&of[ITLB], (uint64_t)ways * says.c, fully ? FULLY : ways);
		if (level == 1 && (type == DATA || type == UNIFIED || type == LOADS))
			tell(&of[DTLB], (uint64_t)ways * says.c, fully ? FULLY : ways);
		if (level == 2 && type != CODE)
			tell(&of[STLB], (uint64_t)ways * says.c, fully ? FULLY : ways);
	}
}

/* Intel's leaf 2: a byte for each TLB, by which one has to know it. */
static const struct {
	uint8_t byte;
	uint8_t part;
	uint16_t entries, ways;
} descriptors[] = {
	{0x01, ITLB, 32, 4},	  {0x03, DTLB, 64, 4},	    {0x4f, ITLB, 32, FULLY},
	{0x50, ITLB, 64, FULLY},  {0x51, ITLB, 128, FULLY}, {0x52, ITLB, 256, FULLY},
	{0x57, DTLB, 16, 4},	  {0x59, DTLB, 16, FULLY},  {0x5b, DTLB, 64, FULLY},
	{0x5c, DTLB, 128, FULLY}, {0x5d, DTLB, 256, FULLY}, {0x61, ITLB, 48, FULLY},
	{0x64, STLB, 512, 4},	  {0x6a, DTLB, 64, 8},	    {0x6b, STLB, 256, 8},
	{0xa0, DTLB, 32, FULLY},  {0xb0, ITLB, 128, 4},	    {0xb2, ITLB, 64, 4},
	{0xb3, DTLB, 128, 4},	  {0xb4, STLB, 256, 4},	    {0xb5, ITLB, 64, 8},
	{0xb6, ITLB, 128, 8},	  {0xba, DTLB, 64, 4},	    {0xc1, STLB, 1024, 8},
	{0xc3, STLB, 1536, 6},	  {0xca, STLB, 512, 4},
};

static void tell_descriptors(struct geometry of[PARTS], uint32_t word)
{
	if (word >> 31) /* has none */
		return;
	for (; word; word >>= 8)
		for (size_t i = 0; i < sizeof(descriptors) / sizeof(*descriptors); i++)
			if (descriptors[i].byte == (word & 0xff))
				tell(&of[descriptors[i].part], descriptors[i].entries,
				     descriptors[i].ways);
}

static void ask_descriptors(cpuid_answers *ask, struct geometry of[PARTS])
{
	const struct cpuid says = ask(2, 0);

	tell_descriptors(of, says.a & ~0xffU); /* the lowest says how often to ask: once */
	tell_descriptors(of, says.b);
	tell_descriptors(of, says.c);
	tell_descriptors(of, says.d);
}

/* How AMD writes how associative a second level is; 0: there is none. */
static uint32_t ways_of_code(uint32_t code, uint32_t entries)
{
	static const uint8_t ways[] = {
		[1] = 1,  [2] = 2,   [3] = 3,	[4] = 4,   [5] = 6,   [6] = 8,
		[8] = 16, [10] = 32, [11] = 48, [12] = 64, [13] = 96, [14] = 128};

	return code == 15 ? entries : code < sizeof(ways) ? ways[code] : 0;
}

/* AMD's leaves: the second level has TLBs for code and for data; of the model's, for both, it is
 * the one for data. */
static void ask_amd_tlbs(cpuid_answers *ask, struct geometry of[PARTS])
{
	const uint32_t first = ask(0x80000005, 0).b, second = ask(0x80000006, 0).b;
	const uint32_t code_ways = bits(first, 8, 15), data_ways = bits(first, 24, 31);
	const uint32_t entries = bits(second, 16, 27);
	const uint32_t ways = ways_of_code(bits(second, 28, 31), entries);

	tell(&of[ITLB], bits(first, 0, 7), code_ways == 0xff ? FULLY : code_ways);
	tell(&of[DTLB], bits(first, 16, 23), data_ways == 0xff ? FULLY : data_ways);
	if (ways)
		tell(&of[STLB], entries, ways == entries ? FULLY : ways);
}

/* ---- what the model makes of it ---- */

__attribute__((format(printf, 3, 4))) static void add(char *to, size_t size, const char *what, ...)
{
	const size_t used = strlen(to);
	va_list ap;

	va_start(ap, what);
	vsnprintf(to + used, size - used, what, ap);
	va_end(ap);
}

static void add_geometry(char *to, size_t size, enum part part, uint64_t entries, uint32_t ways)
{
	const uint64_t kib = entries >> (10 - MACHINE_LINE_SHIFT);

	if (part >= ITLB)
		add(to, size, "%llu pages", (unsigned long long)entries);
	else if (kib % 1024)
		add(to, size, "%llu KiB", (unsigned long long)kib);
	else
		add(to, size, "%llu MiB", (unsigned long long)kib / 1024);
	if (ways == FULLY)
		add(to, size, " fully associative");
	else
		add(to, size, " in %u way%s", ways, ways == 1 ? "" : "s");
}

static struct machine_cache fit(enum part part, const struct geometry *has)
{
	struct machine_cache fits = tly_machine_cache(has->entries, has->ways, 1);
	const bool first = part != L2 && part != LLC && part != STLB;

	while (first && fits.sets > MACHINE_MAX_L1_SETS)
		fits.sets /= 2;
	return fits;
}

struct machine machine_of_host(cpuid_answers *ask, char *rounded, size_t size)
{
	static const char *const names[PARTS] = {"L1I", "L1D", "L2", "LLC", "iTLB", "dTLB", "STLB"};
	struct machine machine = tly_machine_reference;
	struct machine_cache *const parts[PARTS] = {
		&machine.l1i,  &machine.l1d,  &machine.l2,   &machine.llc,
		&machine.itlb, &machine.dtlb, &machine.stlb,
	};
	struct geometry of[PARTS] = {0};

	*rounded = '\0';
	ask_caches(ask, 4, of);
	if (!of[L1D].entries)
		ask_caches(ask, 0x8000001d, of);
	ask_tlbs(ask, of);
	ask_descriptors(ask, of);
	ask_amd_tlbs(ask, of);
	for (enum part part = 0; part < PARTS; part++) {
		const struct geometry *has = &of[part];
		const struct machine_cache fits = fit(part, has);
		const uint64_t entries = (uint64_t)fits.sets * fits.ways;

		if (entries)
			*parts[part] = fits;
		if (entries == has->entries && entries && fits.ways == has->ways)
			continue;
		add(rounded, size, "%s%s ", *rounded ? "; " : "", names[part]);
		if (!entries) {
			add(rounded, size, "is the reference machine's, CPUID tells of none");
			continue;
		}
		add(rounded, size, "has ");
		add_geometry(rounded, size, part, entries, fits.ways);
		add(rounded, size, ", not ");
		add_geometry(rounded, size, part, has->entries, has->ways);
	}
	return machine;
}

struct cpuid machine_cpuid(uint32_t leaf, uint32_t subleaf)
{
	struct cpuid says;

	if (!__get_cpuid_count(leaf, subleaf, &says.a, &says.b, &says.c, &says.d))
		return (struct cpuid){0};
	return says;
}

void monitor_model_host(struct monitor_options *options, char *rounded, size_t size)
{
	options->machine = machine_of_host(machine_cpuid, rounded, size);
}
