// SPDX-License-Identifier: MIT
/* Fields of devices' events, and the devices of this machine as units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <perfmon/pfmlib_perf_event.h>

#include "pfm/sysfs.h"

static void test_field_texts(void **state)
{
	static const struct {
		const char *text;
		unsigned int config;
		uint64_t bits; /* 0: refused */
	} rows[] = {
		{"config:0-7", 0, 0xff},
		{"config:0-7,32-35", 0, 0xf000000ff},
		{"config1:63", 1, 1ULL << 63},
		{"config2:0-63", 2, ~0ULL},
		{"config", 0, ~0ULL},
		{"config1", 1, ~0ULL},
		{"config0:5", 0, 0x20},
		{"config3:0", 0, 0},
		{"config:64", 0, 0},
		{"config:7-0", 0, 0},
		{"config:", 0, 0},
		{"config:1,", 0, 0},
		{"config:a", 0, 0},
		{"config:1 ", 0, 0},
		{"config:-1", 0, 0},
		{"config99999999999999999999:1", 0, 0},
		{"event", 0, 0},
		{"", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sysfs_field field;
		bool ok = tly_pfm_field_parse(rows[i].text, &field);

		if (ok != (rows[i].bits != 0))
			fail_msg("'%s' is %s", rows[i].text, ok ? "taken" : "refused");
		if (!ok)
			continue;
		assert_int_equal(field.config, rows[i].config);
		assert_int_equal(field.bits, rows[i].bits);
	}
}

static void test_field_values(void **state)
{
	struct sysfs_field field;
	uint64_t config[SYSFS_CONFIGS] = {~0ULL, ~0ULL, ~0ULL};

	(void)state;
	assert_true(tly_pfm_field_parse("config1:0-7,32-35", &field));
	assert_true(tly_pfm_field_set(&field, 0x5a3, config));
	assert_int_equal(config[0], ~0ULL);
	assert_int_equal(config[1], 0xfffffff5ffffffa3);
	assert_int_equal(tly_pfm_field_get(&field, config), 0x5a3);
	assert_true(tly_pfm_field_set(&field, 0xfff, config));
	assert_false(tly_pfm_field_set(&field, 0x1000, config));
	assert_int_equal(config[1], ~0ULL);
	assert_true(tly_pfm_field_parse("config", &field));
	assert_true(tly_pfm_field_set(&field, ~0ULL, config));
	assert_true(tly_pfm_field_set(&field, 0, config));
	assert_int_equal(config[0], 0);
}

static struct perf_event_attr encode(const char *name, char **full)
{
	struct perf_event_attr attr = {0};
	pfm_perf_encode_arg_t arg = {.attr = &attr, .fstr = full, .size = sizeof(arg)};

	if (pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg))
		fail_msg("'%s' is refused", name);
	return attr;
}

static void check_event(const pfm_pmu_info_t *unit, int idx)
{
	pfm_event_info_t event = {.size = sizeof(event)};
	struct perf_event_attr attr, again;
	char *full = NULL, *twice = NULL;
	char name[512];

	assert_int_equal(pfm_get_event_info(idx, PFM_OS_PERF_EVENT, &event), PFM_SUCCESS);
	for (int i = 0; i < event.nattrs; i++) {
		pfm_event_attr_info_t field = {.size = sizeof(field)};

		assert_int_equal(pfm_get_event_attr_info(idx, i, PFM_OS_PERF_EVENT, &field),
				 PFM_SUCCESS);
		assert_true(*field.name && *field.desc);
		assert_int_equal(field.idx, i);
	}
	snprintf(name, sizeof(name), "%s::%s", unit->name, event.name);
	assert_int_equal(pfm_find_event(name), idx);
	attr = encode(name, &full);
	assert_int_equal(attr.config, event.code);
	again = encode(full, &twice);
	assert_memory_equal(&attr, &again, sizeof(attr));
	assert_string_equal(full, twice);
	free(full);
	free(twice);
}

static void test_devices_of_this_machine(void **state)
{
	pfm_pmu_info_t unit = {.size = sizeof(unit)};
	unsigned int units = 0;

	(void)state;
	assert_int_equal(pfm_initialize(), PFM_SUCCESS);
	for (int id = SYSFS_FIRST_ID; pfm_get_pmu_info(id, &unit) == PFM_SUCCESS; id++, units++) {
		int nr = 0;

		assert_true(unit.is_present && *unit.desc && unit.nevents > 0);
		assert_int_equal(pfm_pmu_validate(id, stderr), PFM_SUCCESS);
		for (int i = unit.first_event; i >= 0; i = pfm_get_event_next(i), nr++)
			check_event(&unit, i);
		assert_int_equal(nr, unit.nevents);
	}
	assert_int_equal(pfm_get_pmu_info(SYSFS_FIRST_ID + units, &unit), PFM_ERR_INVAL);
	assert_int_equal(pfm_get_pmu_info(SYSFS_FIRST_ID + SYSFS_MOST_UNITS, &unit), PFM_ERR_INVAL);
	assert_int_equal(pfm_find_event("nosuchdevice::raw"), PFM_ERR_NOTFOUND);
	if (!units)
		skip();
}

static void test_a_field_given_twice(void **state)
{
	struct perf_event_attr attr = {0};
	pfm_perf_encode_arg_t arg = {.attr = &attr, .size = sizeof(arg)};

	(void)state;
	if (pfm_find_event("msr::raw") < 0)
		skip();
	assert_int_equal(encode("msr::raw:event=3:event=0x3", NULL).config, 3);
	assert_int_equal(pfm_get_os_event_encoding("msr::raw:event=3:event=4", PFM_PLM3,
						   PFM_OS_PERF_EVENT, &arg),
			 PFM_ERR_ATTR_SET);
	assert_int_equal(
		pfm_get_os_event_encoding("msr::raw:event=x", PFM_PLM3, PFM_OS_PERF_EVENT, &arg),
		PFM_ERR_ATTR_VAL);
	assert_int_equal(pfm_get_os_event_encoding("msr::raw:event=99999999999999999999", PFM_PLM3,
						   PFM_OS_PERF_EVENT, &arg),
			 PFM_ERR_ATTR_VAL);
	assert_int_equal(pfm_get_os_event_encoding("msr::raw:u", PFM_PLM3, PFM_OS_PERF_EVENT, &arg),
			 PFM_ERR_ATTR);
	pfm_terminate();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_field_texts),
		cmocka_unit_test(test_field_values),
		cmocka_unit_test(test_devices_of_this_machine),
		cmocka_unit_test(test_a_field_given_twice),
	};

	unsetenv("LIBPFM_FORCE_PMU");
	unsetenv("LIBPFM_DISABLED_PMUS");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
