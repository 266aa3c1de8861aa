// SPDX-License-Identifier: MIT
/* Causes of failure that no other area shows. */
#include <sys/resource.h>
#include <unistd.h>

#include "conformance.h"

ABI_CASE("errno.emfile", "RLIMIT_NOFILE is reached: EMFILE; a closed one makes room")
{
	struct perf_event_attr attr = abi_software(PERF_COUNT_SW_PAGE_FAULTS);
	struct perf_event_attr wrong = abi_software(1000);
	const struct rlimit limit = {40, 40};
	int fd, last = -1, count = 0;

	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	while ((fd = perf_open(&attr, 0, -1, -1, 0)) >= 0 && count++ < 100)
		last = fd;
	CHECK_EQ(fd, -1);
	CHECK_EQ(errno, EMFILE);
	CHECK_CMP(last, ==, 39);
	/* Before what is wrong with the rest, but not before what is checked without looking
	 * around. */
	CHECK_REFUSED(&attr, 0, -1, 1000, 0, EMFILE);
	CHECK_REFUSED(&attr, 0x7ffffff0, -1, -1, 0, EMFILE);
	CHECK_REFUSED(&attr, 0, 0x7ffffff0, -1, 0, EMFILE);
	CHECK_REFUSED(&wrong, 0, -1, -1, 0, EMFILE);
	CHECK_REFUSED(&attr, -1, -1, -1, PERF_FLAG_PID_CGROUP, EINVAL);
	CHECK_OK(close(last));
	CHECK_EQ(OPEN_SELF(&attr), last);
}

/* Generic events that need a PMU: a machine with one may still lack this event. */
static const struct generic {
	struct abi_row about;
	uint32_t type;
	uint64_t config;
} generics[] = {
	{{"type.hardware errno.enoent errno.variability", "cycles"}, PERF_TYPE_HARDWARE, 0},
	{{"type.hardware errno.variability", "instructions"}, PERF_TYPE_HARDWARE, 1},
	{{"type.hardware errno.variability", "cache references"}, PERF_TYPE_HARDWARE, 2},
	{{"type.hardware errno.variability", "cache misses"}, PERF_TYPE_HARDWARE, 3},
	{{"type.hardware errno.variability", "branches"}, PERF_TYPE_HARDWARE, 4},
	{{"type.hardware errno.variability", "branch misses"}, PERF_TYPE_HARDWARE, 5},
	{{"type.hardware errno.variability", "bus cycles"}, PERF_TYPE_HARDWARE, 6},
	{{"type.hardware errno.variability", "stalled frontend"}, PERF_TYPE_HARDWARE, 7},
	{{"type.hardware errno.variability", "stalled backend"}, PERF_TYPE_HARDWARE, 8},
	{{"type.hardware errno.variability", "reference cycles"}, PERF_TYPE_HARDWARE, 9},
	{{"type.hardware errno.einval.config", "hardware config 100"}, PERF_TYPE_HARDWARE, 100},
	{{"type.hw_cache errno.variability", "L1D read accesses"}, PERF_TYPE_HW_CACHE, 0},
	{{"type.hw_cache config.cache.encoding errno.einval.config", "cache id 200"},
	 PERF_TYPE_HW_CACHE,
	 200},
	{{"type.raw errno.variability", "raw 0"}, PERF_TYPE_RAW, 0},
};

ABI_TABLE(generics)
{
	struct perf_event_attr attr = abi_attr(row->type, row->config);
	struct perf_event_attr probe = abi_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	bool has_pmu = perf_open(&probe, 0, -1, -1, 0) >= 0;
	int fd = perf_open(&attr, 0, -1, -1, 0), error = errno;

	if (fd < 0 && error == EACCES)
		abi_need_events();
	if (fd >= 0 && row->config >= 100)
		FAIL("config %llu of type %u opened", (unsigned long long)row->config, row->type);
	if (fd >= 0)
		return;
	if (!has_pmu)
		CHECK_EQ(error, ENOENT);
	else
		CHECK(error == ENOENT || error == EINVAL || error == EOPNOTSUPP || error == ENODEV);
}
