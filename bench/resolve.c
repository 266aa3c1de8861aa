// SPDX-License-Identifier: MIT
/*
 * What one address costs, in this process's own libraries: resolved for the first time, resolved
 * again, and its source. Prints CPU time and rates; there is no peer to compare with.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tally/symbol.h>

#define ADDRESSES 20000
#define HOT	  1000 /* as many as most samples of a profile fall on */
#define ROUNDS	  200

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void print_rate(const char *what, double elapsed, double count)
{
	printf("%-44s %8.1f ns %12.0f/s\n", what, elapsed / count, count / elapsed * 1e9);
}

static void resolve_all(struct tally_machine *machine, const uint64_t *ips, size_t nr, int rounds,
			uint32_t pid)
{
	struct tally_location location;

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < nr; i++)
			tally_machine_resolve(machine, pid, round, PERF_RECORD_MISC_USER, ips[i],
					      &location);
	}
}

int main(void)
{
	struct tally_symbols *symbols = tally_symbols_new(NULL);
	struct tally_machine *machine = symbols ? tally_machine_new(symbols) : NULL;
	static uint64_t ips[ADDRESSES];
	struct tally_source_frame frames[64];
	struct tally_location location;
	const uint32_t pid = getpid();
	size_t nr_frames = 0;
	double start;

	if (!machine || tally_machine_feed_proc(machine, pid, NULL))
		return 1;
	/* Around qsort(), in the C library: as many addresses as a profile of a large program has.
	 */
	for (size_t i = 0; i < ADDRESSES; i++)
		ips[i] = (uintptr_t)qsort + i * 37 % 500000;
	tally_machine_resolve(machine, pid, 0, PERF_RECORD_MISC_USER, ips[0], &location);
	start = now();
	resolve_all(machine, ips, ADDRESSES, 1, pid);
	print_rate("resolve, first time", now() - start, ADDRESSES);
	start = now();
	resolve_all(machine, ips, ADDRESSES, ROUNDS, pid);
	print_rate("resolve, again: 20000 in turn", now() - start, (double)ADDRESSES * ROUNDS);
	start = now();
	resolve_all(machine, ips, HOT, ROUNDS * ADDRESSES / HOT, pid);
	print_rate("resolve, again: 1000 in turn", now() - start, (double)ADDRESSES * ROUNDS);
	start = now();
	for (size_t i = 0; i < ADDRESSES; i++) {
		tally_machine_resolve(machine, pid, 0, PERF_RECORD_MISC_USER, ips[i], &location);
		nr_frames += tally_dso_source(location.dso, location.address, frames, 64);
	}
	print_rate("source, first time, with loading", now() - start, ADDRESSES);
	start = now();
	for (size_t i = 0; i < ADDRESSES; i++) {
		tally_machine_resolve(machine, pid, 0, PERF_RECORD_MISC_USER, ips[i], &location);
		nr_frames += tally_dso_source(location.dso, location.address, frames, 64);
	}
	print_rate("source, again", now() - start, ADDRESSES);
	printf("%zu frames\n", nr_frames);
	tally_symbols_free(symbols);
	return 0;
}
