// SPDX-License-Identifier: MIT
#include "tool/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/memory.h"
#include "tool/reads.h"
#include "tool/spaces.h"
#include "tool/spool.h"

#define DEFAULT_MAX_STACK 127

/*
 * Marks the part of a stack that was unwound from a copy, where perf shows addresses inside the
 * calls, not after them as in frame-pointer chains; so do we. A value that the kernel does not use.
 */
#define CONTEXT_UNWOUND ((uint64_t)-4000)

/* Samples that a BPF filter dropped were not wanted: not lost. Newer than the oldest header. */
#define MISC_DROPPED_BY_FILTER (1 << 15)

struct session_state {
	struct spaces *spaces;
	struct reads *reads; /* of samples with PERF_SAMPLE_READ */
	bool timed;
	uint64_t sequence;
	struct tally_perfdata_record current;
	bool in_read; /* @current has more values to hand out */
	uint64_t *words;
	size_t words_room;
	uint64_t *unwound;
};

static uint64_t record_time(struct session *session, const struct tally_record *record)
{
	if (!session->state->timed)
		return session->state->sequence++;
	if (record->id.has & PERF_SAMPLE_TIME)
		return record->id.time;
	return record->type == PERF_RECORD_FORK || record->type == PERF_RECORD_EXIT
		       ? record->task.time
		       : 0;
}

static void count(struct session *session, const struct tally_record *record, uint64_t time,
		  uint64_t *lost_records)
{
	struct session_totals *totals = &session->totals;

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		if (!totals->samples || time < totals->first)
			totals->first = time;
		if (time > totals->last)
			totals->last = time;
		totals->samples++;
		break;
	case PERF_RECORD_LOST:
		*lost_records += record->lost.lost;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		if (!(record->misc & MISC_DROPPED_BY_FILTER))
			totals->lost += record->lost_samples.lost;
		break;
	case PERF_RECORD_THROTTLE:
		totals->throttled++;
		break;
	case TALLY_RECORD_AUXTRACE:
		totals->traces++;
		break;
	}
}

static int feed(struct session *session, const struct tally_record *record, uint64_t time)
{
	cgroups_feed(session->cgroups, record);
	if (session->follows)
		spaces_follow(session->state->spaces, record);
	else
		spaces_feed(session->state->spaces, record, time);
	return tally_machine_feed(session->machine, record, time);
}

static int out_of_memory(struct tally_error *err)
{
	*err = (struct tally_error){.code = -ENOMEM, .offset = TALLY_NO_OFFSET};
	snprintf(err->what, sizeof(err->what), "out of memory");
	return -ENOMEM;
}

/* The first pass. Stops at damage, which is no failure. */
static int take_in(struct session *session, struct tally_error *err)
{
	struct tally_perfdata_record *next = &session->state->current;
	uint64_t lost_records = 0;
	int result;

	while ((result = tally_perfdata_next(session->reader, next, &session->damage)) > 0) {
		const struct tally_record *record = &next->record;
		uint64_t time = record_time(session, record);

		count(session, record, time, &lost_records);
		if (record->type == PERF_RECORD_SAMPLE)
			continue;
		result = feed(session, record, time);
		if (result < 0)
			break;
	}
	if (result == -ENOMEM)
		return out_of_memory(err);
	session->damage.code = result;
	/*
	 * The kernel says lost records as it goes and, when asked for, lost samples at the end: the
	 * same losses seen twice.
	 */
	if (lost_records > session->totals.lost)
		session->totals.lost = lost_records;
	session->totals.timed = session->state->timed;
	spaces_seal(session->state->spaces);
	session->state->sequence = 0;
	return tally_perfdata_rewind(session->reader, err);
}

static int open_reader(struct session *session, struct tally_error *err)
{
	const char *input = session->options->input ? session->options->input : "perf.data";

	if (!strcmp(input, "-")) {
		/* Per cent of the whole are known when all of it is. */
		bool follow = session->options->follow &&
			      !(session->filter.time && strchr(session->filter.time, '%'));
		int result = 0;

		session->follows = follow && spool_is_stream();
		if (!session->follows)
			result = spool_standard_input(err);

		if (result < 0)
			return result;
	}
	return tally_perfdata_open(input, &session->reader, err);
}

static int bad_time(const struct session *session, struct tally_error *err)
{
	*err = (struct tally_error){.code = -EINVAL, .offset = TALLY_NO_OFFSET};
	snprintf(err->what, sizeof(err->what), "--time '%s' is no span of time",
		 session->filter.time);
	snprintf(err->remedy, sizeof(err->remedy),
		 "give --time FROM,TO in seconds, or --time 10%%-20%%");
	return -EINVAL;
}

int session_open(struct session *session, const struct session_options *options,
		 struct tally_error *err)
{
	int result;

