// SPDX-License-Identifier: MIT
#include "lib/event/names.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#define HW(id) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id
#define SW(id) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id

const struct tly_generic tly_generics[] = {
	{"cycles", "cpu-cycles", HW(CPU_CYCLES),
	 "processor cycles, at the frequency of the moment"},
	{"instructions", "", HW(INSTRUCTIONS), "retired instructions"},
	{"cache-references", "", HW(CACHE_REFERENCES), "accesses to the last-level cache"},
	{"cache-misses", "", HW(CACHE_MISSES), "accesses that missed the last-level cache"},
	{"branches", "branch-instructions", HW(BRANCH_INSTRUCTIONS), "retired branches"},
	{"branch-misses", "", HW(BRANCH_MISSES), "mispredicted branches"},
	{"bus-cycles", "", HW(BUS_CYCLES), "bus cycles"},
	{"stalled-cycles-frontend", "idle-cycles-frontend", HW(STALLED_CYCLES_FRONTEND),
	 "cycles in which no instruction could be issued"},
	{"stalled-cycles-backend", "idle-cycles-backend", HW(STALLED_CYCLES_BACKEND),
	 "cycles in which no instruction could retire"},
	{"ref-cycles", "", HW(REF_CPU_CYCLES), "processor cycles, at a fixed reference frequency"},

	{"cpu-clock", "", SW(CPU_CLOCK), "wall-clock time on a processor, in nanoseconds"},
	{"task-clock", "", SW(TASK_CLOCK), "time in which the task ran, in nanoseconds"},
	{"page-faults", "faults", SW(PAGE_FAULTS), "page faults"},
	{"minor-faults", "", SW(PAGE_FAULTS_MIN), "page faults served from memory"},
	{"major-faults", "", SW(PAGE_FAULTS_MAJ), "page faults that waited for storage"},
	{"context-switches", "cs", SW(CONTEXT_SWITCHES), "switches to another task"},
	{"cpu-migrations", "migrations", SW(CPU_MIGRATIONS), "moves to another processor"},
	{"alignment-faults", "", SW(ALIGNMENT_FAULTS), "unaligned accesses fixed up by the kernel"},
	{"emulation-faults", "", SW(EMULATION_FAULTS), "instructions emulated by the kernel"},
	{"dummy", "", SW(DUMMY), "counts nothing; carries side-band records"},
	{"bpf-output", "", SW(BPF_OUTPUT), "samples written by BPF programs"},
	{"cgroup-switches", "", SW(CGROUP_SWITCHES), "switches to a task of another cgroup"},
	{0},
};

static bool same(const char *name, const char *text, size_t length)
{
	return !strncmp(name, text, length) && !name[length];
}

const struct tly_generic *tly_generic_find(const char *name, size_t length)
{
	if (!length)
		return NULL;
	for (const struct tly_generic *g = tly_generics; g->name; g++)
		if (same(g->name, name, length) || same(g->alias, name, length))
			return g;
	return NULL;
}

const struct tly_generic *tly_generic_of(uint32_t type, uint64_t config)
{
	for (const struct tly_generic *g = tly_generics; g->name; g++)
		if (g->type == type && g->config == config)
			return g;
	return NULL;
}

/*
 * Cache events: config is cache | operation << 8 | result << 16. The first name of each row is
 * the one that tally_event_name() writes.
 */
#define LOAD	 (1u << PERF_COUNT_HW_CACHE_OP_READ)
#define STORE	 (1u << PERF_COUNT_HW_CACHE_OP_WRITE)
#define PREFETCH (1u << PERF_COUNT_HW_CACHE_OP_PREFETCH)

#define NAMES 5

