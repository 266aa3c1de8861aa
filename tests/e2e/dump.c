// SPDX-License-Identifier: MIT
/*
 * Prints a perf.data file as plain lines, for the tests to compare with what perf says of it:
 *
 *	dump [-mos] FILE
 *
 *	-m	with the context markers of call chains
 *	-o	in time order
 *	-s	samples only
 *
 * A sample is "S event pid/tid cpu time period ip addr raw_size" and one " ip" line for each entry
 * of its call chain; another record is "R type pid/tid time".
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tally/perfdata.h>

static void print_sample(const struct tally_perfdata *reader, const struct tally_perfdata_record *r,
			 bool markers)
{
	const struct tally_sample_id *id = &r->record.id;
	const struct tally_sample *s = &r->record.sample;
	const struct tally_perfdata_event *event = tally_perfdata_event(reader, r->event);
	uint64_t period = s->has & PERF_SAMPLE_PERIOD ? s->period : event->attr->sample_period;

	printf("S %s %d/%d %u %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIx64 " %u\n", event->name,
	       id->pid, id->tid, id->cpu, id->time, period, s->ip, s->addr, s->raw_size);
	for (uint64_t i = 0; i < s->nr_ips; i++)
		if (markers || tally_u64(s->ips + i) < PERF_CONTEXT_MAX)
			printf(" %" PRIx64 "\n", tally_u64(s->ips + i));
}

int main(int argc, char **argv)
{
	int (*next)(struct tally_perfdata *, struct tally_perfdata_record *, struct tally_error *) =
		tally_perfdata_next;
	unsigned int select = TALLY_SELECT_SAMPLES | TALLY_SELECT_OTHERS;
	struct tally_perfdata_record record;
	struct tally_perfdata *reader;
	struct tally_error err;
	bool markers = false;
	int option, ret;

	while ((option = getopt(argc, argv, "mos")) != -1) {
		if (option == 'm')
			markers = true;
		else if (option == 'o')
			next = tally_perfdata_next_ordered;
		else if (option == 's')
			select = TALLY_SELECT_SAMPLES;
		else
			return 2;
	}
	if (optind != argc - 1)
		return 2;
	ret = tally_perfdata_open(argv[optind], &reader, &err);
	if (ret) {
		fprintf(stderr, "%s\n%s\n", err.what, err.remedy);
		return 1;
	}
	tally_perfdata_select(reader, select);
	while ((ret = next(reader, &record, &err)) > 0) {
		const struct tally_record *r = &record.record;

		if (r->type == PERF_RECORD_SAMPLE)
			print_sample(reader, &record, markers);
		else
			printf("R %u %d/%d %" PRIu64 "\n", r->type, (int)r->id.pid, (int)r->id.tid,
			       r->id.time);
	}
	if (ret < 0)
		fprintf(stderr, "%s\n%s\n", err.what, err.remedy);
	tally_perfdata_close(reader);
	return ret < 0;
}
