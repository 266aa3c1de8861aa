// SPDX-License-Identifier: MIT
/*
 * What a piece of one's own code costs: count events around it, in this thread.
 *
 *	region [EVENTS]		default: task-clock:u,page-faults:u
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <tally/tally.h>

static void piece_of_code(void)
{
	enum { SIZE = 4 << 20 };
	volatile char *memory = malloc(SIZE);

	for (size_t i = 0; memory && i < SIZE; i += 4096)
		memory[i] = 1;
	free((void *)memory);
}

static int fail(const struct tally_error *err)
{
	fprintf(stderr, "region: %s\n", err->what);
	if (err->remedy[0])
		fprintf(stderr, "        %s\n", err->remedy);
	return 1;
}

int main(int argc, char **argv)
{
	const char *names = argc > 1 ? argv[1] : "task-clock:u,page-faults:u";
	const struct tally_target self = {.kind = TALLY_TARGET_SELF};
	struct tally_events *events = tally_events_new();
	struct tally_counters *counters;
	struct tally_error err;

	if (!events)
		return 1;
	if (tally_events_parse(events, names, 0, &err) < 0 ||
	    tally_counters_open(events, &self, TALLY_OPEN_DISABLED, &counters, &err) < 0) {
		tally_events_free(events);
		return fail(&err);
	}

	tally_counters_enable(counters);
	piece_of_code();
	tally_counters_disable(counters);

	for (size_t i = 0; i < tally_counters_events(counters); i++) {
		struct tally_value value;

		if (tally_counters_sum(counters, i, &value) == 0)
			printf("%15" PRIu64 "  %s\n", value.scaled,
			       tally_events_at(events, i)->name);
	}
	tally_counters_close(counters);
	tally_events_free(events);
	return 0;
}