	*session = (struct session){.options = options, .filter = options->filter};
	session->state = tool_alloc(1, sizeof(*session->state));
	session->state->spaces = spaces_new();
	session->cgroups = cgroups_new();
	result = open_reader(session, err);
	if (result < 0)
		goto fail;
	session->symbols = tally_symbols_new(&options->symbols);
	session->machine = session->symbols ? tally_machine_new(session->symbols) : NULL;
	if (!session->machine)
		exit(tool_fail("out of memory"));
	for (size_t i = 0; i < tally_perfdata_events(session->reader); i++)
		if (tally_perfdata_event(session->reader, i)->format.sample_type & PERF_SAMPLE_TIME)
			session->state->timed = true;
	for (size_t i = 0; i < tally_perfdata_build_ids(session->reader); i++) {
		const struct tally_perfdata_build_id *id =
			tally_perfdata_build_id(session->reader, i);

		tally_machine_build_id(session->machine, id->filename, id->build_id, id->size);
	}
	session->places = places_new(session->machine);
	result = session->follows ? 0 : take_in(session, err);
	if (result < 0)
		goto fail;
	if (!filter_resolve_time(&session->filter, session->totals.first, session->totals.last)) {
		result = bad_time(session, err);
		goto fail;
	}
	session->state->reads = reads_new(session->reader);
	return 0;
fail:
	session_close(session);
	return result;
}

void session_close(struct session *session)
{
	places_free(session->places);
	cgroups_free(session->cgroups);
	if (session->symbols)
		tally_symbols_free(session->symbols);
	if (session->reader)
		tally_perfdata_close(session->reader);
	if (session->state) {
		reads_free(session->state->reads);
		spaces_free(session->state->spaces);
		free(session->state->words);
		free(session->state->unwound);
		free(session->state);
	}
	*session = (struct session){0};
}

static bool passes(const struct session *session, const struct session_item *item)
{
	const struct filter *filter = &session->filter;
	const struct tally_sample_id *id = &item->record->id;

	if (item->time < filter->start || item->time > filter->end)
		return false;
	if (!filter_has_id(filter->pids, filter->nr_pids, item->pid) ||
	    !filter_has_id(filter->tids, filter->nr_tids, item->tid))
		return false;
	if (filter->nr_cpus &&
	    !((id->has & PERF_SAMPLE_CPU) && filter_has_id(filter->cpus, filter->nr_cpus, id->cpu)))
		return false;
	return words_have(&filter->comms, item->comm);
}

/* What a sample without PERF_SAMPLE_PERIOD stands for. */
static uint64_t implied_period(const struct perf_event_attr *attr)
{
	return attr->freq || !attr->sample_period ? 1 : attr->sample_period;
}

void session_subject(const struct tally_record *record, uint32_t *pid, uint32_t *tid)
{
	switch (record->type) {
	case PERF_RECORD_COMM:
		*pid = record->comm.pid;
		*tid = record->comm.tid;
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		*pid = record->task.pid;
		*tid = record->task.tid;
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		*pid = record->mmap.pid;
		*tid = record->mmap.tid;
		break;
	}
}

static void fill_in(struct session *session, struct session_item *item, uint64_t time)
{
	const struct tally_perfdata_record *current = &session->state->current;
	const struct tally_record *record = &current->record;

	*item = (struct session_item){
		.record = record,
		.is_sample = record->type == PERF_RECORD_SAMPLE,
		.event = current->event,
		.pid = record->id.pid,
		.tid = record->id.tid,
		.time = time,
	};
	uint32_t pid = item->pid, tid = item->tid;

	session_subject(record, &pid, &tid);
	/* A task that has ended and been waited for has no number any more. */
	item->comm = tid == UINT32_MAX ? ":-1"
				       : tally_machine_comm(session->machine, pid, tid, item->time);
}

/* Damage is no failure: the first pass has seen it, or, where there was none, it is kept now. */
static int advance(struct session *session, struct tally_error *err)
{
	struct tally_perfdata_record *record = &session->state->current;
	int result = session->options->ordered
			     ? tally_perfdata_next_ordered(session->reader, record, err)
			     : tally_perfdata_next(session->reader, record, err);

	if (result != -EBADMSG)
		return result;
	if (session->follows)
		session->damage = *err;
	return session->damage.code ? 0 : result;
}

