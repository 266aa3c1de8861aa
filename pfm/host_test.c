// SPDX-License-Identifier: MIT
/* What programs that look at one unit after the other see, on processors that this one is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <perfmon/pfmlib.h>

#include "pfm/host.h"

/*
 * As PAPI does it: up to the first wrong number it wants counters of a processor, and no two. It
 * knows ix86arch. The names of what it finds, with blanks between them.
 */
static const char *found_by_papi(void)
{
	static char names[256];

	names[0] = '\0';
	for (int id = 0;; id++) {
		pfm_pmu_info_t unit = {.size = sizeof(unit)};
		int rc = pfm_get_pmu_info(id, &unit);

		if (rc == PFM_ERR_INVAL)
			break;
		if (rc || !unit.is_present || unit.type != PFM_PMU_TYPE_CORE ||
		    strcmp(unit.name, "ix86arch") == 0)
			continue;
		strncat(names, *names ? " " : "", sizeof(names) - strlen(names) - 1);
		strncat(names, unit.name, sizeof(names) - strlen(names) - 1);
	}
	return names;
}

static const char *found_on(const struct processor *cpu)
{
	tly_pfm_detect(&tly_pfm_host, cpu);
	tly_pfm_host.ready = true;
	return found_by_papi();
}

static const struct table_pmu *counters(size_t i)
{
	const struct table_pmu *pmu = table_pmus() + i;

	return pmu->type == PFM_PMU_TYPE_CORE && !table_is_architected(pmu) ? pmu : NULL;
}

static void test_each_forced_unit_is_found(void **state)
{
	int units = 0;

	(void)state;
	for (size_t i = 0; i < tly_pfm_table.n_pmus; i++) {
		if (!counters(i))
			continue;
		setenv("LIBPFM_FORCE_PMU", table_string(counters(i)->name), 1);
		assert_string_equal(found_on(&(struct processor){.vendor = -1}),
				    table_string(counters(i)->name));
		units++;
	}
	unsetenv("LIBPFM_FORCE_PMU");
	assert_in_range(units, 70, 200);
}

static const struct processor hybrids[] = {
	{.vendor = TABLE_INTEL, .family = 6, .model = 151},
	{.vendor = TABLE_INTEL, .family = 6, .model = 154},
};

static bool is_hybrid(const struct processor *cpu)
{
	for (size_t i = 0; i < sizeof(hybrids) / sizeof(*hybrids); i++)
		if (cpu->vendor == hybrids[i].vendor && cpu->family == hybrids[i].family &&
		    cpu->model == hybrids[i].model)
			return true;
	return false;
}

static void assert_finds_one(struct processor cpu, const char *name)
{
	const char *natively = is_hybrid(&cpu) ? "adl_glc adl_grt" : name;

	if (strcmp(found_on(&cpu), natively))
		fail_msg("family %u model %u stepping %u has '%s' and not '%s'", cpu.family,
			 cpu.model, cpu.stepping, found_by_papi(), natively);
	cpu.is_virtual = true;
	if (strcmp(found_on(&cpu), is_hybrid(&cpu) ? "adl_glc" : name))
		fail_msg("within a run family %u model %u stepping %u has '%s' and not '%s'",
			 cpu.family, cpu.model, cpu.stepping, found_by_papi(), name);
}

static void test_each_processor_has_its_unit(void **state)
{
	int processors = 0;

	(void)state;
	for (size_t i = 0; i < tly_pfm_table.n_pmus; i++) {
		const struct table_model *models = counters(i) ? table_models(counters(i)) : NULL;

		for (unsigned int m = 0; models && m < counters(i)->n_models; m++) {
			struct processor cpu = {.vendor = models[m].vendor,
						.family = models[m].family,
						.model = models[m].first,
						.stepping = models[m].first_stepping};

			assert_finds_one(cpu, table_string(counters(i)->name));
			cpu.model = models[m].last;
			cpu.stepping = models[m].last_stepping;
			assert_finds_one(cpu, table_string(counters(i)->name));
			processors++;
		}
	}
	assert_in_range(processors, 100, 1000);
}

/* One that no table knows has what goes with any processor. */
static void test_an_unknown_processor(void **state)
{
	(void)state;
	assert_string_equal(found_on(&(struct processor){.vendor = -1}), "");
	assert_string_equal(found_on(&(struct processor){.vendor = -1, .is_virtual = true}),
			    "tally");
	assert_string_equal(found_on(&(struct processor){.vendor = TABLE_ARM}), "arm_pmuv3");
}

static void test_numbers_end(void **state)
{
	pfm_pmu_info_t unit = {.size = sizeof(unit)};

	(void)state;
	found_on(&(struct processor){.vendor = -1});
	assert_int_equal(pfm_get_pmu_info(-1, &unit), PFM_ERR_INVAL);
	assert_int_equal(pfm_get_pmu_info(PFM_PMU_MAX, &unit), PFM_SUCCESS);
	assert_int_equal(pfm_get_pmu_info(999, &unit), PFM_ERR_NOTSUPP);
	assert_int_equal(pfm_get_pmu_info(1023, &unit), PFM_ERR_INVAL);
	assert_int_equal(pfm_get_pmu_info(0x7fffffff, &unit), PFM_ERR_INVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_forced_unit_is_found),
		cmocka_unit_test(test_each_processor_has_its_unit),
		cmocka_unit_test(test_an_unknown_processor),
		cmocka_unit_test(test_numbers_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
