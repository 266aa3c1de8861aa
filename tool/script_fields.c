// SPDX-License-Identifier: MIT
#include <string.h>

#include "tool/script.h"

#define WHERE (FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO)
#define MEMORY                                                                                     \
	(FIELD_ADDR | FIELD_DATA_SRC | FIELD_WEIGHT | FIELD_INS_LAT | FIELD_PHYS_ADDR |            \
	 FIELD_DATA_PAGE_SIZE | FIELD_CODE_PAGE_SIZE)

/* Needs: the bits of sample_type without which there is nothing to show. */
static const struct {
	const char *name;
	enum field field;
	uint64_t needs;
} fields[] = {
	{"comm", FIELD_COMM, PERF_SAMPLE_TID},
	{"pid", FIELD_PID, PERF_SAMPLE_TID},
	{"tid", FIELD_TID, PERF_SAMPLE_TID},
	{"cpu", FIELD_CPU, PERF_SAMPLE_CPU},
	{"time", FIELD_TIME, PERF_SAMPLE_TIME},
	{"period", FIELD_PERIOD, 0},
	{"event", FIELD_EVENT, 0},
	{"trace", FIELD_TRACE, PERF_SAMPLE_RAW},
	{"bpf-output", FIELD_BPF_OUTPUT, PERF_SAMPLE_RAW},
	{"addr", FIELD_ADDR, PERF_SAMPLE_ADDR},
	{"data_src", FIELD_DATA_SRC, PERF_SAMPLE_DATA_SRC},
	{"weight", FIELD_WEIGHT, PERF_SAMPLE_WEIGHT_TYPE},
	{"ins_lat", FIELD_INS_LAT, PERF_SAMPLE_WEIGHT_STRUCT},
	{"retire_lat", FIELD_RETIRE_LAT, PERF_SAMPLE_WEIGHT_STRUCT},
	{"transaction", FIELD_TRANSACTION, PERF_SAMPLE_TRANSACTION},
	{"cgroup", FIELD_CGROUP, PERF_SAMPLE_CGROUP},
	{"iregs", FIELD_IREGS, PERF_SAMPLE_REGS_INTR},
	{"uregs", FIELD_UREGS, PERF_SAMPLE_REGS_USER},
	{"brstack", FIELD_BRSTACK, PERF_SAMPLE_BRANCH_STACK},
	{"brstacksym", FIELD_BRSTACKSYM, PERF_SAMPLE_BRANCH_STACK},
	{"phys_addr", FIELD_PHYS_ADDR, PERF_SAMPLE_PHYS_ADDR},
	{"data_page_size", FIELD_DATA_PAGE_SIZE, PERF_SAMPLE_DATA_PAGE_SIZE},
	{"code_page_size", FIELD_CODE_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE},
	{"misc", FIELD_MISC, 0},
	{"tod", FIELD_TOD, PERF_SAMPLE_TIME},
	{"ip", FIELD_IP, PERF_SAMPLE_IP},
	{"sym", FIELD_SYM, PERF_SAMPLE_IP},
	{"symoff", FIELD_SYMOFF, PERF_SAMPLE_IP},
	{"dso", FIELD_DSO, PERF_SAMPLE_IP},
	{"srcline", FIELD_SRCLINE, PERF_SAMPLE_IP},
};

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

bool fields_parse(struct field_change *change, const char *text, const char **bad,
		  size_t *bad_length)
{
	*change = (struct field_change){.replaces = *text != '+' && *text != '-'};
	for (const char *word = text;; word++) {
		bool remove = *word == '-';
		size_t length, i;

		word += *word == '+' || *word == '-';
		length = strcspn(word, ",");
		for (i = 0; i < NR_FIELDS; i++)
			if (strlen(fields[i].name) == length &&
			    !strncmp(fields[i].name, word, length))
				break;
		if (i == NR_FIELDS) {
			*bad = word;
			*bad_length = length;
			return false;
		}
		if (remove)
			change->remove |= fields[i].field;
		else
			change->add |= fields[i].field;
		word += length;
		if (!*word)
			return true;
	}
}

unsigned int fields_apply(const struct field_change *change, unsigned int set)
{
	return ((change->replaces ? 0 : set) | change->add) & ~change->remove;
}

unsigned int fields_recorded(const struct tally_perfdata_event *event)
{
	unsigned int set = 0;

	for (size_t i = 0; i < NR_FIELDS; i++)
		if (!fields[i].needs || (event->format.sample_type & fields[i].needs))
			set |= fields[i].field;
	/* The raw bytes of a tracepoint have a format, those of others do not. */
	set &= event->attr->type == PERF_TYPE_TRACEPOINT ? ~FIELD_BPF_OUTPUT : ~FIELD_TRACE;
	return set;
}

/* All but what costs a look at debug information, or is there to unwind the stack. */
static unsigned int json_default(const struct tally_perfdata_event *event)
{
	unsigned int set = ~(FIELD_SRCLINE | FIELD_MISC | FIELD_TOD);

	if (event->format.sample_type & PERF_SAMPLE_STACK_USER)
		set &= ~FIELD_UREGS;
	return set & fields_recorded(event);
}

unsigned int fields_default(const struct tally_perfdata_event *event, bool json)
{
	unsigned int set = FIELD_COMM | FIELD_TID | FIELD_CPU | FIELD_TIME | FIELD_EVENT;

	if (json)
		return json_default(event);
	if (event->attr->type != PERF_TYPE_TRACEPOINT)
		set |= FIELD_PERIOD | WHERE;
	else
		set |= FIELD_TRACE;
	if (event->format.sample_type & PERF_SAMPLE_CALLCHAIN)
		set |= WHERE;
	if (event->attr->type == PERF_TYPE_SOFTWARE)
		set |= FIELD_BPF_OUTPUT;
	/* Sampled memory accesses are such events, and this is what they are recorded for. */
	if (event->attr->type == PERF_TYPE_RAW)
		set |= MEMORY;
	return set & fields_recorded(event);
}
