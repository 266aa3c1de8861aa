// SPDX-License-Identifier: MIT
/*
 * pfm-speed LIBRARY NAMES...: what a library with libpfm4's interface takes, in nanoseconds.
 *
 * Three lines: one pfm_initialize() in a fresh process; one encoding of a name, over all names in
 * random order, the best of a few rounds; and that with the full name made.
 */
#include <perfmon/pfmlib.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static typeof(pfm_initialize) *initialize;
static typeof(pfm_get_os_event_encoding) *encode;

/* Nanoseconds an encoding; negative if one fails. */
static double measure(char **names, int n, bool full)
{
	enum { ROUNDS = 5, ENCODINGS = 20000 };
	double best = 0;

	srand(1);
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();

		for (int i = 0; i < ENCODINGS; i++) {
			uint64_t codes[8];
			char *name = NULL;
			pfm_pmu_encode_arg_t arg = {.size = sizeof arg, .codes = codes, .count = 8};

			if (full)
				arg.fstr = &name;
			if (encode(names[rand() % n], PFM_PLM3, PFM_OS_NONE, &arg))
				return -1;
			free(name);
		}
		if (!round || now() - start < best)
			best = now() - start;
	}
	return best / ENCODINGS;
}

int main(int argc, char **argv)
{
	void *lib = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	double start, bare, full;

	if (!lib || !(initialize = dlsym(lib, "pfm_initialize")) ||
	    !(encode = dlsym(lib, "pfm_get_os_event_encoding"))) {
		fprintf(stderr, "pfm-speed: %s\n", lib ? "not all of the interface" : dlerror());
		return 1;
	}
	start = now();
	if (initialize() != PFM_SUCCESS)
		return 1;
	printf("%.0f\n", now() - start);
	bare = measure(argv + 2, argc - 2, false);
	full = measure(argv + 2, argc - 2, true);
	if (bare < 0 || full < 0)
		return 1;
	printf("%.0f\n%.0f\n", bare, full);
	return 0;
}
