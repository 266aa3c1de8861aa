// SPDX-License-Identifier: MIT
#include "core/encoding.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <stdbool.h>

#include "abi/machine.h"
#include "core/aux.h"
#include "core/core.h"

/* ---- generic events ---- */

static const uint8_t hardware[] = {
	[PERF_COUNT_HW_CPU_CYCLES] = CORE_CYCLES,
	[PERF_COUNT_HW_INSTRUCTIONS] = CORE_INSTRUCTIONS,
	[PERF_COUNT_HW_CACHE_REFERENCES] = CORE_LLC_REFERENCES,
	[PERF_COUNT_HW_CACHE_MISSES] = CORE_LLC_MISSES,
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = CORE_BRANCHES,
	[PERF_COUNT_HW_BRANCH_MISSES] = CORE_BRANCH_MISSES,
	[PERF_COUNT_HW_BUS_CYCLES] = CORE_BUS_CYCLES,
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = CORE_STALLED_FRONTEND,
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = CORE_STALLED_BACKEND,
	[PERF_COUNT_HW_REF_CPU_CYCLES] = CORE_REF_CYCLES,
};

static const uint8_t software[] = {
	[PERF_COUNT_SW_CPU_CLOCK] = CORE_CPU_CLOCK,
	[PERF_COUNT_SW_TASK_CLOCK] = CORE_TASK_CLOCK,
	[PERF_COUNT_SW_PAGE_FAULTS] = CORE_PAGE_FAULTS,
	[PERF_COUNT_SW_CONTEXT_SWITCHES] = CORE_CONTEXT_SWITCHES,
	[PERF_COUNT_SW_CPU_MIGRATIONS] = CORE_CPU_MIGRATIONS,
	[PERF_COUNT_SW_PAGE_FAULTS_MIN] = CORE_PAGE_FAULTS_MIN,
	[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = CORE_PAGE_FAULTS_MAJ,
	[PERF_COUNT_SW_ALIGNMENT_FAULTS] = CORE_ZERO,
	[PERF_COUNT_SW_EMULATION_FAULTS] = CORE_ZERO,
	[PERF_COUNT_SW_DUMMY] = CORE_ZERO,
	[PERF_COUNT_SW_BPF_OUTPUT] = CORE_ZERO,
	[PERF_COUNT_SW_CGROUP_SWITCHES] = CORE_CGROUP_SWITCHES,
};

/* Of a cell: nothing to be counted, or something that cannot be. */
enum { NONE = 0x80, NEVER = 0x81 };

/* By cache and operation: accesses and misses. */
static const uint8_t
	cache[PERF_COUNT_HW_CACHE_MAX][PERF_COUNT_HW_CACHE_OP_MAX][PERF_COUNT_HW_CACHE_RESULT_MAX] =
		{
			[PERF_COUNT_HW_CACHE_L1D] = {{CORE_LOADS, CORE_L1D_LOAD_MISSES},
						     {CORE_STORES, CORE_L1D_STORE_MISSES},
						     {CORE_L1D_PREFETCHES, NONE}},
			[PERF_COUNT_HW_CACHE_L1I] = {{CORE_L1I_LOADS, CORE_L1I_LOAD_MISSES},
						     {NEVER, NEVER},
						     {NONE, NONE}},
			[PERF_COUNT_HW_CACHE_LL] = {{CORE_LLC_LOADS, CORE_LLC_LOAD_MISSES},
						    {CORE_LLC_STORES, CORE_LLC_STORE_MISSES},
						    {NONE, NONE}},
			[PERF_COUNT_HW_CACHE_DTLB] = {{CORE_LOADS, CORE_DTLB_LOAD_MISSES},
						      {CORE_STORES, CORE_DTLB_STORE_MISSES},
						      {NONE, NONE}},
			[PERF_COUNT_HW_CACHE_ITLB] = {{CORE_ITLB_LOADS, CORE_ITLB_LOAD_MISSES},
						      {NEVER, NEVER},
						      {NEVER, NEVER}},
			[PERF_COUNT_HW_CACHE_BPU] = {{CORE_BRANCHES, CORE_BRANCH_MISSES},
						     {NEVER, NEVER},
						     {NEVER, NEVER}},
			[PERF_COUNT_HW_CACHE_NODE] = {{NONE, NONE}, {NONE, NONE}, {NONE, NONE}},
};

static int cache_kind(uint64_t config)
{
	uint64_t id = config & 0xff, op = config >> 8 & 0xff, result = config >> 16;
	uint8_t kind;

	if (id >= PERF_COUNT_HW_CACHE_MAX || op >= PERF_COUNT_HW_CACHE_OP_MAX ||
	    result >= PERF_COUNT_HW_CACHE_RESULT_MAX)
		return -EINVAL;
	kind = cache[id][op][result];
	if (kind == NEVER)
		return -EINVAL;
	return kind == NONE ? -ENOENT : kind;
}

/* ---- the virtual PMU's own codes ---- */

#define ARCHITECTURAL(name, event, umask, kind)                                                    \
	{                                                                                          \
		name, "event=" #event ",umask=" #umask, (event) | (umask) << 8, kind, NULL,        \
			(event) | (umask) << 8                                                     \
	}
#define OWN(name, number, kind)                                                                    \
	{                                                                                          \
		name, "kind=" #number, CORE_RAW_KIND(kind), kind, NULL, CORE_RAW_KIND(kind)        \
	}
#define INTELS(name, umask, number, kind)                                                          \
	{                                                                                          \
		name, "event=0x00,umask=" #umask, (umask) << 8, kind, "kind=" #number,             \
			(uint64_t)(number) << CORE_RAW_KIND_SHIFT                                  \
	}

const struct core_named_event core_named_events[] = {
	ARCHITECTURAL("cpu-cycles", 0x3c, 0x00, CORE_CYCLES),
	ARCHITECTURAL("ref-cycles", 0x3c, 0x01, CORE_REF_CYCLES),
	ARCHITECTURAL("instructions", 0xc0, 0x00, CORE_INSTRUCTIONS),
	ARCHITECTURAL("cache-references", 0x2e, 0x4f, CORE_LLC_REFERENCES),
	ARCHITECTURAL("cache-misses", 0x2e, 0x41, CORE_LLC_MISSES),
	/* As Intel's have them since Ice Lake; to AMD's they are the pipes of the FPU. In the model
	 * a wait is for one thing. */
	INTELS("slots", 0x04, 240, CORE_SLOTS),
	INTELS("topdown-retiring", 0x80, 241, CORE_SLOTS_RETIRING),
	INTELS("topdown-bad-spec", 0x81, 242, CORE_SLOTS_BAD_SPECULATION),
	INTELS("topdown-fe-bound", 0x82, 243, CORE_SLOTS_FRONTEND),
	INTELS("topdown-be-bound", 0x83, 244, CORE_SLOTS_BACKEND),
	INTELS("topdown-heavy-ops", 0x84, 245, CORE_ZERO),
	INTELS("topdown-br-mispredict", 0x85, 246, CORE_SLOTS_BAD_SPECULATION),
	INTELS("topdown-fetch-lat", 0x86, 247, CORE_SLOTS_FRONTEND),
	INTELS("topdown-mem-bound", 0x87, 248, CORE_SLOTS_BACKEND),
	OWN("branch-instructions", 2, CORE_BRANCHES),
	OWN("branches_conditional", 3, CORE_BRANCHES_CONDITIONAL),
	OWN("branches_taken", 4, CORE_BRANCHES_TAKEN),
	OWN("calls", 5, CORE_CALLS),
	OWN("returns", 6, CORE_RETURNS),
	OWN("branches_indirect", 7, CORE_BRANCHES_INDIRECT),
	OWN("mem-loads", 8, CORE_LOADS),
	OWN("mem-stores", 9, CORE_STORES),
	OWN("branch-misses", 10, CORE_BRANCH_MISSES),
	OWN("bus-cycles", 13, CORE_BUS_CYCLES),
	OWN("stalled-cycles-frontend", 14, CORE_STALLED_FRONTEND),
	OWN("stalled-cycles-backend", 15, CORE_STALLED_BACKEND),
	OWN("l1d_load_misses", 16, CORE_L1D_LOAD_MISSES),
	OWN("l1d_store_misses", 17, CORE_L1D_STORE_MISSES),
	OWN("l1d_prefetches", 18, CORE_L1D_PREFETCHES),
	OWN("l1i_loads", 19, CORE_L1I_LOADS),
	OWN("l1i_load_misses", 20, CORE_L1I_LOAD_MISSES),
	OWN("l2_references", 21, CORE_L2_REFERENCES),
	OWN("l2_misses", 22, CORE_L2_MISSES),
	OWN("llc_loads", 23, CORE_LLC_LOADS),
	OWN("llc_load_misses", 24, CORE_LLC_LOAD_MISSES),
	OWN("llc_stores", 25, CORE_LLC_STORES),
	OWN("llc_store_misses", 26, CORE_LLC_STORE_MISSES),
	OWN("dtlb_load_misses", 29, CORE_DTLB_LOAD_MISSES),
	OWN("dtlb_store_misses", 30, CORE_DTLB_STORE_MISSES),
	OWN("dtlb_walks", 31, CORE_DTLB_WALKS),
	OWN("itlb_loads", 32, CORE_ITLB_LOADS),
	OWN("itlb_load_misses", 33, CORE_ITLB_LOAD_MISSES),
	OWN("fp_scalar_double", 34, CORE_FP_SCALAR_DOUBLE),
	OWN("fp_scalar_single", 35, CORE_FP_SCALAR_SINGLE),
	OWN("fp_128_double", 36, CORE_FP_128_DOUBLE),
	OWN("fp_128_single", 37, CORE_FP_128_SINGLE),
	OWN("fp_256_double", 38, CORE_FP_256_DOUBLE),
	OWN("fp_256_single", 39, CORE_FP_256_SINGLE),
	OWN("fp_512_double", 40, CORE_FP_512_DOUBLE),
	OWN("fp_512_single", 41, CORE_FP_512_SINGLE),
	OWN("flops_add", 42, CORE_FLOPS_ADD),
	OWN("flops_multiply", 43, CORE_FLOPS_MULTIPLY),
	OWN("flops_divide", 44, CORE_FLOPS_DIVIDE),
	OWN("flops_fma", 45, CORE_FLOPS_FMA),
	OWN("flops_bfloat", 46, CORE_FLOPS_BFLOAT),
	OWN("fp_scalar_half", 47, CORE_FP_SCALAR_HALF),
	OWN("fp_128_half", 48, CORE_FP_128_HALF),
	OWN("fp_256_half", 49, CORE_FP_256_HALF),
	OWN("fp_512_half", 50, CORE_FP_512_HALF),
	OWN("branch_misses_conditional", 51, CORE_BRANCH_MISSES_CONDITIONAL),
	OWN("llc_prefetches", 52, CORE_LLC_PREFETCHES),
};
const size_t core_nr_named_events = sizeof(core_named_events) / sizeof(core_named_events[0]);

#define NR(array) (sizeof(array) / sizeof(*(array)))

#define VENDOR(name) (1U << CORE_VENDOR_##name)
#define ZENS	     (VENDOR(AMD_ZEN) | VENDOR(AMD) | VENDOR(AMD_ZEN5))
#define AMDS	     (ZENS | VENDOR(AMD_BEFORE_ZEN))

static bool is_of(unsigned int vendors)
{
	return vendors & 1U << core_settings()->vendor;
}

const char *core_event_terms(const struct core_named_event *event)
{
	return event->elsewhere && is_of(AMDS) ? event->elsewhere : event->terms;
}

/*
 * Terms that processors have are there, too: an event with one of them, or with a code that takes
 * one, is refused, and not those beside it.
 */
static const struct core_format formats[] = {
	{"event", "config:0-7"},      {"umask", "config:8-15"},
	{"edge", "config:18"},	      {"inv", "config:23"},
	{"cmask", "config:24-31"},    {"pc", "config:19"},
	{"any", "config:21"},	      {"in_tx", "config:32"},
	{"in_tx_cp", "config:33"},    {"offcore_rsp", "config1:0-63"},
	{"frontend", "config1:0-23"}, {"kind", "config:48-55"},
	{"ldlat", "config1:0-15"},
};

static const struct core_format amds_formats[] = {
	{"event", "config:0-7,32-35"}, {"umask", "config:8-15"},  {"edge", "config:18"},
	{"inv", "config:23"},	       {"cmask", "config:24-31"}, {"kind", "config:48-55"},
	{"ldlat", "config1:0-15"},
};

const struct core_format *core_format(size_t index)
{
	const bool amds = is_of(AMDS);
	const size_t nr = amds ? NR(amds_formats) : NR(formats);

	return index < nr ? &(amds ? amds_formats : formats)[index] : NULL;
}

struct alias {
	uint64_t code;
	uint8_t kind;
	uint8_t nothing; /* bits of the umask for what the model has not: they add nothing */
};

/* An event of AMD's, whose number has twelve bits. */
#define AMDS_CODE(event, umask)                                                                    \
	((uint64_t)((event) >> 8) << 32 | (uint64_t)((umask) << 8 | ((event)&0xff)))

/* MEM_TRANS_RETIRED.LOAD_LATENCY, which perf mem asks Intel's for by the name of mem-loads. */
#define CODE_SLOW_LOADS 0x01cd

/*
 * Codes that a vendor's processors have for what the virtual one counts: programs look at the
 * processor that they find and ask in its language, libpfm4 and PAPI's presets for one. They mean
 * different things to different vendors, so the host's decides, and where they mean different
 * things to two generations of a vendor's, its generation.
 */
static const struct alias intel[] = {
	{0x0100, CORE_INSTRUCTIONS}, /* the fixed counters, as the kernel and libpfm4 call them */
	{0x0200, CORE_CYCLES},
	{0x0300, CORE_REF_CYCLES},
	{0x00c4, CORE_BRANCHES},
	{0x02c4, CORE_CALLS},
	{0x08c4, CORE_RETURNS},
	{0x10c4, CORE_BRANCHES_NOT_TAKEN},
	{0x11c4, CORE_BRANCHES_CONDITIONAL},
	{0x20c4, CORE_BRANCHES_TAKEN},
	{0x00c5, CORE_BRANCH_MISSES},
	{0x81d0, CORE_LOADS},
	{0x82d0, CORE_STORES},
	{0x83d0, CORE_OPERANDS},
	{CODE_SLOW_LOADS, CORE_LOADS},
	{0x02cd, CORE_STORES},	   /* MEM_TRANS_RETIRED.STORE_SAMPLE */
	{0x0151, CORE_L1D_MISSES}, /* L1D.REPLACEMENT */
	/* L2_RQSTS: what is asked for, and what of that is not there */
	{0xe124, CORE_L1D_LOAD_MISSES},
	{0xe224, CORE_L1D_STORE_MISSES},
	{0xe424, CORE_L1I_LOAD_MISSES},
	{0xe724, CORE_L1D_MISSES},
	{0x2124, CORE_LLC_LOADS},
	{0x2224, CORE_LLC_STORES},
	{0x2424, CORE_L2_CODE_MISSES},
	{0xc124, CORE_L2_LOAD_HITS},
	{0xc224, CORE_L2_STORE_HITS},
	{0xc424, CORE_L2_CODE_HITS},
	/* MEM_LOAD_RETIRED */
	{0x01d1, CORE_L1D_LOAD_HITS},
	{0x02d1, CORE_L2_LOAD_HITS},
	{0x04d1, CORE_LLC_LOAD_HITS},
	{0x08d1, CORE_L1D_LOAD_MISSES},
	{0x10d1, CORE_LLC_LOADS},
	{0x20d1, CORE_LLC_LOAD_MISSES},
	/* FP_ARITH_INST_RETIRED, since Broadwell */
	{0x01c7, CORE_FP_SCALAR_DOUBLE},
	{0x02c7, CORE_FP_SCALAR_SINGLE},
	{0x03c7, CORE_FP_SCALAR},
	{0x04c7, CORE_FP_128_DOUBLE},
	{0x08c7, CORE_FP_128_SINGLE},
	{0x10c7, CORE_FP_256_DOUBLE},
	{0x18c7, CORE_FP_4_FLOPS},
	{0x20c7, CORE_FP_256_SINGLE},
	{0x40c7, CORE_FP_512_DOUBLE},
	{0x60c7, CORE_FP_8_FLOPS},
	{0x80c7, CORE_FP_512_SINGLE},
	{0xfcc7, CORE_FP_VECTOR},
};

/* Which branches: other bits since Ice Lake. */
static const struct alias before_ice_lake[] = {
	{0x01c4, CORE_BRANCHES_CONDITIONAL},
	{0x01c5, CORE_BRANCH_MISSES_CONDITIONAL},
	/* What perf computes "top-down" from. Nothing is issued that does not retire. */
	{0x010d, CORE_RECOVERY_CYCLES}, /* INT_MISC.RECOVERY_CYCLES */
	{0x010e, CORE_SLOTS_RETIRING},	/* UOPS_ISSUED.ANY */
	{0x019c, CORE_SLOTS_FRONTEND},	/* IDQ_UOPS_NOT_DELIVERED.CORE */
	{0x02c2, CORE_SLOTS_RETIRING},	/* UOPS_RETIRED.RETIRE_SLOTS */
};
static const struct alias since_ice_lake[] = {
	{0x01c4, CORE_CONDITIONS_TAKEN},
	{0x80c4, CORE_BRANCHES_INDIRECT},
	{0x11c5, CORE_BRANCH_MISSES_CONDITIONAL},
	{0x10ad, CORE_ZERO}, /* INT_MISC.UOP_DROPPING, of which the model has none */
};

/* OFFCORE_REQUESTS, which has moved; half precision is new. */
static const struct alias before_golden_cove[] = {
	{0x01b0, CORE_LLC_LOADS},
	{0x02b0, CORE_L2_CODE_MISSES},
	{0x04b0, CORE_LLC_STORES},
	{0x08b0, CORE_DATA_READS},
};
static const struct alias since_golden_cove[] = {
	{0x0121, CORE_LLC_LOADS},
	{0x0221, CORE_L2_CODE_MISSES},
	{0x0421, CORE_LLC_STORES},
	{0x0821, CORE_DATA_READS},
	/* FP_ARITH_INST_RETIRED2 */
	{0x01cf, CORE_FP_SCALAR_HALF},
	{0x03cf, CORE_FP_SCALAR_HALF},
	{0x04cf, CORE_FP_128_HALF},
	{0x08cf, CORE_FP_256_HALF},
	{0x10cf, CORE_FP_512_HALF},
	{0x1ccf, CORE_FP_VECTOR_HALF},
};

static const struct alias amd[] = {
	{0x0076, CORE_CYCLES},	       {0x00c2, CORE_BRANCHES}, {0x00c3, CORE_BRANCH_MISSES},
	{0x00c4, CORE_BRANCHES_TAKEN}, {0x00c8, CORE_RETURNS},
};

/*
 * Of the events of Zen's processors. In the model there is one node with one core in it, whose
 * lines nobody shares, pages are of 4 KiB, and prefetch instructions do nothing.
 */
static const struct alias zen[] = {
	{0x00cc, CORE_BRANCHES_INDIRECT},
	{0x00d1, CORE_BRANCHES_CONDITIONAL},
	/* LS_DISPATCH: loads, stores, and what is both */
	{0x0129, CORE_LOADS},
	{0x0229, CORE_STORES},
	{0x0529, CORE_LOADS},
	{0x0629, CORE_STORES},
	{0x0729, CORE_OPERANDS},
	{0x0040, CORE_OPERANDS}, /* DATA_CACHE_ACCESSES */
	/* DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM: of L2, of the last level, of memory nearby */
	{0x0143, CORE_L2_DATA_HITS, 0xf4},
	{0x0243, CORE_LLC_DATA_HITS, 0xf4},
	{0x0343, CORE_CACHES_DATA_HITS, 0xf4},
	{0x0843, CORE_LLC_DATA_MISSES, 0xf4},
	{0x0a43, CORE_L2_DATA_MISSES, 0xf4},
	{0x0b43, CORE_L1D_MISSES, 0xf4},
	/* L1_DTLB_MISS, by the size of the page */
	{0x0145, CORE_STLB_DATA_HITS, 0x0e},
	{0x1045, CORE_DTLB_WALKS, 0xe0},
	{0x1145, CORE_DTLB_MISSES, 0xee},
	{0x0346, CORE_DTLB_WALKS},	/* TABLEWALKER of data, both */
	{0x0194, CORE_ITLB_HITS, 0x06}, /* L1_ITLB_FETCH_HIT */
	/* REQUESTS_TO_L2_GROUP1: loads, stores, code, prefetches */
	{0x8060, CORE_L1D_LOAD_MISSES, 0x2d},
	{0x4060, CORE_L1D_STORE_MISSES, 0x2d},
	{0xc060, CORE_L1D_MISSES, 0x2d},
	{0x1060, CORE_L1I_LOAD_MISSES, 0x2d},
	{0xd060, CORE_L2_REFERENCES, 0x2d},
	{0x0260, CORE_L1D_PREFETCHES, 0x2d},
	{0x1260, CORE_L2_CODE_AND_PREFETCHES, 0x2d},
	{0xd260, CORE_L2_ALL_REFERENCES, 0x2d},
	/* CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS */
	{0x6064, CORE_L2_LOAD_HITS, 0x80},
	{0x1064, CORE_L2_STORE_HITS, 0x80},
	{0x7064, CORE_L2_DATA_HITS, 0x80},
	{0x0864, CORE_L2_DATA_MISSES, 0x80},
	{0x7864, CORE_L1D_MISSES, 0x80},
	{0x0664, CORE_L2_CODE_HITS, 0x80},
	{0x0164, CORE_L2_CODE_MISSES, 0x80},
	{0x0764, CORE_L1I_LOAD_MISSES, 0x80},
	{0x7664, CORE_L2_HITS, 0x80},
	{0x0964, CORE_L2_MISSES, 0x80},
	{0x7f64, CORE_L2_REFERENCES, 0x80},
	{0x0170, CORE_L2_PREFETCH_HITS, 0xfe}, /* L2_PREFETCH_HIT_L2, of streams */
	{0x0082, CORE_L2_CODE_HITS},	       /* INSTRUCTION_CACHE_REFILLS_FROM_L2 */
	{0x0083, CORE_L2_CODE_MISSES},	       /* .._FROM_SYSTEM */
};

/* RETIRED_SSE_AVX_FLOPS tells single from double precision, by four bits each. */
static const struct alias zen1[] = {
	{0x00d2, CORE_BRANCH_MISSES_CONDITIONAL},
	{0x1103, CORE_FLOPS_ADD},
	{0x2203, CORE_FLOPS_MULTIPLY},
	{0x4403, CORE_FLOPS_DIVIDE},
	{0x8803, CORE_FLOPS_FMA},
	{0xff03, CORE_FLOPS},
};

static const struct alias since_zen2[] = {
	{0x0103, CORE_FLOPS_ADD},
	{0x0203, CORE_FLOPS_MULTIPLY},
	{0x0403, CORE_FLOPS_DIVIDE},
	{0x0803, CORE_FLOPS_FMA},
	/* ANY_DATA_CACHE_FILLS_FROM_SYSTEM: nothing but what is asked for fills L1 */
	{0x0144, CORE_L2_DATA_HITS, 0xf4},
	{0x0244, CORE_LLC_DATA_HITS, 0xf4},
	{0x0344, CORE_CACHES_DATA_HITS, 0xf4},
	{0x0844, CORE_LLC_DATA_MISSES, 0xf4},
	{0x0a44, CORE_L2_DATA_MISSES, 0xf4},
	{0x0b44, CORE_L1D_MISSES, 0xf4},
	{0x00a9, CORE_STALLED_FRONTEND},	   /* OPS_QUEUE_EMPTY */
	{AMDS_CODE(0x120, 0x01), CORE_REF_CYCLES}, /* P0_FREQ_CYCLES_NOT_IN_HALT */
	/* IC_TAG_HIT_MISS; there is no cache of decoded operations beside */
	{AMDS_CODE(0x18e, 0x07), CORE_L1I_HITS},
	{AMDS_CODE(0x18e, 0x18), CORE_L1I_LOAD_MISSES},
	{AMDS_CODE(0x18e, 0x1f), CORE_L1I_LOADS},
	/* RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH */
	{AMDS_CODE(0x1c7, 0x00), CORE_BRANCH_MISSES_CONDITIONAL},
	{AMDS_CODE(0x1c9, 0x00), CORE_BRANCHES_UNCONDITIONAL},
};

/* Of RETIRED_SSE_AVX_FLOPS the upper bits are types of numbers since Zen 5. */
static const struct alias before_zen5[] = {
	{0x0f03, CORE_FLOPS},
	{0x1003, CORE_FLOPS_BFLOAT},
	{0x1f03, CORE_FLOPS_AND_BFLOAT, 0xe0},
};
static const struct alias since_zen5[] = {
	{0x0f03, CORE_FLOPS_AND_BFLOAT},
	{0x2003, CORE_FLOPS_BFLOAT},
	{0x2f03, CORE_FLOPS_BFLOAT},
};

static const struct {
	const struct alias *aliases;
	size_t nr;
	unsigned int vendors;
} languages[] = {
	{intel, NR(intel),
	 VENDOR(INTEL) | VENDOR(INTEL_OLD) | VENDOR(INTEL_ICE_LAKE) | VENDOR(INTEL_GOLDEN_COVE)},
	{before_ice_lake, NR(before_ice_lake), VENDOR(INTEL_OLD)},
	{since_ice_lake, NR(since_ice_lake), VENDOR(INTEL_ICE_LAKE) | VENDOR(INTEL_GOLDEN_COVE)},
	{before_golden_cove, NR(before_golden_cove), VENDOR(INTEL_OLD) | VENDOR(INTEL_ICE_LAKE)},
	{since_golden_cove, NR(since_golden_cove), VENDOR(INTEL_GOLDEN_COVE)},
	{amd, NR(amd), AMDS},
	{zen, NR(zen), ZENS},
	{zen1, NR(zen1), VENDOR(AMD_ZEN)},
	{since_zen2, NR(since_zen2), VENDOR(AMD) | VENDOR(AMD_ZEN5)},
	{before_zen5, NR(before_zen5), VENDOR(AMD)},
	{since_zen5, NR(since_zen5), VENDOR(AMD_ZEN5)},
};

static int alias_kind(uint64_t code)
{
	for (size_t i = 0; i < NR(languages); i++) {
		const struct alias *alias = languages[i].aliases, *end = alias + languages[i].nr;

		if (!is_of(languages[i].vendors))
			continue;
		for (; alias < end; alias++)
			if ((code & ~((uint64_t)alias->nothing << 8)) == alias->code)
				return alias->kind;
	}
	return -EINVAL;
}

#define RAW_IGNORED (1UL << 16 | 1UL << 17 | 1UL << 20 | 1UL << 22)

static int own_kind(uint64_t config)
{
	for (unsigned int kind = 0; kind < CORE_HARDWARE_KINDS; kind++)
		if (CORE_RAW_KIND(kind) == config)
			return (int)kind;
	return -EINVAL;
}

static int raw_kind(uint64_t config)
{
	config &= ~RAW_IGNORED;
	for (size_t i = 0; i < core_nr_named_events; i++) {
		const struct core_named_event *event = &core_named_events[i];

		if (event->own == config || (event->config == config && !is_of(AMDS)))
			return event->kind;
	}
	if (config >> CORE_RAW_KIND_SHIFT)
		return own_kind(config);
	return alias_kind(config);
}

/* Loads that take longer than @cycles: by the cache that has them, whatever their translation. */
static int slow_loads(uint64_t cycles)
{
	const struct machine *machine = &core_settings()->machine;

	if (cycles > UINT16_MAX)
		return -EINVAL;
	if (!machine->width)
		machine = &tly_machine_reference;
	if (cycles < MACHINE_L1_HIT)
		return CORE_LOADS;
	if (cycles < machine->l2_hit)
		return CORE_L1D_LOAD_MISSES;
	if (cycles < machine->llc_hit)
		return CORE_LLC_LOADS;
	return cycles < machine->memory ? CORE_LLC_LOAD_MISSES : CORE_ZERO;
}

static bool has_latency(uint64_t config)
{
	config &= ~RAW_IGNORED;
	return config == CORE_RAW_KIND(CORE_LOADS) || config == CODE_SLOW_LOADS;
}

/* ---- breakpoints ---- */

/* What the kernel takes for its own: all that no user code gets to, and the last page below, of
 * which some processors are not to be told. */
#define PROGRAMS_END ((1UL << 47) - 4096)

static bool is_kernels(uint64_t address, uint64_t length)
{
	return address >= PROGRAMS_END || address + length > PROGRAMS_END;
}

static int breakpoint_kind(const struct perf_event_attr *attr)
{
	uint64_t length = attr->bp_len;

	switch (attr->bp_type) {
	case HW_BREAKPOINT_R: /* which processors of x86 cannot */
	case HW_BREAKPOINT_W:
	case HW_BREAKPOINT_RW:
		if (length != 1 && length != 2 && length != 4 && length != 8)
			return -EINVAL;
		if (attr->bp_addr & (length - 1))
			return -EINVAL;
		break;
	case HW_BREAKPOINT_X:
		if (length != sizeof(long))
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	if (attr->bp_type == HW_BREAKPOINT_X)
		length = 1; /* as processors are told */
	if (is_kernels(attr->bp_addr, length))
		return attr->exclude_kernel ? -EINVAL : CORE_ZERO;
	return CORE_BREAKPOINT;
}

/* ---- operations ---- */

static bool is_of_operations(const struct perf_event_attr *attr)
{
	return core_settings()->op_type && attr->type == core_settings()->op_type;
}

/*
 * AMD's Instruction-Based Sampling, by cycles: to choose among operations themselves (bit 19) would
 * leave samples without what the model knows of them. As there, nothing is counted that is not
 * sampled.
 */
static int operation_kind(const struct perf_event_attr *attr)
{
	return attr->config || !attr->sample_period ? -EINVAL : CORE_CYCLES;
}

/* ---- all of them ---- */

static uint32_t pmu_type(void)
{
	return core_settings()->cpu_type;
}

/*
 * Generic hardware and cache events say in the upper half of config which processors' unit they
 * mean; there is one.
 */
static int generic_kind(const struct perf_event_attr *attr)
{
	uint32_t unit = (uint32_t)(attr->config >> PERF_PMU_TYPE_SHIFT);
	uint64_t config = attr->config & PERF_HW_EVENT_MASK;

	if (unit && unit != pmu_type())
		return -ENOENT;
	if (attr->type == PERF_TYPE_HW_CACHE)
		return cache_kind(config);
	return config < sizeof(hardware) ? hardware[config] : -EINVAL;
}

static int software_kind(const struct perf_event_attr *attr)
{
	int kind;

	if (attr->config >= sizeof(software))
		return -ENOENT;
	kind = software[attr->config];
	/* They happen in the kernel. */
	if (attr->exclude_kernel && (kind == CORE_CONTEXT_SWITCHES || kind == CORE_CPU_MIGRATIONS ||
				     kind == CORE_CGROUP_SWITCHES))
		return CORE_ZERO;
	return kind;
}

bool core_encoding_is_probe(const struct perf_event_attr *attr)
{
	return core_settings()->probe_type && attr->type == core_settings()->probe_type;
}

bool core_encoding_is_hardware(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
	       attr->type == PERF_TYPE_RAW || attr->type == pmu_type();
}

int core_encoding(const struct perf_event_attr *attr)
{
	bool of_user_code = true;
	int kind;

	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
		kind = generic_kind(attr);
		break;
	case PERF_TYPE_SOFTWARE:
		kind = software_kind(attr);
		of_user_code = kind != CORE_TASK_CLOCK && kind != CORE_CPU_CLOCK &&
			       kind != CORE_CONTEXT_SWITCHES && kind != CORE_CPU_MIGRATIONS &&
			       kind != CORE_CGROUP_SWITCHES;
		break;
	case PERF_TYPE_BREAKPOINT:
		kind = breakpoint_kind(attr);
		break;
	default:
		if (core_aux_fills(attr))
			return CORE_TRACE; /* also where there is nothing to be traced */
		if (core_encoding_is_probe(attr))
			return CORE_PROBE; /* as to the kernel, whatever is excluded */
		if (is_of_operations(attr)) {
			kind = operation_kind(attr);
			break;
		}
		if (attr->type != PERF_TYPE_RAW && attr->type != pmu_type())
			return -ENOENT;
		kind = raw_kind(attr->config);
		if (kind == CORE_LOADS && has_latency(attr->config))
			kind = slow_loads(attr->config1);
	}
	if (kind < 0)
		return kind;
	if (of_user_code && attr->exclude_user)
		return CORE_ZERO;
	/* Only PMUs know of guests. */
	if (kind < CORE_HARDWARE_KINDS && attr->exclude_host)
		return CORE_ZERO;
	return kind;
}