int session_next(struct session *session, struct session_item *item, struct tally_error *err)
{
	struct session_state *state = session->state;

	for (;;) {
		const struct tally_record *record = &state->current.record;
		uint64_t ignored;

		if (state->in_read) {
			/* One record of a group is a sample of each member that has counted. */
			state->in_read = reads_next(state->reads, &item->event, &item->period);
			if (state->in_read)
				return 1;
		}
		int result = advance(session, err);

		if (result <= 0)
			return result;

		uint64_t time = record_time(session, record);
		bool is_sample = record->type == PERF_RECORD_SAMPLE;

		if (!is_sample && session->follows && feed(session, record, time) < 0)
			return out_of_memory(err);
		if (!is_sample && !session->options->others)
			continue;
		fill_in(session, item, time);
		if (item->is_sample && item->event == SIZE_MAX)
			continue;
		if (!item->is_sample) {
			if (passes(session, item))
				return 1;
			continue;
		}
		const struct tally_perfdata_event *event =
			tally_perfdata_event(session->reader, item->event);

		item->space = spaces_at(state->spaces, item->pid, item->time);
		item->period = record->sample.has & PERF_SAMPLE_PERIOD
				       ? record->sample.period
				       : implied_period(event->attr);
		if (record->sample.has & PERF_SAMPLE_READ)
			reads_start(state->reads, item->event, &record->sample);
		if (!passes(session, item)) {
			/* The values still have to be taken in: the next ones are differences. */
			while (record->sample.has & PERF_SAMPLE_READ &&
			       reads_next(state->reads, &item->event, &ignored))
				;
			continue;
		}
		if (!(record->sample.has & PERF_SAMPLE_READ))
			return 1;
		state->in_read = true;
	}
}

/* ---- stacks ---- */

static bool is_marker(uint64_t word)
{
	return word >= (uint64_t)PERF_CONTEXT_MAX;
}

static uint64_t marker_of(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return PERF_CONTEXT_KERNEL;
	case PERF_RECORD_MISC_HYPERVISOR:
		return PERF_CONTEXT_HV;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return PERF_CONTEXT_GUEST_KERNEL;
	case PERF_RECORD_MISC_GUEST_USER:
		return PERF_CONTEXT_GUEST_USER;
	default:
		return PERF_CONTEXT_USER;
	}
}

/* How many words hold the first @max addresses. */
static size_t cut(const uint64_t *words, size_t nr, size_t max)
{
	size_t addresses = 0;

	if (nr <= max)
		return nr;
	for (size_t i = 0; i < nr; i++)
		if (!is_marker(tally_u64(words + i)) && ++addresses == max)
			return i + 1;
	return nr;
}

static bool begins_with(const uint64_t *words, size_t nr, uint64_t ip)
{
	for (size_t i = 0; i < nr; i++)
		if (!is_marker(tally_u64(words + i)))
			return tally_u64(words + i) == ip;
	return false;
}

/* Whether the user part has to be unwound from the copied stack. */
static bool has_copy(const struct tally_sample *sample)
{
	return (sample->has & PERF_SAMPLE_REGS_USER) && (sample->has & PERF_SAMPLE_STACK_USER) &&
	       sample->regs_user.nr;
}

static void push(struct session_state *state, size_t *nr, uint64_t word)
{
	state->words = tool_grow(state->words, &state->words_room, *nr + 1, sizeof(*state->words));
	state->words[(*nr)++] = word;
}

static void push_unwound(struct session *session, const struct session_item *item, size_t *nr,
			 size_t max)
{
	struct session_state *state = session->state;
	size_t found;

	if (!state->unwound)
		state->unwound = tool_alloc(max, sizeof(*state->unwound));
	found = tally_machine_unwind(session->machine, item->pid, item->time, &item->record->sample,
				     state->unwound, max, NULL);
	if (!found)
		return;
	push(state, nr, CONTEXT_UNWOUND);
	for (size_t i = 0; i < found && i < max; i++)
		push(state, nr, state->unwound[i] - (i > 0));
}

static unsigned int max_stack(const struct session *session)
{
	return session->options->max_stack ? session->options->max_stack : DEFAULT_MAX_STACK;
}

size_t session_stack(struct session *session, const struct session_item *item, bool self,
		     const uint64_t **words)
{
	const struct tally_sample *sample = &item->record->sample;
	struct session_state *state = session->state;
	bool has_ip = sample->has & PERF_SAMPLE_IP;
	size_t recorded = sample->has & PERF_SAMPLE_CALLCHAIN ? sample->nr_ips : 0;
	size_t max = max_stack(session);
	size_t nr = 0, start;

	recorded = cut(sample->ips, recorded, max);
	/* Nearly all: the record's own words, as they are. */
	if (recorded && !has_copy(sample) &&
	    (!self || !has_ip || begins_with(sample->ips, recorded, sample->ip))) {
		*words = sample->ips;
		return recorded;
	}
	/* A place for the sample's own address, to be used when the chain does not begin there. */
	push(state, &nr, marker_of(item->record->misc));
	push(state, &nr, sample->ip);
	start = nr;
	for (size_t i = 0; i < recorded; i++)
		push(state, &nr, tally_u64(sample->ips + i));
	if (has_copy(sample))
		push_unwound(session, item, &nr, max);
	*words = state->words;
	if (nr == start)
		return has_ip ? nr : 0;
	if (!self || !has_ip || begins_with(state->words + start, nr - start, sample->ip)) {
		*words += start;
		nr -= start;
	}
	return cut(*words, nr, max);
}

