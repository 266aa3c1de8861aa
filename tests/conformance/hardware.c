// SPDX-License-Identifier: MIT
/*
 * Events of a hardware PMU, or of whoever offers one. The loops are written out in assembly, and
 * each count is the difference of two runs, so that what surrounds the loop cancels out. A real PMU
 * may be off by what interrupts add; ABI_EXACT=1 in the environment demands the exact number.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance.h"
#include "workload.h"

#define ROUNDS 10000000ULL

static bool is_exact(void)
{
	const char *exact = getenv("ABI_EXACT");

	return exact && strcmp(exact, "1") == 0;
}

static void check_between(uint64_t got, uint64_t least, uint64_t most)
{
	CHECK_CMP(got, >=, least - least / 100 - 1000);
	CHECK_CMP(got, <=, most + most / 100 + 1000);
}

static void check_near(uint64_t got, uint64_t wanted)
{
	if (is_exact())
		CHECK_EQ(got, wanted);
	else
		check_between(got, wanted, wanted);
}

typedef void work_fn(uint64_t count);

static uint64_t measure(int fd, work_fn *work, uint64_t count)
{
	work(1);
	RESET(fd);
	START(fd);
	work(count);
	STOP(fd);
	return VALUE(fd);
}

/* What ROUNDS rounds of the loop add. */
static uint64_t of_rounds(int fd, work_fn *work)
{
	uint64_t once = measure(fd, work, ROUNDS);

	return measure(fd, work, 2 * ROUNDS) - once;
}

static uint64_t memory[2];

static void loads_and_stores(uint64_t count)
{
	work_memory(memory, count);
}

static void touch(uint64_t count, size_t distance)
{
	static volatile unsigned char *map;
	const size_t size = 64 << 20;

	if (!map)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED);
	for (uint64_t i = 0; i < count; i++)
		map[i * distance % size] = 1;
}

static void walk(uint64_t count)
{
	touch(count, 4160);
}

/* Line after line, which prefetchers see. */
static void stroll(uint64_t count)
{
	touch(count, 64);
}

static int open_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = abi_attr(type, config);

	abi_need_hardware();
	return OPEN_SELF(&attr);
}

static uint64_t per_round(uint32_t type, uint64_t config)
{
	return of_rounds(open_event(type, config), work_loop);
}

/* ---- generic events ---- */

ABI_CASE("config.hw.instructions life.double-check type.hardware",
	 "two for each round of a loop of two")
{
	CHECK_EQ(PERF_COUNT_HW_INSTRUCTIONS, 1);
	check_near(per_round(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS), 2 * ROUNDS);
}

ABI_CASE("config.hw.branch_instructions life.double-check", "one for each round")
{
	CHECK_EQ(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 4);
	check_near(per_round(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS), ROUNDS);
}

ABI_CASE("config.hw.branch_misses", "hardly any in a plain loop, never more than branches")
{
	CHECK_EQ(PERF_COUNT_HW_BRANCH_MISSES, 5);
	CHECK_CMP(per_round(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES), <, ROUNDS / 10);
}

static const struct advancing {
	struct abi_row about;
	uint64_t config, number;
	bool always; /* a busy loop cannot leave it at 0 */
} advancing[] = {
	{{"config.hw.cpu_cycles", "0, and they pass"}, PERF_COUNT_HW_CPU_CYCLES, 0, true},
	{{"config.hw.bus_cycles", "6, and they pass"}, PERF_COUNT_HW_BUS_CYCLES, 6, true},
	{{"config.hw.ref_cpu_cycles", "9, and they pass"}, PERF_COUNT_HW_REF_CPU_CYCLES, 9, true},
	{{"config.hw.stalled_cycles_frontend", "7, no more than cycles"},
	 PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	 7,
	 false},
	{{"config.hw.stalled_cycles_backend", "8, no more than cycles"},
	 PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	 8,
	 false},
};

ABI_TABLE(advancing)
{
	int fd = open_event(PERF_TYPE_HARDWARE, row->config);
	uint64_t count = measure(fd, work_loop, ROUNDS);

	CHECK_EQ(row->config, row->number);
	if (row->always)
		CHECK_CMP(count, >, 0);
	else
		CHECK_CMP(count, <=,
			  4 * measure(open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES),
				      work_loop, ROUNDS));
}

