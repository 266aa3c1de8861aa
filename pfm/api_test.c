// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <perfmon/pfmlib_perf_event.h>

static int start(void **state)
{
	(void)state;
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	return pfm_initialize();
}

static int stop(void **state)
{
	(void)state;
	pfm_terminate();
	unsetenv("LIBPFM_ENCODE_INACTIVE");
	unsetenv("LIBPFM_FORCE_PMU");
	unsetenv("LIBPFM_DISABLED_PMUS");
	return 0;
}

/* The codes and the full name of a string, as "name code code". */
static void assert_encodes(const char *string, const char *expected)
{
	char text[512], *name = NULL;
	pfm_pmu_encode_arg_t arg = {.fstr = &name, .size = sizeof(arg)};
	int length;

	assert_int_equal(pfm_get_os_event_encoding(string, PFM_PLM0 | PFM_PLM3, PFM_OS_NONE, &arg),
			 0);
	length = snprintf(text, sizeof(text), "%s", name);
	for (int i = 0; i < arg.count; i++)
		length += snprintf(text + length, sizeof(text) - length, " %#llx",
				   (unsigned long long)arg.codes[i]);
	assert_string_equal(text, expected);
	free(name);
	free(arg.codes);
}

static void assert_refused(const char *string, int error)
{
	char *name = NULL;
	uint64_t code = 77;
	pfm_pmu_encode_arg_t arg = {
		.codes = &code, .count = 1, .fstr = &name, .size = sizeof(arg), .idx = 5};
	struct perf_event_attr attr, before;
	pfm_perf_encode_arg_t perf = {
		.attr = &attr, .fstr = &name, .size = sizeof(perf), .idx = 5, .cpu = 6, .flags = 7};

	assert_int_equal(pfm_get_os_event_encoding(string, PFM_PLM3, PFM_OS_NONE, &arg), error);
	assert_int_equal(code, 77);
	assert_int_equal(arg.idx, 5);
	assert_int_equal(arg.count, 1);
	memset(&attr, 0xa5, sizeof(attr));
	before = attr;
	assert_int_equal(pfm_get_os_event_encoding(string, PFM_PLM3, PFM_OS_PERF_EVENT, &perf),
			 error);
	assert_memory_equal(&attr, &before, sizeof(attr));
	assert_int_equal(perf.idx, 5);
	assert_int_equal(perf.cpu, 6);
	assert_int_equal(perf.flags, 7);
	assert_null(name);
}

static void test_nothing_before_initialization(void **state)
{
	pfm_pmu_info_t pmu = {.size = sizeof(pmu)};
	pfm_event_info_t event = {.size = sizeof(event)};
	pfm_event_attr_info_t attr = {.size = sizeof(attr)};
	pfm_pmu_encode_arg_t arg = {.size = sizeof(arg)};
	uint64_t *codes = NULL;
	int count = 0;

	(void)state;
	assert_int_equal(pfm_get_pmu_info(PFM_PMU_PERF_EVENT, &pmu), PFM_ERR_NOINIT);
	assert_int_equal(pfm_get_event_info(0, PFM_OS_NONE, &event), PFM_ERR_NOINIT);
	assert_int_equal(pfm_get_event_attr_info(0, 0, PFM_OS_NONE, &attr), PFM_ERR_NOINIT);
	assert_int_equal(pfm_find_event("cycles"), PFM_ERR_NOINIT);
	assert_int_equal(pfm_get_os_event_encoding("cycles", 0, PFM_OS_NONE, &arg), PFM_ERR_NOINIT);
	assert_int_equal(pfm_get_event_encoding("cycles", 0, NULL, NULL, &codes, &count),
			 PFM_ERR_NOINIT);
	assert_int_equal(pfm_get_event_next(0), -1);
	assert_int_equal(pfm_get_version(), LIBPFM_VERSION);
}

static void test_intel(void **state)
{
	(void)state;
	assert_encodes("skl::L2_RQSTS:MISS",
		       "skl::L2_RQSTS:MISS:k=1:u=1:e=0:i=0:c=0:t=0:intx=0:intxcp=0 0x533f24");
	assert_encodes("SKL::l2_rqsts.miss.k=1.c=2.i.e",
		       "skl::L2_RQSTS:MISS:k=1:u=0:e=1:i=1:c=2:t=0:intx=0:intxcp=0 0x2d63f24");
	assert_encodes("skl::L2_RQSTS:0x3f:u:u",
		       "skl::L2_RQSTS:0x3f:k=0:u=1:e=0:i=0:c=0:t=0:intx=0:intxcp=0 0x513f24");
	assert_encodes("skl::CYCLE_ACTIVITY:STALLS_L2_MISS",
		       "skl::CYCLE_ACTIVITY:STALLS_L2_MISS:k=1:u=1:e=0:i=0:c=5:t=0:intx=0:intxcp=0"
		       " 0x55305a3");
	assert_encodes("skl::UNHALTED_REFERENCE_CYCLES",
		       "skl::UNHALTED_REFERENCE_CYCLES:k=1:u=1:t=0 0x530300");
}

