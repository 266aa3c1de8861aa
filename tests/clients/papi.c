// SPDX-License-Identifier: MIT
/*
 * What programs do with PAPI, as its documentation shows it; each prints what it saw, a name and a
 * number a line.
 *
 *	papi count TURNS		instructions and branches of region(), and of twice as much
 *	papi overflow TURNS PERIOD	how many overflows, and how many of them in measured()
 *	papi profil TURNS PERIOD	the histogram of the program's code: all of it, and measured()
 *	papi multiplex TURNS		more events at once than a real processor has counters
 */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

/* The linker tells where it ends. */
static void __attribute__((noinline, section("region_code"))) measured(uint64_t turns)
{
	region(turns);
}
extern const char __start_region_code[], __stop_region_code[];

static void must(int result, int expected, const char *what)
{
	if (result == expected)
		return;
	fprintf(stderr, "papi: %s: %s\n", what, PAPI_strerror(result));
	exit(1);
}

#define MUST(call) must(call, PAPI_OK, #call)

/* Of processors that this PAPI does not know it has no presets: then the kernel's generic event. */
static int known(int preset)
{
	static const struct {
		int preset;
		const char *generic;
	} events[] = {
		{PAPI_TOT_INS, "perf::INSTRUCTIONS"},
		{PAPI_TOT_CYC, "perf::CYCLES"},
		{PAPI_BR_INS, "perf::BRANCHES"},
		{PAPI_BR_MSP, "perf::BRANCH-MISSES"},
	};
	int code = preset;

	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		if (events[i].preset == preset && PAPI_query_event(preset) != PAPI_OK)
			MUST(PAPI_event_name_to_code(events[i].generic, &code));
	return code;
}

static int make_set(const int *events, int nr)
{
	int set = PAPI_NULL;

	MUST(PAPI_create_eventset(&set));
	for (int i = 0; i < nr; i++)
		MUST(PAPI_add_event(set, known(events[i])));
	return set;
}

static void count(uint64_t turns)
{
	const int events[] = {PAPI_TOT_INS, PAPI_BR_INS, PAPI_TOT_CYC};
	int set = make_set(events, 3);
	long long once[3], middle[3], twice[3];

	/* The first time functions are looked up. */
	MUST(PAPI_start(set));
	MUST(PAPI_read(set, middle));
	MUST(PAPI_stop(set, once));

	MUST(PAPI_start(set));
	measured(turns);
	MUST(PAPI_stop(set, once));
	MUST(PAPI_start(set));
	measured(turns);
	measured(turns);
	MUST(PAPI_stop(set, twice));
	printf("instructions %lld\nbranches %lld\ncycles %lld\n", once[0], once[1], once[2]);
	printf("more-instructions %lld\nmore-branches %lld\n", twice[0] - once[0],
	       twice[1] - once[1]);

	MUST(PAPI_start(set));
	measured(turns);
	MUST(PAPI_read(set, middle));
	MUST(PAPI_reset(set));
	MUST(PAPI_stop(set, twice));
	printf("read-instructions %lld\nreset-instructions %lld\n", middle[0], twice[0]);
}

static int overflows, within;

static void on_overflow(int set, void *address, long long vector, void *context)
{
	(void)set, (void)vector, (void)context;
	overflows++;
	within += (char *)address >= __start_region_code && (char *)address < __stop_region_code;
}

static void overflow(uint64_t turns, int period)
{
	const int event = PAPI_TOT_INS;
	int set = make_set(&event, 1);
	long long value;

	MUST(PAPI_overflow(set, known(event), period, 0, on_overflow));
	MUST(PAPI_start(set));
	measured(turns);
	MUST(PAPI_stop(set, &value));
	printf("overflows %d\nwithin %d\n", overflows, within);
}

static void histogram(uint64_t turns, int period)
{
	enum { BUCKETS = 4096, SCALE = 65536 }; /* of two bytes each */
	static unsigned short buckets[BUCKETS];
	const int event = PAPI_TOT_INS;
	int set = make_set(&event, 1);
	unsigned long all = 0;
	long long value;

	MUST(PAPI_profil(buckets, sizeof(buckets), (void *)(uintptr_t)__start_region_code, SCALE,
			 set, known(event), period, PAPI_PROFIL_POSIX));
	MUST(PAPI_start(set));
	measured(turns);
	MUST(PAPI_stop(set, &value));
	for (int i = 0; i < (__stop_region_code - __start_region_code + 1) / 2; i++)
		all += buckets[i];
	printf("within %lu\n", all);
}

static void multiplex(uint64_t turns)
{
	static const int events[] = {PAPI_TOT_INS, PAPI_TOT_CYC, PAPI_BR_INS, PAPI_BR_MSP};
	enum { NR = sizeof(events) / sizeof(*events) };
	int set = PAPI_NULL;
	long long values[NR];

	MUST(PAPI_multiplex_init());
	MUST(PAPI_create_eventset(&set));
	MUST(PAPI_assign_eventset_component(set, 0));
	MUST(PAPI_set_multiplex(set));
	for (int i = 0; i < NR; i++)
		MUST(PAPI_add_event(set, known(events[i])));
	MUST(PAPI_start(set));
	measured(turns);
	MUST(PAPI_stop(set, values));
	printf("instructions %lld\nbranches %lld\n", values[0], values[2]);
}

int main(int argc, char **argv)
{
	uint64_t turns = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	int period = argc > 3 ? atoi(argv[3]) : 0;

	if (!turns) {
		fprintf(stderr, "usage: papi count|overflow|profil|multiplex TURNS [PERIOD]\n");
		return 2;
	}
	must(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT, "PAPI_library_init()");
	if (!strcmp(argv[1], "count"))
		count(turns);
	else if (!strcmp(argv[1], "overflow"))
		overflow(turns, period);
	else if (!strcmp(argv[1], "profil"))
		histogram(turns, period);
	else if (!strcmp(argv[1], "multiplex"))
		multiplex(turns);
	else
		return 2;
	return 0;
}