void session_resolve(struct session *session, const struct session_item *item,
		     const uint64_t *words, size_t nr, uint32_t *places)
{
	uint16_t mode = item->record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	bool caller = false, unwound = false;

	for (size_t i = 0; i < nr; i++) {
		uint64_t word = tally_u64(words + i);

		if (!is_marker(word)) {
			places[i] = places_find(session->places, item->pid, item->space, item->time,
						mode, word, caller);
			caller = !unwound;
			continue;
		}
		/* The first address of each part is where that part was interrupted. */
		caller = false;
		unwound = word == CONTEXT_UNWOUND;
		if (word == (uint64_t)PERF_CONTEXT_KERNEL)
			mode = PERF_RECORD_MISC_KERNEL;
		else if (word == (uint64_t)PERF_CONTEXT_USER || unwound)
			mode = PERF_RECORD_MISC_USER;
		else if (word == (uint64_t)PERF_CONTEXT_HV)
			mode = PERF_RECORD_MISC_HYPERVISOR;
		else if (word == (uint64_t)PERF_CONTEXT_GUEST_KERNEL)
			mode = PERF_RECORD_MISC_GUEST_KERNEL;
		else if (word == (uint64_t)PERF_CONTEXT_GUEST_USER)
			mode = PERF_RECORD_MISC_GUEST_USER;
		places[i] = word;
	}
}

bool session_hit_passes(struct session *session, const struct session_item *item, bool dso,
			bool symbol)
{
	const struct filter *filter = &session->filter;
	const struct tally_location *at;
	uint32_t place;

	dso = dso && filter->dsos.nr;
	symbol = symbol && filter->symbols.nr;
	if (!dso && !symbol)
		return true;
	place = places_find(session->places, item->pid, item->space, item->time,
			    item->record->misc & PERF_RECORD_MISC_CPUMODE_MASK,
			    item->record->sample.ip, false);
	at = &places_at(session->places, place)->at;
	if (dso && !filter_has_dso(filter, at->dso))
		return false;
	return !symbol || words_have(&filter->symbols, at->symbol ? at->symbol->name : UNKNOWN);
}

bool session_event_has_chain(const struct session *session, size_t event)
{
	uint64_t type = tally_perfdata_event(session->reader, event)->format.sample_type;
	uint64_t copy = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	return (type & PERF_SAMPLE_CALLCHAIN) || (type & copy) == copy;
}

int session_verdict(const struct session *session)
{
	return session->damage.code ? tool_error(&session->damage) : TOOL_OK;
}

/* ---- options ---- */

static bool take_list(int **ids, size_t *nr, const char *text)
{
	free(*ids);
	return tool_parse_list(text, ids, nr);
}

int session_option(struct session_options *options, const struct tool_command *command, int key,
		   const char *argument)
{
	struct filter *filter = &options->filter;
	unsigned long long number;
	bool good = true;

	switch (key) {
	case 'i':
		options->input = argument;
		break;
	case SESSION_COMM:
		words_parse(&filter->comms, argument);
		break;
	case SESSION_DSO:
		words_parse(&filter->dsos, argument);
		break;
	case SESSION_SYMBOL:
		words_parse(&filter->symbols, argument);
		break;
	case SESSION_PID:
		good = take_list(&filter->pids, &filter->nr_pids, argument);
		break;
	case SESSION_TID:
		good = take_list(&filter->tids, &filter->nr_tids, argument);
		break;
	case 'C':
		good = take_list(&filter->cpus, &filter->nr_cpus, argument);
		break;
	case SESSION_TIME:
		filter->time = argument;
		break;
	case SESSION_MAX_STACK:
		good = tool_parse_number(argument, &number) && number && number <= 65536;
		options->max_stack = good ? number : 0;
		break;
	case SESSION_NO_INLINE:
		options->no_inline = true;
		break;
	case SESSION_NO_DEMANGLE:
		options->symbols.no_demangle = true;
		break;
	case SESSION_NO_DEBUGINFOD:
		options->symbols.no_debuginfod = true;
		break;
	case SESSION_SYMFS:
		options->symbols.symfs = argument;
		break;
	case SESSION_KALLSYMS:
		options->symbols.kallsyms = argument;
		break;
	case 'k':
		options->symbols.vmlinux = argument;
		break;
	default:
		return 0;
	}
	if (good)
		return 1;
	if (key == SESSION_MAX_STACK)
		tool_usage(command, "--max-stack takes a number from 1 to 65536, not '%s'",
			   argument);
	else
		tool_usage(command, "'%s' is no list of numbers: 0,2-3", argument);
	return -1;
}