static void test_intel_second_codes(void **state)
{
	(void)state;
	assert_encodes("skl::MEM_TRANS_RETIRED:LOAD_LATENCY",
		       "skl::MEM_TRANS_RETIRED:LOAD_LATENCY:k=1:u=1:e=0:i=0:c=0:t=0:ldlat=3:intx=0"
		       ":intxcp=0 0x5301cd 0x3");
	assert_encodes("skl::FRONTEND_RETIRED:IDQ_4_BUBBLES:fe_thres=6",
		       "skl::FRONTEND_RETIRED:IDQ_4_BUBBLES:k=1:u=1:e=0:i=0:c=0:intx=0:intxcp=0"
		       ":fe_thres=6 0x5301c6 0x400606");
	assert_encodes("skl::OFFCORE_RESPONSE_0:ANY_REQUEST",
		       "skl::OFFCORE_RESPONSE_0:DMND_DATA_RD:DMND_RFO:DMND_CODE_RD:OTHER"
		       ":ANY_RESPONSE:k=1:u=1:e=0:i=0:c=0:t=0:intx=0:intxcp=0 0x5301b7 0x18007");
}

static void test_amd64(void **state)
{
	(void)state;
	assert_encodes("amd64_fam10h_barcelona::RETIRED_INSTRUCTIONS:h:g:c=3",
		       "amd64_fam10h_barcelona::RETIRED_INSTRUCTIONS:k=0:u=0:e=0:i=0:c=3:h=1:g=1"
		       " 0x300035000c0");
	assert_encodes("amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS",
		       "amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:ANY:k=1:u=1:e=0:i=0:c=0:h=0:g=0"
		       " 0x530f03");
}

static void test_kernels_events(void **state)
{
	(void)state;
	assert_encodes("CYCLES", "perf::PERF_COUNT_HW_CPU_CYCLES 0");
	assert_encodes("perf::L1-DCACHE-LOAD-MISSES",
		       "perf::PERF_COUNT_HW_CACHE_L1D:READ:MISS 0x10000");
	assert_encodes("perf_raw::r1c4", "perf_raw::r1c4 0x1c4");
}

static void test_refusals(void **state)
{
	char *longest = malloc(100001);

	(void)state;
	assert_non_null(longest);
	memset(longest, 'A', 100000);
	longest[100000] = '\0';
	assert_refused(longest, PFM_ERR_NOTFOUND);
	free(longest);

	assert_refused("", PFM_ERR_NOTFOUND);
	assert_refused("::", PFM_ERR_NOTFOUND);
	assert_refused("nothing::L2_RQSTS", PFM_ERR_NOTFOUND);
	assert_refused("skl::", PFM_ERR_NOTFOUND);
	assert_refused("skl::L2", PFM_ERR_NOTFOUND);
	assert_refused("perf_raw::r", PFM_ERR_NOTFOUND);
	assert_refused("perf_raw::r12345678901234567", PFM_ERR_NOTFOUND);
	assert_refused("skl::L2_RQSTS,cycles", PFM_ERR_INVAL);
	assert_refused("skl::L2_RQSTS MISS", PFM_ERR_INVAL);
	assert_refused("skl::L2_RQSTS:MISS:", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS::MISS", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:NONE", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:MISS=1", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:MISS:0x3f", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:0x3f:MISS", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:0x100", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:MISS:ldlat=4", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:MISS:e", PFM_ERR_ATTR);
	assert_refused("skl::L2_RQSTS:MISS:c", PFM_ERR_ATTR_VAL);
	assert_refused("skl::L2_RQSTS:MISS:c=", PFM_ERR_ATTR_VAL);
	assert_refused("skl::L2_RQSTS:MISS:c=256", PFM_ERR_ATTR_VAL);
	assert_refused("skl::L2_RQSTS:MISS:c=1=2", PFM_ERR_ATTR_VAL);
	assert_refused("skl::L2_RQSTS:MISS:i=2", PFM_ERR_ATTR_VAL);
	assert_refused("skl::L2_RQSTS:MISS:i=yes", PFM_ERR_ATTR_VAL);
	assert_refused("skl::L2_RQSTS:MISS:c=1:c=2", PFM_ERR_ATTR_SET);
	assert_refused("skl::CYCLE_ACTIVITY:STALLS_L2_MISS:c=3", PFM_ERR_ATTR_SET);
	assert_refused("skl::L2_RQSTS:MISS:PF_MISS", PFM_ERR_FEATCOMB);
	assert_refused("skl::OFFCORE_RESPONSE_0:DMND_DATA_RD:ANY_RESPONSE:SNP_ANY",
		       PFM_ERR_FEATCOMB);
	assert_refused("nhm::MEM_INST_RETIRED", PFM_ERR_UMASK);
	assert_refused("perf::PERF_COUNT_HW_CACHE_L1D:ACCESS:MISS", PFM_ERR_UMASK);
	assert_refused("skl::MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=0", PFM_ERR_ATTR_VAL);
	assert_refused("skl::MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=65536", PFM_ERR_ATTR_VAL);
}

