// SPDX-License-Identifier: MIT
/*
 * Sample where a command spends its time and print the functions that were met most, while keeping
 * nothing but one counter for each.
 *
 *	sample COMMAND [ARG...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/tally.h>

enum { MAX_FUNCTIONS = 4096, SHOWN = 10 };

struct function {
	const struct tally_symbol *symbol; /* NULL: none known */
	uint64_t samples;
};

struct profile {
	struct tally_sampler *sampler;
	struct tally_symbols *symbols;
	struct tally_machine *machine;
	struct function functions[MAX_FUNCTIONS];
	size_t nr;
	uint64_t samples;
};

static void add(struct profile *p, const struct tally_record *record)
{
	struct tally_location where;
	size_t i;

	tally_machine_resolve(p->machine, record->id.pid, record->id.time,
			      record->misc & PERF_RECORD_MISC_CPUMODE_MASK, record->sample.ip,
			      &where);
	for (i = 0; i < p->nr && p->functions[i].symbol != where.symbol; i++)
		;
	if (i == MAX_FUNCTIONS)
		return;
	if (i == p->nr)
		p->functions[p->nr++] = (struct function){where.symbol, 0};
	p->functions[i].samples++;
	p->samples++;
}

/* Takes what the rings hold: side-band records go to the machine, samples are resolved. */
static int drain(struct profile *p, bool flush, struct tally_error *err)
{
	struct tally_record record;
	size_t event;
	int got;

	while ((got = tally_sampler_next(p->sampler, flush, &record, &event, err)) > 0) {
		if (record.type == PERF_RECORD_SAMPLE)
			add(p, &record);
		else
			tally_machine_feed(p->machine, &record, record.id.time);
	}
	return got;
}

static int by_samples(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->samples < y->samples) - (x->samples > y->samples);
}

static void print(struct profile *p)
{
	qsort(p->functions, p->nr, sizeof(p->functions[0]), by_samples);
	for (size_t i = 0; i < p->nr && i < SHOWN; i++)
		fprintf(stderr, "%6.2f%%  %s\n", 100.0 * p->functions[i].samples / p->samples,
			p->functions[i].symbol ? p->functions[i].symbol->name : "[unknown]");
	fprintf(stderr, "%" PRIu64 " samples\n", p->samples);
}

static int run(struct profile *p, struct tally_workload *workload,
	       const struct tally_events *events, struct tally_error *err)
{
	const struct tally_sampler_options options = {.pages = 64, .ordered = true};
	const pid_t pid = tally_workload_pid(workload);
	const struct tally_target target = {.kind = TALLY_TARGET_PROCESS, .ids = &pid, .nr_ids = 1};
	struct tally_counters *counters;
	int code;

	code = tally_counters_open(events, &target, TALLY_OPEN_DISABLED | TALLY_OPEN_ENABLE_ON_EXEC,
				   &counters, err);
	if (code < 0)
		return code;
	code = tally_sampler_new(counters, &options, &p->sampler, err);
	if (code == 0)
		code = tally_workload_start(workload, err);
	while (code == 0 && tally_sampler_wait(p->sampler, -1) >= 0)
		code = drain(p, false, err);
	if (code == 0)
		code = drain(p, true, err);
	tally_sampler_free(p->sampler);
	tally_counters_close(counters);
	return code;
}

/* Samples of the main thread in user mode, a thousand a second, and what names need. */
static int choose_event(struct tally_events *events, struct tally_error *err)
{
	int code = tally_events_parse(events, "cpu-clock/freq=1000/u", 0, err);
	struct perf_event_attr *attr;

	if (code < 0)
		return code;
	attr = tally_events_at(events, 0)->attr;
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	return 0;
}

int main(int argc, char **argv)
{
	static struct profile profile;
	struct tally_events *events = tally_events_new();
	struct tally_workload *workload = NULL;
	struct tally_error err = {0};
	int code;

	if (argc < 2) {
		fprintf(stderr, "usage: sample COMMAND [ARG...]\n");
		tally_events_free(events);
		return 2;
	}
	profile.symbols = tally_symbols_new(NULL);
	profile.machine = profile.symbols ? tally_machine_new(profile.symbols) : NULL;
	if (!events || !profile.machine)
		return 1;
	code = choose_event(events, &err);
	if (code == 0)
		code = tally_workload_prepare(argv + 1, -1, &workload, &err);
	if (code == 0)
		code = run(&profile, workload, events, &err);
	if (code == 0)
		print(&profile);
	else
		fprintf(stderr, "sample: %s\n        %s\n", err.what, err.remedy);
	tally_workload_free(workload);
	tally_symbols_free(profile.symbols);
	tally_events_free(events);
	return code < 0;
}
