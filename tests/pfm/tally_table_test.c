// SPDX-License-Identifier: MIT
/* The table of the unit "tally" (data/events/tally.tsv) against what tally run's own encoding says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <perfmon/pfmlib_perf_event.h>

#include "abi/arena.h"
#include "core/core.h"
#include "core/encoding.h"

static void test_every_event_has_its_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < core_nr_named_events; i++) {
		struct perf_event_attr attr = {.size = sizeof(attr)};
		char name[128];

		snprintf(name, sizeof(name), "tally::%s", core_named_events[i].name);
		if (pfm_get_perf_event_encoding(name, PFM_PLM3, &attr, NULL, NULL))
			fail_msg("'%s' is not in the table", name);
		assert_int_equal(attr.type, PERF_TYPE_RAW);
		assert_int_equal(attr.config, core_named_events[i].own);
		assert_int_equal(core_encoding(&attr), core_named_events[i].kind);
	}
}

static void test_there_are_no_others(void **state)
{
	pfm_pmu_info_t unit = {.size = sizeof(unit)};
	int idx = pfm_find_event("tally::instructions");
	pfm_event_info_t event = {.size = sizeof(event)};

	(void)state;
	assert_int_equal(pfm_get_event_info(idx, PFM_OS_NONE, &event), PFM_SUCCESS);
	assert_int_equal(pfm_get_pmu_info(event.pmu, &unit), PFM_SUCCESS);
	assert_string_equal(unit.name, "tally");
	assert_int_equal(unit.nevents, core_nr_named_events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_event_has_its_code),
		cmocka_unit_test(test_there_are_no_others),
	};

	void *arena = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (arena == MAP_FAILED)
		return 1;
	core_attach(arena);
	core_setup(&(struct core_settings){.cpu_type = PERF_TYPE_RAW});
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	if (pfm_initialize() != PFM_SUCCESS)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