static void test_wrong_arguments(void **state)
{
	struct {
		pfm_pmu_encode_arg_t arg;
		char tail[8];
	} larger = {.arg.size = sizeof(larger)};
	pfm_pmu_encode_arg_t arg = {.size = sizeof(arg)};
	pfm_perf_encode_arg_t perf = {.size = sizeof(perf)};
	uint64_t codes[2] = {77, 77};

	(void)state;
	assert_int_equal(pfm_find_event(NULL), PFM_ERR_INVAL);
	assert_int_equal(pfm_get_os_event_encoding(NULL, 0, PFM_OS_NONE, &arg), PFM_ERR_INVAL);
	assert_int_equal(pfm_get_os_event_encoding("cycles", 0, PFM_OS_NONE, NULL), PFM_ERR_INVAL);
	assert_int_equal(pfm_get_os_event_encoding("cycles", 64, PFM_OS_NONE, &arg), PFM_ERR_INVAL);
	assert_int_equal(pfm_get_os_event_encoding("cycles", 0, PFM_OS_MAX, &arg), PFM_ERR_NOTSUPP);
	assert_int_equal(pfm_get_os_event_encoding("cycles", 0, PFM_OS_PERF_EVENT, &perf),
			 PFM_ERR_INVAL);
	arg.size = PFM_RAW_ENCODE_ABI0 - 1;
	assert_int_equal(pfm_get_os_event_encoding("cycles", 0, PFM_OS_NONE, &arg), PFM_ERR_INVAL);
	assert_null(arg.codes);
	larger.tail[7] = 1;
	assert_int_equal(pfm_get_os_event_encoding("cycles", 0, PFM_OS_NONE, &larger),
			 PFM_ERR_INVAL);
	assert_null(larger.arg.codes);
	larger.tail[7] = 0;
	assert_int_equal(pfm_get_os_event_encoding("cycles", 0, PFM_OS_NONE, &larger), PFM_SUCCESS);
	free(larger.arg.codes);
	arg = (pfm_pmu_encode_arg_t){.codes = codes, .count = 1};
	assert_int_equal(pfm_get_os_event_encoding("skl::MEM_TRANS_RETIRED:LOAD_LATENCY", 0,
						   PFM_OS_NONE, &arg),
			 PFM_ERR_TOOSMALL);
	assert_int_equal(codes[0], 77);
	arg.count = 2;
	assert_int_equal(pfm_get_os_event_encoding("skl::MEM_TRANS_RETIRED:LOAD_LATENCY", 0,
						   PFM_OS_NONE, &arg),
			 PFM_SUCCESS);
	assert_int_equal(codes[1], 3);
}

/* What perf_event_open(2) gets, of an attr with other things in it. */
static void test_attr(void **state)
{
	struct perf_event_attr attr = {.size = 99, .disabled = 1, .config2 = 5};
	char *name = NULL;
	pfm_perf_encode_arg_t arg = {.attr = &attr, .fstr = &name, .size = sizeof(arg)};
	const char *string = "skl::MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=9:u:freq=7:precise=2:cpu=3"
			     ":pinned:mg";

	(void)state;
	assert_int_equal(pfm_get_os_event_encoding(string, PFM_PLM0, PFM_OS_PERF_EVENT, &arg),
			 PFM_ERR_ATTR);
	assert_int_equal(pfm_get_os_event_encoding(string, PFM_PLM0, PFM_OS_PERF_EVENT_EXT, &arg),
			 PFM_SUCCESS);
	assert_int_equal(attr.type, PERF_TYPE_RAW);
	assert_int_equal(attr.config, 0x1cd);
	assert_int_equal(attr.config1, 9);
	assert_int_equal(attr.config2, 5);
	assert_int_equal(attr.size, 99);
	assert_int_equal(attr.disabled, 1);
	assert_int_equal(attr.sample_freq, 7);
	assert_int_equal(attr.freq, 1);
	assert_int_equal(attr.precise_ip, 2);
	assert_int_equal(attr.pinned, 1);
	assert_int_equal(attr.exclude_user, 0);
	assert_int_equal(attr.exclude_kernel, 1);
	assert_int_equal(attr.exclude_hv, 0);
	assert_int_equal(attr.exclude_guest, 0);
	assert_int_equal(attr.exclude_host, 1);
	assert_int_equal(arg.cpu, 3);
	assert_string_equal(name,
			    "skl::MEM_TRANS_RETIRED:LOAD_LATENCY:e=0:i=0:c=0:t=0:ldlat=9:intx=0"
			    ":intxcp=0:u=1:k=0:period=7:freq=7:precise=2:excl=0:mg=1:mh=0");
	free(name);
}