static const struct cache_row {
	const char *names[NAMES];
	unsigned int operations; /* that can happen in it */
	const char *desc;
} caches[PERF_COUNT_HW_CACHE_MAX] = {
	{{"L1-dcache", "l1-d", "l1d", "L1-data"}, LOAD | STORE | PREFETCH, "level 1 data cache"},
	{{"L1-icache", "l1-i", "l1i", "L1-instruction"},
	 LOAD | PREFETCH,
	 "level 1 instruction cache"},
	{{"LLC", "L2"}, LOAD | STORE | PREFETCH, "last-level cache"},
	{{"dTLB", "d-tlb", "Data-TLB"}, LOAD | STORE | PREFETCH, "data TLB"},
	{{"iTLB", "i-tlb", "Instruction-TLB"}, LOAD, "instruction TLB"},
	{{"branch", "bpu", "btb", "bpc"}, LOAD, "branch predictor"},
	{{"node"}, LOAD | STORE | PREFETCH, "memory of the local node"},
};

static const struct operation_row {
	const char *names[NAMES];
	const char *plural;
} operations[PERF_COUNT_HW_CACHE_OP_MAX] = {
	{{"load", "loads", "read"}, "loads"},
	{{"store", "stores", "write"}, "stores"},
	{{"prefetch", "prefetches", "speculative-read", "speculative-load"}, "prefetches"},
};

static const char *const results[PERF_COUNT_HW_CACHE_RESULT_MAX][NAMES] = {
	{"refs", "Reference", "ops", "access"},
	{"misses", "miss"},
};

/* How much of the text one of @names is, up to its end or a '-'; 0 when none is. */
static size_t match(const char *const names[NAMES], const char *text, size_t length)
{
	for (size_t i = 0; i < NAMES && names[i]; i++) {
		size_t n = strlen(names[i]);

		if (n <= length && !memcmp(names[i], text, n) && (n == length || text[n] == '-'))
			return n;
	}
	return 0;
}

static bool valid_cache(uint64_t config)
{
	uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16;

	return cache < PERF_COUNT_HW_CACHE_MAX && op < PERF_COUNT_HW_CACHE_OP_MAX &&
	       result < PERF_COUNT_HW_CACHE_RESULT_MAX && caches[cache].operations & 1u << op;
}

bool tly_cache_parse(const char *name, size_t length, uint64_t *config)
{
	uint64_t cache, op = 0, result = 0;
	bool have_op = false, have_result = false;
	size_t used = 0;

	for (cache = 0; cache < PERF_COUNT_HW_CACHE_MAX; cache++) {
		used = match(caches[cache].names, name, length);
		if (used)
			break;
	}
	if (!used)
		return false;
	while (used < length) {
		const char *part = name + used + 1;
		size_t left = length - used - 1, n = 0;

		for (uint64_t i = 0; !n && !have_op && i < PERF_COUNT_HW_CACHE_OP_MAX; i++) {
			n = match(operations[i].names, part, left);
			op = i;
		}
		have_op |= n;
		if (!have_op)
			op = 0;
		if (!n) {
			for (uint64_t i = 0;
			     !n && !have_result && i < PERF_COUNT_HW_CACHE_RESULT_MAX; i++) {
				n = match(results[i], part, left);
				result = i;
			}
			have_result |= n;
		}
		if (!n)
			return false;
		used += 1 + n;
	}
	*config = cache | op << 8 | result << 16;
	return valid_cache(*config);
}

bool tly_cache_name(uint64_t config, char *buf, size_t size)
{
	if (!valid_cache(config))
		return false;
	const char *cache = caches[config & 0xff].names[0];
	const struct operation_row *op = &operations[config >> 8 & 0xff];

	if (config >> 16)
		snprintf(buf, size, "%s-%s-misses", cache, op->names[0]);
	else
		snprintf(buf, size, "%s-%s", cache, op->plural);
	return true;
}

void tly_cache_describe(uint64_t config, char *buf, size_t size)
{
	snprintf(buf, size, "%s: %s%s", caches[config & 0xff].desc,
		 operations[config >> 8 & 0xff].plural, config >> 16 ? " that missed" : "");
}

int64_t tly_cache_next(int64_t config)
{
	for (config++; config < PERF_COUNT_HW_CACHE_RESULT_MAX << 16; config++)
		if (valid_cache(config))
			return config;
	return -1;
}
