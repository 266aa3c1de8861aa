// SPDX-License-Identifier: MIT
/*
 * pfm-speed LIBRARY NAMES...: what a library with libpfm4's interface takes, in nanoseconds.
 *
 * Two lines: one pfm_initialize() in a fresh process, then one encoding of a name, over all names in
 * random order, the best of a few rounds.
 */
#include <perfmon/pfmlib.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 5, ENCODINGS = 20000 };
	void *lib = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	typeof(pfm_initialize) *initialize;
	typeof(pfm_get_os_event_encoding) *encode;
	double start, best = 0;

	if (!lib || !(initialize = dlsym(lib, "pfm_initialize")) ||
	    !(encode = dlsym(lib, "pfm_get_os_event_encoding"))) {
		fprintf(stderr, "pfm-speed: %s\n", lib ? "not all of the interface" : dlerror());
		return 1;
	}
	start = now();
	if (initialize() != PFM_SUCCESS)
		return 1;
	printf("%.0f\n", now() - start);
	srand(1);
	for (int round = 0; round < ROUNDS; round++) {
		start = now();
		for (int i = 0; i < ENCODINGS; i++) {
			uint64_t codes[8];
			pfm_pmu_encode_arg_t arg = {.size = sizeof arg, .codes = codes, .count = 8};

			if (encode(argv[2 + rand() % (argc - 2)], PFM_PLM3, PFM_OS_NONE, &arg))
				return 1;
		}
		if (!round || now() - start < best)
			best = now() - start;
	}
	printf("%.0f\n", best / ENCODINGS);
	return 0;
}