ABI_CASE("config.hw.cache_references config.hw.cache_misses",
	 "a walk through 64 MiB refers to the cache; misses are references")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES);
	uint64_t words[3];
	int leader;

	abi_need_hardware();
	attr.read_format = PERF_FORMAT_GROUP;
	leader = OPEN_SELF(&attr);
	attr.disabled = 0;
	attr.config = PERF_COUNT_HW_CACHE_MISSES;
	OPEN(&attr, 0, -1, leader);
	walk(1 << 20);
	START(leader);
	walk(1 << 20);
	STOP(leader);
	READ_WORDS(leader, words, 3);
	CHECK_CMP(words[1], >, 0);
	CHECK_CMP(words[2], <=, words[1]);
}

/* ---- cache events ---- */

#define CACHE(id, op, result) ((uint64_t)(id) | (uint64_t)(op) << 8 | (uint64_t)(result) << 16)

static const struct cache_event {
	struct abi_row about;
	uint64_t config;
	work_fn *work;
	uint64_t per_round; /* 0: only that it counts something */
} cache_events[] = {
	{{"config.cache.l1d config.cache.op_read config.cache.result_access config.cache.encoding type.hw_cache",
	  "L1D reads: one a round"},
	 CACHE(0, 0, 0),
	 loads_and_stores,
	 1},
	{{"config.cache.l1d config.cache.op_write", "L1D writes: one a round"},
	 CACHE(0, 1, 0),
	 loads_and_stores,
	 1},
	{{"config.cache.l1d config.cache.result_miss", "L1D read misses of a walk"},
	 CACHE(0, 0, 1),
	 walk,
	 0},
	{{"config.cache.l1d config.cache.op_prefetch", "L1D prefetches"}, CACHE(0, 2, 0), stroll, 0},
	{{"config.cache.l1i", "L1I read misses"}, CACHE(1, 0, 1), NULL, 0},
	{{"config.cache.ll", "last level reads of a walk"}, CACHE(2, 0, 0), walk, 0},
	{{"config.cache.dtlb", "data TLB reads: one a round"}, CACHE(3, 0, 0), loads_and_stores, 1},
	{{"config.cache.itlb", "instruction TLB read misses"}, CACHE(4, 0, 1), NULL, 0},
	{{"config.cache.bpu", "branch unit reads: one a round"}, CACHE(5, 0, 0), work_loop, 1},
	{{"config.cache.node", "node reads of a walk"}, CACHE(6, 0, 0), NULL, 0},
};

ABI_TABLE(cache_events)
{
	int fd = open_event(PERF_TYPE_HW_CACHE, row->config);

	if (row->per_round && is_exact())
		CHECK_EQ(of_rounds(fd, row->work), ROUNDS * row->per_round);
	else if (row->per_round) /* AMD tells loads and stores together */
		check_between(of_rounds(fd, row->work), ROUNDS, 2 * ROUNDS);
	else if (row->work)
		CHECK_CMP(measure(fd, row->work, 1 << 20), >, 0);
	else
		CHECK_CMP(measure(fd, walk, 1 << 16), <, 1 << 30);
}

ABI_CASE("config.cache.encoding type.hw_cache errno.einval.config", "parts out of range: EINVAL")
{
	static const uint64_t configs[] = {CACHE(7, 0, 0), CACHE(0, 3, 0), CACHE(0, 0, 2)};

	abi_need_hardware();
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		struct perf_event_attr attr = abi_attr(PERF_TYPE_HW_CACHE, configs[i]);

		CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	}
}

/* ---- raw events ---- */

ABI_CASE("config.raw type.raw type.dynamic-pmu",
	 "0xc0 is retired instructions on Intel and AMD; reserved bits: EINVAL")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_RAW, 0xc0);
	int type = abi_pmu_type("cpu");

	abi_need_hardware();
	check_near(of_rounds(OPEN_SELF(&attr), work_loop), 2 * ROUNDS);
	attr.config |= 1ULL << 63;
	CHECK_REFUSED(&attr, 0, -1, -1, 0, EINVAL);
	if (type >= 0)
		check_near(per_round((uint32_t)type, 0xc0), 2 * ROUNDS);
}

