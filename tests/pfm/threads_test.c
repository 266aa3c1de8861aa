// SPDX-License-Identifier: MIT
/*
 * Eight threads that initialize, look up, enumerate and encode at once, built with the thread
 * sanitizer: what it finds ends the program. Each thread checks what it gets against what one
 * thread got alone.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <perfmon/pfmlib_perf_event.h>

enum { THREADS = 8, ROUNDS = 200 };

static const char *const strings[] = {
	"skl::INST_RETIRED:ANY_P:c=2:i",
	"skx::OFFCORE_RESPONSE_0:ANY_REQUEST:SNP_ANY",
	"amd64_fam19h_zen3::RETIRED_SSE_AVX_FLOPS:u",
	"arm_n1::CPU_CYCLES",
	"perf::PERF_COUNT_HW_CACHE_L1D:MISS",
	"perf::sched:sched_switch",
	"msr::tsc",
	"perf_raw::r1c2",
	"icl::L2_RQSTS",
	"NO_SUCH_EVENT",
};
enum { STRINGS = sizeof(strings) / sizeof(strings[0]) };

struct answer {
	int error;
	char name[512];
	struct perf_event_attr attr;
};

static struct answer alone[STRINGS];
static pthread_barrier_t start;

static void ask(const char *string, struct answer *answer)
{
	char *name = NULL;
	pfm_perf_encode_arg_t arg = {.attr = &answer->attr, .fstr = &name, .size = sizeof(arg)};

	memset(answer, 0, sizeof(*answer));
	answer->error = pfm_get_os_event_encoding(string, PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &arg);
	if (name)
		snprintf(answer->name, sizeof(answer->name), "%s", name);
	free(name);
}

/* Tracepoints among them, which are looked for only now. */
static unsigned int count_events(void)
{
	unsigned int nr = 0;

	for (int id = 0; id < 2048; id++) {
		pfm_pmu_info_t unit = {.size = sizeof(unit)};

		if (pfm_get_pmu_info(id, &unit) == PFM_SUCCESS)
			for (int i = unit.first_event; i >= 0; i = pfm_get_event_next(i))
				nr++;
	}
	return nr;
}

static void *work(void *arg)
{
	unsigned int number = (unsigned int)(size_t)arg, events;
	struct answer answer;
	bool ok = true;

	pthread_barrier_wait(&start);
	if (pfm_initialize() != PFM_SUCCESS)
		return (void *)1;
	events = count_events();
	for (unsigned int i = 0; i < ROUNDS; i++) {
		unsigned int which = (i + number) % STRINGS;

		ask(strings[which], &answer);
		ok = ok && !memcmp(&answer, &alone[which], sizeof(answer));
	}
	ok = ok && events == count_events();
	return ok ? NULL : (void *)1;
}

int main(void)
{
	pthread_t threads[THREADS];
	bool ok = true;

	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	if (pfm_initialize() != PFM_SUCCESS)
		return 1;
	for (unsigned int i = 0; i < STRINGS; i++)
		ask(strings[i], &alone[i]);
	pfm_terminate();
	pthread_barrier_init(&start, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (unsigned int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		ok = ok && !failed;
	}
	pfm_terminate();
	printf("1..1\n%s 1 - %d threads encode what one does\n", ok ? "ok" : "not ok", THREADS);
	return 0;
}
