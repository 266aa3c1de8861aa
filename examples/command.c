// SPDX-License-Identifier: MIT
/*
 * Count events of a command and of all that it starts, from its exec to its end. An event that this
 * machine does not have is no reason to give up: it says why.
 *
 *	command EVENTS COMMAND [ARG...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

#include <tally/tally.h>

static int complain(const struct tally_error *err)
{
	fprintf(stderr, "command: %s\n", err->what);
	if (err->remedy[0])
		fprintf(stderr, "         %s\n", err->remedy);
	return 1;
}

static void print(struct tally_counters *counters, const struct tally_events *events)
{
	for (size_t i = 0; i < tally_counters_events(counters); i++) {
		const struct tally_error *why = tally_counters_error(counters, i);
		const char *name = tally_events_at(events, i)->name;
		struct tally_value value;

		if (tally_counters_sum(counters, i, &value) < 0)
			continue;
		if (value.state == TALLY_COUNTED)
			fprintf(stderr, "%15" PRIu64 "  %s%s\n", value.scaled, name,
				value.source == TALLY_SOURCE_SCALED ? "  (scaled)" : "");
		else if (why)
			fprintf(stderr, "%15s  %s: %s\n", "-", name, why->what);
		else
			fprintf(stderr, "%15s  %s: never ran\n", "-", name);
	}
}

static int count(struct tally_workload *workload, const struct tally_events *events)
{
	const pid_t pid = tally_workload_pid(workload);
	const struct tally_target target = {.kind = TALLY_TARGET_PROCESS, .ids = &pid, .nr_ids = 1};
	struct tally_counters *counters;
	struct tally_error err;
	int status = 0;

	if (tally_counters_open(events, &target,
				TALLY_OPEN_DISABLED | TALLY_OPEN_ENABLE_ON_EXEC |
					TALLY_OPEN_INHERIT | TALLY_OPEN_TOLERANT,
				&counters, &err) < 0)
		return complain(&err);
	if (tally_workload_start(workload, &err) < 0) {
		tally_counters_close(counters);
		return complain(&err);
	}
	tally_workload_wait(workload, true, &status, NULL);
	print(counters, events);
	tally_counters_close(counters);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct tally_events *events = tally_events_new();
	struct tally_workload *workload;
	struct tally_error err;
	int status;

	if (argc < 3) {
		fprintf(stderr, "usage: command EVENTS COMMAND [ARG...]\n");
		tally_events_free(events);
		return 2;
	}
	if (!events)
		return 1;
	/* The child waits; the counters are attached to it before it becomes the command. */
	if (tally_events_parse(events, argv[1], 0, &err) < 0 ||
	    tally_workload_prepare(argv + 2, -1, &workload, &err) < 0) {
		tally_events_free(events);
		return complain(&err);
	}
	status = count(workload, events);
	tally_workload_free(workload);
	tally_events_free(events);
	return status;
}