ABI_CASE("type.hw-extended", "the unit's number in the high half of a hardware config")
{
	int type = abi_pmu_type("cpu");

	abi_need_hardware();
	if (type < 0)
		CANNOT("no cpu unit in sysfs");
	check_near(per_round(PERF_TYPE_HARDWARE, (uint64_t)type << 32 | PERF_COUNT_HW_INSTRUCTIONS),
		   2 * ROUNDS);
}

/* ---- scheduling ---- */

ABI_CASE("life.group-late-check arg.group-atomic",
	 "a group without room does not open, or never runs")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	uint64_t words[3];
	int leader;

	abi_need_hardware();
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	leader = OPEN_SELF(&attr);
	attr.disabled = 0;
	for (int i = 0; i < 100; i++)
		if (perf_open(&attr, 0, -1, leader, 0) < 0) {
			CHECK_EQ(errno, EINVAL);
			return;
		}
	START(leader);
	work_loop(ROUNDS);
	STOP(leader);
	READ_WORDS(leader, words, 3);
	if (words[2])
		CANNOT("the PMU has room for a group of 101");
	CHECK_EQ(words[0], 0);
}

/* ---- sampling ---- */

static unsigned int samples_of(uint64_t period, unsigned int precise, unsigned int *exact)
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	const struct perf_event_header *header;
	unsigned int samples = 0;
	struct ring ring;
	int fd;

	abi_need_hardware();
	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.precise_ip = precise & 3;
	fd = perf_open(&attr, 0, -1, -1, 0);
	if (fd < 0 && errno == EOPNOTSUPP)
		CANNOT("no precise_ip %u", precise);
	CHECK_CMP(fd, >=, 0);
	ring = MAP(fd, 256);
	START(fd);
	work_loop(ROUNDS);
	STOP(fd);
	while ((header = NEXT_OF(&ring, PERF_RECORD_SAMPLE))) {
		samples++;
		*exact += !!(header->misc & PERF_RECORD_MISC_EXACT_IP);
	}
	CHECK_CMP(samples, <=, VALUE(fd) / period + 1);
	CHECK_OK(close(fd));
	abi_unmap(&ring);
	return samples;
}

ABI_CASE("attr.sample_period record.sample errno.eopnotsupp", "so many samples as periods fit")
{
	unsigned int exact = 0;

	CHECK_CMP(samples_of(100000, 0, &exact), >=, 2 * ROUNDS / 100000 * 9 / 10);
	CHECK_EQ(exact, 0);
}

static const struct precision {
	struct abi_row about;
	unsigned int level;
} precisions[] = {
	{{"attr.precise_ip", "1"}, 1},
	{{"attr.precise_ip record.misc.exact_ip", "2, marked exact"}, 2},
	{{"attr.precise_ip record.misc.exact_ip", "3, marked exact"}, 3},
};

ABI_TABLE(precisions)
{
	unsigned int exact = 0, samples = samples_of(100000, row->level, &exact);

	CHECK_CMP(samples, >, 0);
	if (row->level >= 2)
		CHECK_CMP(exact, >=, is_exact() ? samples : samples * 9 / 10);
}

ABI_CASE("ioctl.period-immediate", "a PMU follows the new period at once")
{
	struct perf_event_attr attr = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	uint64_t period = 100000;
	struct ring ring;
	int fd;

	abi_need_hardware();
	attr.sample_period = 1ULL << 40;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = OPEN_SELF(&attr);
	ring = MAP(fd, 64);
	START(fd);
	work_loop(ROUNDS);
	CHECK_EQ(DRAIN(&ring, PERF_RECORD_SAMPLE), 0);
	CHECK_OK(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	work_loop(ROUNDS);
	STOP(fd);
	CHECK_CMP(DRAIN(&ring, PERF_RECORD_SAMPLE), >, 100);
}