/* Every event of every unit says of itself what can be asked for. */
static void test_enumeration(void **state)
{
	unsigned int events = 0, attributes = 0;

	(void)state;
	for (int id = 0; id < 1000; id++) {
		pfm_pmu_info_t pmu = {.size = sizeof(pmu)};
		int seen = 0;

		if (pfm_get_pmu_info(id, &pmu) != PFM_SUCCESS)
			continue;
		assert_int_equal(pfm_pmu_validate(id, stderr), PFM_SUCCESS);
		for (int i = pmu.first_event; i >= 0; i = pfm_get_event_next(i)) {
			pfm_event_info_t event = {.size = sizeof(event)};

			assert_int_equal(pfm_get_event_info(i, PFM_OS_PERF_EVENT_EXT, &event), 0);
			assert_int_equal(event.idx, i);
			assert_int_equal(event.pmu, id);
			assert_non_null(event.desc);
			for (int a = 0; a < event.nattrs; a++) {
				pfm_event_attr_info_t attr = {.size = sizeof(attr)};

				assert_int_equal(
					pfm_get_event_attr_info(i, a, PFM_OS_PERF_EVENT_EXT, &attr),
					PFM_SUCCESS);
				assert_int_equal(attr.idx, a);
				assert_non_null(attr.name);
				assert_non_null(attr.desc);
				attributes++;
			}
			assert_int_equal(pfm_get_event_attr_info(i, event.nattrs,
								 PFM_OS_PERF_EVENT_EXT,
								 &(pfm_event_attr_info_t){0}),
					 PFM_ERR_INVAL);
			seen++;
		}
		assert_int_equal(seen, pmu.nevents);
		events += seen;
	}
	assert_in_range(events, 4000, 100000);
	assert_in_range(attributes, 50000, 2000000);
	assert_int_equal(pfm_get_event_next(-1), -1);
	assert_int_equal(pfm_get_event_next(0x7fffffff), -1);
}

static void test_environment(void **state)
{
	pfm_pmu_info_t pmu = {.size = sizeof(pmu)};

	(void)state;
	pfm_terminate();
	unsetenv("LIBPFM_ENCODE_INACTIVE");
	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	assert_int_equal(pfm_initialize(), PFM_SUCCESS);
	assert_int_equal(pfm_get_pmu_info(PFM_PMU_INTEL_SKL, &pmu), PFM_SUCCESS);
	assert_true(pmu.is_present);
	assert_true(pfm_find_event("L2_RQSTS:MISS") > 0);
	assert_int_equal(pfm_find_event("perf::cycles"), PFM_ERR_NOTFOUND);
	assert_int_equal(pfm_find_event("nhm::L2_RQSTS:MISS"), PFM_ERR_NOTFOUND);
	pfm_terminate();
	unsetenv("LIBPFM_FORCE_PMU");
	setenv("LIBPFM_DISABLED_PMUS", "skl,perf", 1);
	assert_int_equal(pfm_initialize(), PFM_SUCCESS);
	assert_int_equal(pfm_find_event("cycles"), PFM_ERR_NOTFOUND);
	assert_true(pfm_find_event("r1c4") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_before_initialization),
		cmocka_unit_test_setup_teardown(test_intel, start, stop),
		cmocka_unit_test_setup_teardown(test_intel_second_codes, start, stop),
		cmocka_unit_test_setup_teardown(test_amd64, start, stop),
		cmocka_unit_test_setup_teardown(test_kernels_events, start, stop),
		cmocka_unit_test_setup_teardown(test_refusals, start, stop),
		cmocka_unit_test_setup_teardown(test_wrong_arguments, start, stop),
		cmocka_unit_test_setup_teardown(test_attr, start, stop),
		cmocka_unit_test_setup_teardown(test_enumeration, start, stop),
		cmocka_unit_test_setup_teardown(test_environment, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
