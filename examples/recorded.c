// SPDX-License-Identifier: MIT
/*
 * Read a recording of tally or perf and print the samples, one a line, with the function of each.
 *
 *	recorded [FILE]		default: perf.data
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <tally/tally.h>

/* First everything that says what was mapped where; samples can then be resolved in any order. */
static int learn(struct tally_perfdata *file, struct tally_machine *machine,
		 struct tally_error *err)
{
	struct tally_perfdata_record r;
	int got;

	tally_perfdata_select(file, TALLY_SELECT_OTHERS);
	while ((got = tally_perfdata_next(file, &r, err)) > 0)
		tally_machine_feed(machine, &r.record,
				   r.record.id.has & PERF_SAMPLE_TIME ? r.record.id.time : 0);
	/* A recording that was cut short is good up to the cut. */
	return got == -EBADMSG ? 0 : got;
}

static void print(const struct tally_perfdata *file, struct tally_machine *machine,
		  const struct tally_perfdata_record *r)
{
	const struct tally_record *record = &r->record;
	struct tally_location where;

	tally_machine_resolve(machine, record->id.pid, record->id.time,
			      record->misc & PERF_RECORD_MISC_CPUMODE_MASK, record->sample.ip,
			      &where);
	printf("%s %s %" PRIx64 " %s\n",
	       tally_machine_comm(machine, record->id.pid, record->id.tid, record->id.time),
	       tally_perfdata_event(file, r->event)->name, record->sample.ip,
	       where.symbol ? where.symbol->name : "[unknown]");
}

static int show(struct tally_perfdata *file, struct tally_machine *machine, struct tally_error *err)
{
	struct tally_perfdata_record r;
	int code = learn(file, machine, err);

	if (code == 0)
		code = tally_perfdata_rewind(file, err);
	if (code < 0)
		return code;
	tally_perfdata_select(file, TALLY_SELECT_SAMPLES);
	while ((code = tally_perfdata_next(file, &r, err)) > 0)
		print(file, machine, &r);
	return code;
}

int main(int argc, char **argv)
{
	struct tally_symbols *symbols = tally_symbols_new(NULL);
	struct tally_machine *machine = symbols ? tally_machine_new(symbols) : NULL;
	struct tally_perfdata *file;
	struct tally_error err;
	int code = 1;

	if (!machine)
		return 1;
	if (tally_perfdata_open(argc > 1 ? argv[1] : "perf.data", &file, &err) == 0) {
		code = show(file, machine, &err);
		tally_perfdata_close(file);
	}
	if (code)
		fprintf(stderr, "recorded: %s\n", err.what);
	tally_symbols_free(symbols);
	return code != 0;
}
